"""Other sizes for compressed tensors, in place. What the entries are afterwards is for the caller to say; they are valid."""

import math

import rushlight as rl
from rushlight.sparse import _text
from rushlight.sparse._blocks import KINDS, smallest
from rushlight.sparse._functions import _become


def _indices(a):
    return (a.crow_indices(), a.col_indices()) if KINDS[a.layout][0] else (a.ccol_indices(), a.row_indices())


def _replaced(a, made):
    """`a` as the tensor that was made, its sizes included."""
    from rushlight._C import Tensor
    from rushlight.sparse._coo import without_overrides

    zero = rl.zeros((), dtype=made.dtype)
    without_overrides(Tensor.set_, a, zero.untyped_storage(), 0, tuple(made.shape), (0,) * made.dim())
    if type(a) is not type(made):
        a.__class__ = type(made)
    return _become(a, made)


def with_dims(
    nnz, dense_dim, size, blocksize, index_dtype, *, dtype=None, layout=None, device=None, pin_memory=None
):
    """A compressed tensor of zeros with nnz entries in each batch, in its first rows (or columns)."""
    if layout not in KINDS:
        raise RuntimeError(f"_sparse_compressed_tensor_with_dims: expected a compressed layout, got {layout}")
    by_rows, blocks = KINDS[layout]
    size, block = tuple(size), tuple(blocksize) if blocks else (1, 1)
    if len(block) != 2 or (blocksize and not blocks):
        raise RuntimeError(
            f"_sparse_compressed_tensor_with_dims: blocksize {blocksize} does not suit {layout}"
        )
    batch, dense = size[: len(size) - 2 - dense_dim], size[len(size) - dense_dim :]
    rows, columns = (size[len(batch) + d] // block[d] for d in (0, 1))
    along, across = (rows, columns) if by_rows else (columns, rows)
    if not 0 <= nnz <= rows * columns:
        raise RuntimeError(f"_sparse_compressed_tensor_with_dims: {nnz} entries do not fit the size {size}")
    starts = (rl.arange(along + 1) * across).clamp(max=nnz).to(index_dtype)
    others = (rl.arange(nnz) % max(across, 1)).to(index_dtype)
    values = rl.zeros((*batch, nnz, *(block if blocks else ()), *dense), dtype=dtype)
    return smallest(
        layout,
        starts.expand(*batch, -1).contiguous(),
        others.expand(*batch, -1).contiguous(),
        values,
        size,
    )


def resize_as(a, template):
    """The sizes and the number of entries of another tensor of the same layout."""
    for name, x in (("self", a), ("src", template)):
        if x.layout not in KINDS:
            raise RuntimeError(
                f"resize_as_sparse_compressed_: {name}  expected sparse compressed tensor layout but got "
                f"{_text.LAYOUTS[x.layout]}"
            )
    if a.layout is not template.layout:
        raise RuntimeError(
            "resize_as_sparse_compressed_tensor_: self and src must have the same layout, but got: self "
            f"({_text.LAYOUTS[a.layout]}) and source ({_text.LAYOUTS[template.layout]})"
        )
    own = _indices(a)
    starts, others = (x.to(own[0].dtype) for x in _indices(template))
    if a.shape == template.shape and a.values().shape == template.values().shape:
        return a
    values = rl.zeros(template.values().shape, dtype=a.dtype)
    return _replaced(a, smallest(a.layout, starts, others, values, tuple(template.shape)))


def resize(a, size):
    """resize_ of CSR matrices, and batches of them: more rows have no entries; fewer keep the first ones that fit."""
    size = tuple(size)
    if a.layout is not rl.sparse_csr or len(size) < 2 or a.dense_dim():
        raise RuntimeError(
            f"torch.resize_: Only batched sparse CSR matrices are supported, but got size {list(size)}"
        )
    columns = a.size(-1)
    if size[-1] < columns:
        raise RuntimeError(
            "torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. The original "
            f"number of columns is {columns} while the requested new number of columns is {size[-1]}."
        )
    batch, rows, nnz = size[:-2], size[-2], min(a._nnz(), size[-2] * size[-1])
    count = math.prod(batch)
    starts, others = _indices(a)
    starts, others = starts.reshape(-1, starts.size(-1)), others.reshape(-1, others.size(-1))
    values = a.values().detach().reshape(others.shape)
    if count > others.size(0) or rows < 0:
        raise RuntimeError(f"torch.resize_: {list(size)} has more matrices than the tensor, {others.size(0)}")
    starts = starts[:count, : rows + 1].clamp(max=nnz)
    more = starts.new_full((count, rows + 1 - starts.size(1)), nnz)
    starts = rl.cat([starts, more], 1)
    if rows:
        starts[:, -1] = nnz
    return _replaced(
        a,
        smallest(
            rl.sparse_csr,
            starts.reshape(*batch, rows + 1),
            others[:count, :nnz].reshape(*batch, nnz),
            values[:count, :nnz].reshape(*batch, nnz),
            size,
        ),
    )
