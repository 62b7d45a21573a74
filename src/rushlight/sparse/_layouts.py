"""One layout from another by the indices of the entries, so that zeros which are entries stay so; and tensors of no entries."""

import math

import rushlight as rl
from rushlight.sparse import _text
from rushlight.sparse._blocks import KINDS, SparseBlockTensor, assemble, from_dense
from rushlight.sparse._compressed import _assemble, class_of


def _refuse(source, layout, why, name="sparse_compressed_to_sparse", instead=""):
    raise RuntimeError(
        f"{name}: conversion from {_text.LAYOUTS[source]} to {_text.LAYOUTS[layout]} {why} is not supported{instead}"
    )


def block_of(blocksize, name):
    """A blocksize as two positive integers."""
    blocksize = (blocksize, blocksize) if isinstance(blocksize, int) else tuple(blocksize)
    if len(blocksize) != 2:
        raise RuntimeError(f"{name}: blocksize needs to be a tuple of size 2, but got {len(blocksize)}")
    if min(blocksize) <= 0:
        raise RuntimeError(f"{name}: blocksize needs to be positive, but got {list(blocksize)}")
    return blocksize


def converted(a, layout, blocksize=None, dense_dim=None):
    """A dense or sparse tensor in another layout than coordinates."""
    source = a.layout
    if layout is rl.strided:
        return a.to_dense()
    if layout not in KINDS:
        raise RuntimeError(f"to_sparse: there is no conversion to the layout {layout}")
    short = str(layout).rpartition(".")[2]
    name = {rl.strided: f"dense_to_{short}", rl.sparse_coo: f"coo_to_{short}"}.get(
        source, f"sparse_compressed_to_{short}"
    )
    blocks = KINDS[layout][1]
    if blocks and blocksize is None and source is not layout:
        _refuse(source, layout, "without blocksize argument given", name)
    if blocksize is not None and not blocks:
        _refuse(source, layout, "with blocksize argument given", name)
    if source is rl.strided:
        return from_dense(a, layout, blocksize, dense_dim)
    if dense_dim is not None:
        _refuse(source, layout, "with dense_dim argument given", f"to_{short}")
    if blocks and blocksize is not None:
        blocksize = block_of(blocksize, name)
    if source is rl.sparse_coo:
        if a.sparse_dim() != 2:
            _refuse(
                source, layout, "for input tensors with sparse_dim()!=2", name, ": go by way of to_dense()"
            )
        return _from_coords(a._summed(), layout, blocksize)
    if KINDS[source][1] and blocks:
        if blocksize not in (None, a._block()):
            changed = f"with blocksize changed from {list(a._block())} to {list(blocksize)}"
            _refuse(source, layout, changed, name, ": go by way of to_sparse(), which gives coordinates")
        if source is layout:
            return a
    elif source is layout:
        return a
    elif KINDS[source][1] or blocks:
        if _batch(a):
            _refuse(source, layout, "for batched inputs", name, ": go by way of to_dense()")
        return _from_coords(a.to_sparse()._summed(), layout, blocksize, _index_type(a))
    entries, item, row, column = _whole(a)
    return _gathered(layout, entries, item, row, column, a.shape[: _batch(a)], a.shape, _index_type(a))


def _batch(a):
    return a._batch() if isinstance(a, SparseBlockTensor) else 0


def _index_type(a):
    return a._starts.dtype


def _whole(a):
    """Entries (n, high, wide, *dense), and of each its number in the batch, its row and its column."""
    if isinstance(a, SparseBlockTensor):
        return a._whole()
    entries = a._entries.reshape(a._nnz(), 1, 1, *a._entries.shape[1:])
    return entries, a._coords.new_zeros(a._nnz()), *a._coords


def _from_coords(a, layout, blocksize=None, index_type=rl.int64):
    """Coordinates in two dimensions, each once, as a compressed layout."""
    entries, item, row, column = _whole(a)
    if blocksize is not None:
        high, wide = blocksize
        rows, columns = a.shape[:2]
        if rows % high or columns % wide:
            raise RuntimeError(
                f"tensor sparse size ({rows},{columns}) must be divisible by given blocksize ({high},{wide})"
            )
        across = max(columns // wide, 1)
        key, block = rl.unique((row // high) * across + column // wide, return_inverse=True)
        whole = entries.new_zeros((key.numel(), high, wide, *entries.shape[3:]))
        entries = whole.index_put((block, row % high, column % wide), entries[:, 0, 0])
        item, row, column = rl.zeros_like(key), key // across, key % across
    return _gathered(layout, entries, item, row, column, (), a.shape, index_type)


def _gathered(layout, entries, item, row, column, batch, size, index_type):
    """A tensor of entries at indices, each batch having equally many."""
    by_rows, blocks = KINDS[layout]
    high, wide = entries.shape[1:3]
    rows, columns = size[len(batch)] // high, size[len(batch) + 1] // wide
    (own, along), (other, across) = ((row, rows), (column, columns))[:: 1 if by_rows else -1]
    count = math.prod(batch)
    group = item * along + own
    order = rl.argsort(group * across + other, stable=True)
    starts = rl.zeros(count, along + 1, dtype=rl.int64)
    if count * along:
        starts[:, 1:] = rl.bincount(group, minlength=count * along).reshape(count, along).cumsum(1)
    starts = starts.to(index_type)
    values = entries[order]
    if not blocks:
        values = values.reshape(values.size(0), *values.shape[3:])
    if not blocks and not batch and len(size) == 2:
        return _assemble(
            class_of(layout), starts.reshape(-1), rl.stack([row, column])[:, order], values, size
        )
    nnz = values.size(0) // count if count else 0
    return assemble(
        layout,
        starts.reshape(*batch, along + 1),
        other[order].to(index_type).reshape(*batch, nnz),
        values.reshape(*batch, nnz, *values.shape[1:]),
        size,
    )


def empty(size, layout, dtype=None, requires_grad=False, name="empty"):
    """A tensor of a sparse layout without entries."""
    size = tuple(int(n) for n in size)
    if min(size, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    dtype = dtype or rl.get_default_dtype()
    if layout is rl.sparse_coo:
        result = rl.sparse_coo_tensor(size, dtype=dtype)
        return result.requires_grad_() if requires_grad else result
    if layout not in KINDS or KINDS[layout][1]:
        raise RuntimeError(
            f"{name}_sparse_compressed expected sparse compressed (non-block) tensor layout but got "
            f"{_text.LAYOUTS.get(layout, layout)}: blocks have a size, so make it from a tensor, x.to_sparse_bsr(...)"
        )
    if len(size) < 2:
        raise RuntimeError(
            f"torch.{name}: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )
    none, batch = rl.zeros(0, dtype=rl.int64), size[:-2]
    values = rl.zeros(0, 1, 1, dtype=dtype, requires_grad=bool(requires_grad))
    return _gathered(layout, values, none, none, none, batch, size, rl.int64)
