"""Compressed layouts in their general form: blocks (BSR, BSC), batches of matrices, entries that are tensors.

One matrix of scalars by rows or columns is a `SparseCsrTensor` or `SparseCscTensor` (_compressed.py). Everything else is
kept here by its parts, (*batch, rows or columns of blocks + 1) starts, (*batch, nnz) other indices and
(*batch, nnz, *block, *dense) values; zero-preserving ops act on the values, the rest goes by way of coordinates.
"""

from __future__ import annotations

import rushlight as rl
from rushlight._C import Tensor
from rushlight.sparse import _text
from rushlight.sparse._compressed import SparseCompressedTensor
from rushlight.sparse._coo import _METADATA, make, without_overrides

# layout: (whether rows are compressed, whether entries are blocks)
KINDS = {
    rl.sparse_csr: (True, False),
    rl.sparse_csc: (False, False),
    rl.sparse_bsr: (True, True),
    rl.sparse_bsc: (False, True),
}
_OF_VALUES = frozenset(
    [
        "abs",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "erf",
        "expm1",
        "floor",
        "frac",
        "log1p",
        "neg",
        "relu",
        "round",
        "sgn",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "trunc",
        "deg2rad",
        "rad2deg",
        "isnan",
        "isinf",
        "positive",
        "clone",
        "detach",
        "to",
        "mul",
        "div",
        "float",
        "double",
        "half",
        "bfloat16",
        "long",
        "int",
        "short",
        "char",
        "byte",
        "bool",
        "cpu",
        "contiguous",
        "conj_physical",
        "angle",
        "signbit",
        "isposinf",
        "isneginf",
        "erfinv",
        "__rmul_op__",
        "real",
        "imag",
    ]
)
# Answered as for coordinates.
_SHARED = frozenset(
    ["to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "__setitem__", "to_sparse",
     "untyped_storage", "is_same_size", "sparse_mask", "to_dense", "new_zeros", "new_empty"]
)  # fmt: skip


class SparseBlockTensor(SparseCompressedTensor):
    """See the module."""

    _layout: rl.layout
    _others: Tensor

    @property
    def layout(self):
        return self._layout

    @property
    def is_sparse_csr(self):
        return self._layout is rl.sparse_csr

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from rushlight.sparse import _functions

        name = getattr(func, "_op_name", func.__name__).rpartition(".")[2]
        kwargs = kwargs or {}
        if name in _METADATA:
            return without_overrides(func, *args, **kwargs)
        if name in _OF_VALUES:
            mine = next(a for a in args if isinstance(a, cls))
            others = [a for a in args if a is not mine and isinstance(a, rl.Tensor) and a.dim() > 0]
            if not others:
                values = [a._entries if a is mine else a for a in args]
                return mine._with(func(*values, **kwargs))
        if name in ("sum", "any") and len(args) == 1:
            return func(args[0]._entries, **kwargs)
        if name in ("allclose", "equal"):
            return func(*[a.to_dense() if isinstance(a, cls) else a for a in args], **kwargs)
        if name.endswith("_") and name[:-1] in _OF_VALUES:
            mine = args[0]
            return _functions.written(mine, getattr(rl.Tensor, name[:-1])(*args, **kwargs))
        if name in ("copy_", "resize_"):
            return _functions.HANDLERS[name](*args, **kwargs)
        if name == "_run_backward":
            return _functions.run_backward(*args)
        if name in ("ones_like", "rand_like", "randn_like", "full_like"):
            return args[0]._with(func(args[0]._entries, *args[1:], **kwargs))
        if name in ("zeros_like", "empty_like"):
            mine = args[0]
            if kwargs.get("layout") is rl.strided:
                return func(mine.to_dense(), **kwargs)
            if kwargs.get("layout") not in (None, mine._layout):
                raise RuntimeError(
                    f"{name} with different sparse layout is not supported (self is {mine._layout})"
                )
            starts = mine._starts.new_zeros(mine._starts.shape)
            return assemble(mine._layout, starts, mine._others[..., :0], mine._first(0), mine.shape)
        if name in ("t", "_T", "transpose", "mT", "_mT"):
            return _transposed(args[0], *args[1:])
        if name in ("select", "select_copy"):
            return _selected(*args, **kwargs)
        if name == "__getitem__":
            return _item(*args)
        if name in _SHARED:
            return _functions.HANDLERS[name](*args, **kwargs)
        if isinstance(kwargs.get("out"), rl.Tensor):
            out = kwargs.pop("out")
            return out.copy_(func(*args, **kwargs))
        if name in ("mm", "matmul", "__matmul__", "mv", "addmm", "addmv", "bmm", "linear", "baddbmm"):
            plain = [_as_matrix(a) if isinstance(a, cls) else a for a in args]
            return func(*plain, **kwargs)
        mine = next((a for a in args if isinstance(a, cls)), None)
        layout = "compressed blocks" if mine is None else mine.layout
        raise NotImplementedError(
            f"{name} is not implemented for sparse tensors of {layout}: call .to_dense() first"
        )

    def sparse_dim(self):
        return 2

    def dense_dim(self):
        return self.dim() - 2 - self._batch()

    def _batch(self):
        return self._starts.dim() - 1

    def _nnz(self):
        return self._others.size(-1)

    def _block(self):
        at = self._starts.dim()
        return tuple(self._entries.shape[at : at + 2]) if KINDS[self._layout][1] else (1, 1)

    def _first(self, count):
        return self._entries.narrow(self._batch(), 0, count)

    def _with(self, values):
        return assemble(self._layout, self._starts, self._others, values, self.shape)

    def _part(self, name, by_rows, compressed):
        if KINDS[self._layout][0] is not by_rows:
            _text.refuse(name, "row compressed " if by_rows else "column compressed ", self)
        return self._starts if compressed else self._others

    def crow_indices(self):
        return self._part("crow_indices", True, True)

    def col_indices(self):
        return self._part("col_indices", True, False)

    def ccol_indices(self):
        return self._part("ccol_indices", False, True)

    def row_indices(self):
        return self._part("row_indices", False, False)

    def _whole(self):
        """values, and for each its batch, row and column of blocks."""
        batch = self._starts.shape[:-1]
        count, nnz = batch.numel() if batch else 1, self._nnz()  # -1 means nothing where there is nothing
        starts = self._starts.reshape(count, self._starts.size(-1)).to(rl.int64)
        others = self._others.reshape(count, nnz).to(rl.int64)
        counts = (starts[:, 1:] - starts[:, :-1]).reshape(-1)
        own = rl.repeat_interleave(rl.arange(counts.numel()) % max(starts.size(1) - 1, 1), counts)
        item = rl.arange(starts.size(0)).repeat_interleave(others.size(1))
        entries = self._entries.reshape(count * nnz, *self._entries.shape[len(batch) + 1 :])
        by_rows, blocks = KINDS[self._layout]
        if not blocks:
            entries = entries.reshape(entries.size(0), 1, 1, *entries.shape[1:])
        others = others.reshape(-1)
        return entries, item, *((own, others) if by_rows else (others, own))

    def to_dense(self, dtype=None, *, masked_grad=None):
        """The same values as a strided tensor."""
        entries, item, row, column = self._whole()
        entries = entries if dtype is None else entries.to(dtype)
        b, (high, wide) = self._batch(), self._block()
        batch, (rows, columns), dense = self.shape[:b], self.shape[b : b + 2], self.shape[b + 2 :]
        count = batch.numel() if b else 1
        whole = entries.new_zeros((count, rows // high, columns // wide, high, wide, *dense))
        whole = whole.index_put((item, row, column), entries)
        order = (0, 1, 3, 2, 4, *range(5, whole.dim()))
        return whole.permute(order).reshape(self.shape)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        """The same entries as coordinates, or in another layout."""
        if layout is not None and layout is not rl.sparse_coo:
            from rushlight.sparse._layouts import converted

            return converted(self, layout, blocksize, dense_dim)
        _text.check_sparse_dim(self, sparse_dim, 2)
        entries, item, row, column = self._whole()
        high, wide = self._block()
        down, across = rl.arange(high).repeat_interleave(wide), rl.arange(wide).repeat(high)
        row = (row.unsqueeze(1) * high + down).flatten()
        column = (column.unsqueeze(1) * wide + across).flatten()
        coords = [row, column]
        item = item.repeat_interleave(high * wide)
        for size in reversed(self.shape[: self._batch()]):
            coords.insert(0, item % size)
            item = item // size
        values = entries.reshape(row.numel(), *entries.shape[3:])
        in_order = KINDS[self._layout] == (True, False)
        return make(rl.stack(coords), values, self.shape, in_order)

    def __repr__(self, **kwargs):
        first, second = ("crow", "col") if KINDS[self._layout][0] else ("ccol", "row")
        parts = [
            (f"{first}_indices", self._starts),
            (f"{second}_indices", self._others),
            ("values", self._entries),
        ]
        return _text.describe(self, parts, own_line=False)

    __str__ = __repr__

    def __deepcopy__(self, memo):
        entries = self._entries.detach().clone().requires_grad_(self.requires_grad)
        return assemble(self._layout, self._starts.clone(), self._others.clone(), entries, self.shape)

    def __reduce_ex__(self, protocol):
        return assemble, (self._layout, self._starts, self._others, self._entries.detach(), tuple(self.shape))


def assemble(layout, starts, others, values, size):
    """A tensor of parts that are known to fit."""
    tensor = rl.zeros((), dtype=values.dtype).expand(tuple(size)).as_subclass(SparseBlockTensor)
    tensor._layout, tensor._starts, tensor._others = layout, starts, others
    tensor._entries, tensor._coalesced = values, True
    return tensor


def _selected(a, dim, index):
    """One of a batch in its own layout; a row or column of one matrix as coordinates."""
    b, dim = a._batch(), range(a.dim())[dim]
    if dim >= b:
        if b and dim < b + 2:
            raise RuntimeError(
                "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors."
            )
        return a.to_sparse().coalesce().select(dim, index)
    if not -a.size(dim) <= index < a.size(dim):
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(a.shape)} at dimension {dim}"
        )
    starts, others, entries = (x.select(dim, index) for x in (a._starts, a._others, a._entries))
    return smallest(a._layout, starts, others, entries, (*a.shape[:dim], *a.shape[dim + 1 :]))


def smallest(layout, starts, others, values, size):
    """Parts that fit, as the class that holds them."""
    result = assemble(layout, starts, others, values, size)
    if KINDS[layout][1] or len(size) > 2:
        return result
    from rushlight.sparse._compressed import _assemble, class_of

    _, _, row, column = result._whole()
    return _assemble(class_of(layout), starts, rl.stack([row, column]), values, size)


def _item(a, index):
    parts = index if isinstance(index, tuple) else (index,)
    if all(type(part) is int for part in parts) and len(parts) <= a.dim():
        for part in parts:
            a = a.select(0, part)
        return a
    return a.to_sparse()[index]


def _transposed(a, dim0=-2, dim1=-1):
    if a.dense_dim():
        raise RuntimeError(
            "transpose(): hybrid sparse compressed tensors with dense dimensions are not supported: transpose coordinates, "
            "x.to_sparse(), instead"
        )
    b = a._batch()
    dims = {d % a.dim() for d in (dim0, dim1)}
    if len(dims) == 1:
        return assemble(a._layout, a._starts, a._others, a._entries.view_as(a._entries), a.shape)._seen_from(
            a
        )
    if max(dims) < b:
        first, second = dims
        starts, others, entries = (x.transpose(first, second) for x in (a._starts, a._others, a._entries))
        size = list(a.shape)
        size[first], size[second] = size[second], size[first]
        return assemble(a._layout, starts, others, entries, size)._seen_from(a)
    if dims != {b, b + 1}:
        kinds = [
            f"{d}({('Batch', 'Sparse', 'Dense')[(d >= b) + (d >= b + 2)]})"
            for d in (dim0 % a.dim(), dim1 % a.dim())
        ]
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
            f"{kinds[0]} and {kinds[1]}"
        )
    others = {
        rl.sparse_csr: rl.sparse_csc,
        rl.sparse_csc: rl.sparse_csr,
        rl.sparse_bsr: rl.sparse_bsc,
        rl.sparse_bsc: rl.sparse_bsr,
    }
    values = a._entries.transpose(b + 1, b + 2) if KINDS[a._layout][1] else a._entries.view_as(a._entries)
    size = (*a.shape[:b], a.shape[b + 1], a.shape[b], *a.shape[b + 2 :])
    return assemble(others[a._layout], a._starts, a._others, values, size)._seen_from(a)


def _as_matrix(a):
    """One matrix as compressed rows, a batch as coordinates: what products take."""
    coordinates = a.to_sparse()
    return coordinates.to_sparse(layout=rl.sparse_csr) if a.dim() == 2 else coordinates


def from_dense(dense, layout, blocksize=None, dense_dim=0):
    """The nonzero entries, or blocks with one, of a dense tensor."""
    by_rows, blocks = KINDS[layout]
    dense_dim = dense_dim or 0
    name = f"dense_to_{str(layout).rpartition('.')[2]}"
    if dense.dim() < 2:
        raise RuntimeError(
            f"{name}: expected at least 2 dimensions, of rows and columns, got a tensor of {dense.dim()}"
        )
    b = dense.dim() - 2 - dense_dim
    if b < 0 or dense_dim < 0:
        raise RuntimeError(
            f"{name}: dense_dim argument must be in [0,{dense.dim() - 2}] range, but {dense_dim} is given"
        )
    if blocks:
        from rushlight.sparse._layouts import block_of

        blocksize = block_of(blocksize, name)
    high, wide = blocksize if blocks else (1, 1)
    rows, columns = dense.shape[b : b + 2]
    if rows % high or columns % wide:
        raise RuntimeError(
            f"{name}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize ({high},{wide})"
        )
    batch, rest = dense.shape[:b], dense.shape[b + 2 :]
    count = batch.numel() if b else 1
    if count == 0:
        raise RuntimeError(
            f"to_{str(layout).rpartition('.')[2]}: Expected product of batch dimensions to be non-zero."
        )
    whole = dense.reshape(count, rows // high, high, columns // wide, wide, *rest)
    whole = whole.permute(0, 1, 3, 2, 4, *range(5, whole.dim()))
    filled = (whole.detach() != 0).flatten(3).any(-1)
    if not by_rows:
        filled = filled.transpose(1, 2)
    per_item = filled.sum((1, 2))
    if count > 1 and bool((per_item != per_item[0]).any()):
        raise RuntimeError("Expect the same number of specified elements per batch.")
    item, own, others = filled.nonzero().t().contiguous()
    values = whole[(item, own, others) if by_rows else (item, others, own)]
    nnz = int(per_item[0]) if count else 0
    starts = rl.cat([filled.new_zeros((count, 1), dtype=rl.int64), filled.sum(2).cumsum(1)], 1)
    if not blocks:
        values = values.reshape(values.size(0), *rest)
    shape = tuple(values.shape[1:])
    if not blocks and dense.dim() == 2:
        from rushlight.sparse._compressed import _assemble, class_of

        coords = rl.stack((own, others) if by_rows else (others, own))
        return _assemble(class_of(layout), starts.reshape(-1), coords, values, dense.shape)
    return assemble(
        layout,
        starts.reshape(*batch, starts.size(1)),
        others.reshape(*batch, nnz),
        values.reshape(*batch, nnz, *shape),
        dense.shape,
    )
