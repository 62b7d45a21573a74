"""Compressed rows (CSR) and columns (CSC): where the entries of each row, or column, begin. They compute as COO does,
and give their own layout back."""

import rushlight as rl
from rushlight._compose import factory
from rushlight.sparse import _text
from rushlight.sparse._coo import SparseTensor, make


class SparseCompressedTensor(SparseTensor):
    """_starts: (n + 1,) where the entries of each row (`_along` 0) or column (1) begin; _places: (2, nnz) in that order."""

    is_sparse = False

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs)
        if type(result) is SparseTensor and result.dim() == 2:
            return compress(result, cls)
        return result

    def values(self):
        return self._entries

    def coalesce(self):
        _text.refuse("coalesce", "coordinate ", self)

    def is_coalesced(self):
        _text.refuse("is_coalesced", "coordinate ", self)

    def indices(self):
        _text.refuse("indices", "coordinate ", self)

    def _summed(self):
        return self

    def _as_gradient(self, shared):
        return self._with(self._entries.clone()) if shared else self

    def _with(self, entries):
        return _assemble(type(self), self._starts, self._places, entries, self.shape)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        """The same entries as coordinates, or in another layout."""
        if layout is not None and layout is not rl.sparse_coo:
            return converted(self, layout, blocksize, dense_dim)
        return make(self._places, self._entries, self.shape, self._along == 0)

    def __repr__(self, **kwargs):
        other = self._places[1 - self._along]
        first, second = ("crow", "col") if self._along == 0 else ("ccol", "row")
        parts = [(f"{first}_indices", self._starts), (f"{second}_indices", other), ("values", self._entries)]
        return _text.describe(self, parts, own_line=False)

    __str__ = __repr__

    def __deepcopy__(self, memo):
        entries = self._entries.detach().clone().requires_grad_(self.requires_grad)
        return _assemble(type(self), self._starts.clone(), self._places.clone(), entries, self.shape)

    def __reduce_ex__(self, protocol):
        places = self._places[1 - self._along]
        return _rebuild, (self.layout, self._starts, places, self._entries.detach(), tuple(self.shape))


class SparseCsrTensor(SparseCompressedTensor):
    """A matrix by rows: crow_indices (rows + 1,), col_indices and values (nnz,)."""

    is_sparse_csr = True
    _along = 0

    @property
    def layout(self):
        return rl.sparse_csr

    def crow_indices(self):
        return self._starts

    def col_indices(self):
        return self._places[1]


class SparseCscTensor(SparseCompressedTensor):
    """A matrix by columns: ccol_indices (columns + 1,), row_indices and values (nnz,)."""

    _along = 1

    @property
    def layout(self):
        return rl.sparse_csc

    def ccol_indices(self):
        return self._starts

    def row_indices(self):
        return self._places[0]


def converted(input, layout, blocksize=None, dense_dim=None):
    """A dense or sparse tensor in a compressed layout."""
    if layout in (rl.sparse_csr, rl.sparse_csc) and blocksize is not None:
        raise RuntimeError("to_sparse: blocksize is for the layouts sparse_bsr and sparse_bsc")
    if input.dim() == 2 and not dense_dim and layout in (rl.sparse_csr, rl.sparse_csc):
        return compress(input, class_of(layout))
    from rushlight.sparse._blocks import from_dense

    hybrid = input.dense_dim() if isinstance(input, SparseTensor) and input.layout is rl.sparse_coo else 0
    dense = input.to_dense() if isinstance(input, SparseTensor) else input
    return from_dense(dense, layout, blocksize, dense_dim or hybrid)


def class_of(layout):
    for kind, name in ((SparseCsrTensor, rl.sparse_csr), (SparseCscTensor, rl.sparse_csc)):
        if layout is name:
            return kind
    raise NotImplementedError(
        f"only the layouts sparse_coo, sparse_csr and sparse_csc are supported, got {layout}"
    )


def _assemble(kind, starts, places, entries, size):
    tensor = rl.zeros((), dtype=entries.dtype).expand(tuple(size)).as_subclass(kind)
    tensor._starts, tensor._places, tensor._entries, tensor._coalesced = starts, places, entries, True
    return tensor


def compress(input, kind):
    """A matrix, dense or sparse, as `kind`."""
    if type(input) is kind:
        return input
    if input.dim() != 2:
        raise RuntimeError(f"to {kind.__name__}: only matrices are supported, got {input.dim()} dimensions")
    coo = input.to_sparse()._summed()
    places, entries, along = coo._places, coo._entries, kind._along
    if along == 1:
        order = rl.argsort(places[1], stable=True)
        places, entries = places[:, order], entries[order]
        starts = rl.searchsorted(places[1].contiguous(), rl.arange(input.size(1) + 1))
    else:
        starts = coo._row_starts()
    return _assemble(kind, starts, places, entries, input.shape)


def _compressed(layout, starts, others, values, size, dtype, requires_grad):
    starts, others, values = (
        x if isinstance(x, rl.Tensor) else rl.tensor(x) for x in (starts, others, values)
    )
    for name, x in (("compressed_indices", starts), ("plain_indices", others)):
        if x.dim() < 1:
            raise RuntimeError(f"{name} must have dimensionality >= 1 but got {x.dim()}")
    if layout in (rl.sparse_bsr, rl.sparse_bsc) or starts.dim() > 1 or values.dim() > 1:
        from rushlight.sparse._blocks import build

        values = values if dtype is None else values.to(dtype)
        if requires_grad:
            values = values.detach().requires_grad_()
        return build(layout, starts, others, values, size)
    kind = class_of(layout)
    names = (
        ("crow_indices", "col_indices", "rows")
        if kind._along == 0
        else ("ccol_indices", "row_indices", "columns")
    )
    values = values if dtype is None else values.to(dtype)
    if starts.dim() != 1 or others.dim() != 1 or values.dim() != 1:
        raise RuntimeError(
            f"number of dimensions of {names[0]} and {names[1]} must be the same but got {starts.dim()} and {others.dim()}"
        )
    if size is None:
        size = (starts.numel() - 1, int(others.max()) + 1 if others.numel() else 0)
        size = size if kind._along == 0 else size[::-1]
    size = tuple(int(n) for n in size)
    if len(size) != 2:
        raise RuntimeError(f"expected the size of a matrix, got {size}")
    along, across = size[kind._along], size[1 - kind._along]
    if starts.numel() and int(starts[0]) != 0:
        raise RuntimeError(f"`{names[0]}[..., 0] == 0` is not satisfied.")
    if starts.numel() != along + 1 or int(starts[-1]) != others.numel():
        raise RuntimeError(
            f"{names[0]} must go from 0 to nnz ({others.numel()}) in {names[2]} + 1 ({along + 1}) numbers"
        )
    counts = starts[1:] - starts[:-1]
    if along and int(counts.min()) < 0:
        raise RuntimeError(f"{names[0]} must not fall")
    if values.numel() != others.numel():
        raise RuntimeError(f"{others.numel()} {names[1]}, but {values.numel()} values")
    if others.numel() and not (int(others.min()) >= 0 and int(others.max()) < across):
        raise RuntimeError(f"{names[1]} must be within 0 and {across - 1}")
    if requires_grad:
        values = values.detach().requires_grad_()
    own, others = rl.repeat_interleave(rl.arange(along), counts.to(rl.int64)), others.to(rl.int64)
    places = rl.stack([own, others] if kind._along == 0 else [others, own])
    return _assemble(kind, starts, places, values, size)


@factory
def sparse_csr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, device=None, requires_grad=False, **kwargs
):
    """A sparse matrix given by where its rows begin, the columns of its entries, and their values."""
    return _compressed(rl.sparse_csr, crow_indices, col_indices, values, size, dtype, requires_grad)


@factory
def sparse_csc_tensor(
    ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, requires_grad=False, **kwargs
):
    """A sparse matrix given by where its columns begin, the rows of its entries, and their values."""
    return _compressed(rl.sparse_csc, ccol_indices, row_indices, values, size, dtype, requires_grad)


@factory
def sparse_bsr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, device=None, requires_grad=False, **kwargs
):
    """A sparse matrix of blocks, given by where its rows of blocks begin, the columns of its blocks, and the blocks."""
    return _compressed(rl.sparse_bsr, crow_indices, col_indices, values, size, dtype, requires_grad)


@factory
def sparse_bsc_tensor(
    ccol_indices, row_indices, values, size=None, *, dtype=None, device=None, requires_grad=False, **kwargs
):
    """A sparse matrix of blocks, given by where its columns of blocks begin, the rows of its blocks, and the blocks."""
    return _compressed(rl.sparse_bsc, ccol_indices, row_indices, values, size, dtype, requires_grad)


@factory
def sparse_compressed_tensor(
    compressed_indices,
    plain_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    requires_grad=False,
    **kwargs,
):
    """A sparse matrix in the compressed layout that is named: sparse_csr, sparse_csc, sparse_bsr or sparse_bsc."""
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got none")
    return _compressed(layout, compressed_indices, plain_indices, values, size, dtype, requires_grad)


def _rebuild(layout, starts, others, values, size):
    return _compressed(layout, starts, others, values, size, None, False)
