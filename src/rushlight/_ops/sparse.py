"""From dense to sparse and back; the sparse tensor itself lives in rushlight.sparse."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight._C import Tensor, dtype, layout

from .. import _C
from .._core.compose import op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


@op(method=True)
def to_sparse(
    input: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: layout | None = None,
    blocksize: int | Sequence[int] | None = None,
    dense_dim: int | None = None,
) -> Tensor:
    """The nonzero entries as a sparse tensor: by coordinates, or in the layout that is named."""
    from ..sparse import _coo, _layouts

    if layout is None or layout is _C.sparse_coo:
        if blocksize is not None:
            _layouts.block_of(blocksize, "dense_to_sparse")
        if dense_dim is not None and sparse_dim is None:
            sparse_dim = input.dim() - dense_dim
        return _coo.to_sparse(input, sparse_dim)
    if sparse_dim is not None:
        raise TypeError(f"to_sparse(): sparse_dim is for coordinates, not for {layout}: give dense_dim")
    return input if layout is _C.strided else _layouts.converted(input, layout, blocksize, dense_dim)


@op(method=True)
def to_sparse_coo(input: Tensor) -> Tensor:
    """The nonzero entries by their coordinates (COO)."""
    return to_sparse(input)


@op(method=True)
def to_dense(input: Tensor, dtype: dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself, which is dense."""
    return input if dtype is None else input.to(dtype)


@op(method=True)
def to_sparse_csr(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """The nonzero entries of a matrix, or of a batch of them, as compressed rows (CSR)."""
    return to_sparse(input, layout=_C.sparse_csr, dense_dim=dense_dim)


@op(method=True)
def to_sparse_csc(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """The nonzero entries of a matrix, or of a batch of them, as compressed columns (CSC)."""
    return to_sparse(input, layout=_C.sparse_csc, dense_dim=dense_dim)


@op(method=True)
def to_sparse_bsr(input: Tensor, blocksize: int | Sequence[int], dense_dim: int | None = None) -> Tensor:
    """The blocks of a matrix that are not all zero, as compressed rows of blocks (BSR)."""
    return to_sparse(input, layout=_C.sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


@op(method=True)
def to_sparse_bsc(input: Tensor, blocksize: int | Sequence[int], dense_dim: int | None = None) -> Tensor:
    """The blocks of a matrix that are not all zero, as compressed columns of blocks (BSC)."""
    return to_sparse(input, layout=_C.sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


@op(method=True)
def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The elements at the places where a sparse tensor has entries, as a sparse tensor."""
    if mask.layout is _C.strided:
        raise RuntimeError("sparse_mask(): the mask must be a sparse tensor, got a dense one")
    from ..sparse import _shape

    return _shape.sparse_mask(input, mask)


@op(method=True)
def sparse_dim(input: Tensor) -> int:
    """How many dimensions are sparse: 0, of a dense tensor."""
    return 0


@op(method=True)
def dense_dim(input: Tensor) -> int:
    """How many dimensions are dense: all, of a dense tensor."""
    return input.dim()


def _parts(name, layout, doc):
    """A method that only some sparse tensors have; theirs stand in their classes."""

    def part(input: Any, *args: Any) -> Tensor:
        if not isinstance(input, _C.Tensor):
            raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(input).__name__}")
        own = getattr(type(input), name)
        if own is not part:  # Tensor.crow_indices(sparse)
            return own(input, *args)
        if input._asks():
            return input._ask(part, (input, *args), {})
        raise RuntimeError(f"{name} expected sparse {layout}tensor layout but got Strided")

    part.__name__ = part.__qualname__ = name
    part.__doc__ = doc
    setattr(_C.Tensor, name, part)


_parts("indices", "coordinate ", "(sparse dimensions, entries): where a sparse tensor has entries.")
_parts("values", "", "The entries of a sparse tensor.")
_parts("crow_indices", "row compressed ", "Where the entries of each row begin.")
_parts("col_indices", "row compressed ", "The column of each entry.")
_parts("ccol_indices", "column compressed ", "Where the entries of each column begin.")
_parts("row_indices", "column compressed ", "The row of each entry.")
_parts("is_coalesced", "coordinate ", "Whether no two entries of a sparse tensor have the same place.")
_parts("coalesce", "coordinate ", "A sparse tensor whose entries at the same place are added up.")
_parts(
    "_indices", "coordinate ", "Where a sparse tensor has entries, whether or not each place is there once."
)
_parts("_values", "coordinate ", "The entries of a sparse tensor, whether or not each place is there once.")
_parts("_nnz", "", "The number of entries of a sparse tensor.")
_parts("_coalesced_", "coordinate ", "Says whether no two entries of a sparse tensor have the same place.")
_parts("_dimI", "coordinate ", "The number of sparse dimensions.")
_parts("_dimV", "coordinate ", "The number of dense dimensions.")


def _needs_sparse(name):
    from ..sparse import _products

    return getattr(_products, name)


@op(method=True)
def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix, sparse."""
    return _needs_sparse("smm")(input, mat)


@op
def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, of which one may be sparse."""
    return input @ mat2


@op(alias=("hsmm",))
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix, as the rows in which the sparse one has entries."""
    return _needs_sparse("hspmm")(mat1, mat2)


@op(method=True)
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) of sparse input and mat1, sparse."""
    return _needs_sparse("sspaddmm")(input, mat1, mat2, beta=beta, alpha=alpha)


@op
def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """sspaddmm under its old name."""
    return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


@op
def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows begins among sorted row numbers, and their count at the end."""
    if input.dim() > 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {input.dim()} dimensional tensor.")
    rows = _C.ops["arange"](size + 1, dtype=input.dtype, device=input.device)
    return _C.ops["searchsorted"](input, rows, out_int32=out_int32)


@op
def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Row and column of each entry of a compressed matrix, after its number in a batch of them."""
    kind = _C.int32 if out_int32 else _C.int64
    counts = (crow_indices[..., 1:] - crow_indices[..., :-1]).to(_C.int64)
    batch, rows = crow_indices.shape[:-1].numel() if crow_indices.dim() > 1 else 1, counts.shape[-1]
    rows = _C.ops["arange"](rows, device=counts.device).repeat(batch).repeat_interleave(counts.reshape(-1))
    pair = [rows.to(kind), col_indices.reshape(-1).to(kind)]
    if crow_indices.dim() > 1:
        lead = _C.ops["arange"](batch, device=counts.device).repeat_interleave(col_indices.shape[-1])
        places = []
        for size in reversed(crow_indices.shape[:-1]):
            places.append((lead % size).to(kind))
            lead = lead // size
        return _C.ops["stack"]([*reversed(places), *(reversed(pair) if transpose else pair)])
    return _C.ops["stack"](pair[::-1] if transpose else pair)
