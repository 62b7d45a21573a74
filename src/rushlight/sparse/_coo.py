"""The sparse tensor: a Tensor of its shape and type that takes no memory, with the entries beside it.

Every op on it arrives at __torch_function__ and is answered by _functions.py, or refused by name. Gradients
flow through the values: a sparse tensor wants gradients when its values do.
"""

import rushlight as rl
from rushlight._C import Tensor
from rushlight.sparse import _text

_METADATA = frozenset(
    [
        "dim",
        "ndimension",
        "size",
        "numel",
        "nelement",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "element_size",
        "get_device",
    ]
)


class SparseTensor(Tensor):
    """indices: (sparse_dim, nnz) int64; values: (nnz, *dense sizes)."""

    _ops_only = True

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from rushlight.sparse import _functions

        name = func.__name__
        if name in _METADATA:
            return without_overrides(func, *args, **(kwargs or {}))
        handler = _functions.HANDLERS.get(name)
        if handler is None:
            raise NotImplementedError(
                f"{name} is not implemented for sparse tensors (torch.sparse_coo): call .to_dense() first"
            )
        return handler(*args, **(kwargs or {}))

    is_sparse = True

    @property
    def layout(self):
        return rl.sparse_coo

    @property
    def requires_grad(self):
        return self._entries.requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        self._entries.requires_grad = value

    def requires_grad_(self, requires_grad=True):
        self._entries.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self):
        return self._entries.is_leaf

    @property
    def grad(self):
        grad = self._entries.grad
        return None if grad is None else make(self._places, grad, self.shape, self._coalesced)

    @grad.setter
    def grad(self, value):
        self._entries.grad = None if value is None else value.coalesce()._values()

    @property
    def grad_fn(self):
        return self._entries.grad_fn

    def sparse_dim(self):
        return self._places.size(0)

    def dense_dim(self):
        return self._entries.dim() - 1

    def _nnz(self):
        return self._places.size(1)

    def _indices(self):
        return self._places

    def _values(self):
        return self._entries

    def _coalesced_(self, coalesced):
        self._coalesced = coalesced
        return self

    def is_coalesced(self):
        return self._coalesced

    def indices(self):
        self._need_coalesced("indices")
        return self._places

    def values(self):
        self._need_coalesced("values")
        return self._entries

    def _need_coalesced(self, name):
        if not self._coalesced:
            raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")

    def crow_indices(self):
        _text.refuse("crow_indices", "row compressed ", self)

    def col_indices(self):
        _text.refuse("col_indices", "row compressed ", self)

    def ccol_indices(self):
        _text.refuse("ccol_indices", "column compressed ", self)

    def row_indices(self):
        _text.refuse("row_indices", "column compressed ", self)

    def _with(self, entries):
        """Other values at the same places."""
        result = make(self._places, entries, self.shape, self._coalesced)
        result.__dict__.update({k: v for k, v in self.__dict__.items() if k == "_starts"})
        return result

    def _keys(self, leave_out=None):
        """(nnz,) the place of each entry as one number, the last sparse dimension counting fastest."""
        key = rl.zeros(self._nnz(), dtype=rl.int64)
        for d, row in enumerate(self._places):
            if d != leave_out:
                key = key * self.size(d) + row
        return key

    def _row_starts(self):
        """(rows + 1,) where the entries of each row begin; of coalesced matrices, whose entries are in that order."""
        if "_starts" not in self.__dict__:
            self._starts = rl.searchsorted(self._places[0].contiguous(), rl.arange(self.size(0) + 1))
        return self._starts

    def _summed(self):
        """Entries in order, each place once: coordinates are coalesced, compressed ones are so already."""
        return self.coalesce()

    def coalesce(self):
        """The same tensor with its entries sorted and each place named once."""
        if self._coalesced:
            return self
        places, entries, sizes = self._places, self._entries, self.shape[: self.sparse_dim()]
        if self.sparse_dim() == 0 or self._nnz() == 0:
            if self._nnz() > 1:
                places, entries = places[:, :1], entries.sum(0, keepdim=True)
            return make(places, entries, self.shape, True)
        unique, inverse = rl.unique(self._keys(), return_inverse=True)
        summed = rl.zeros((unique.numel(), *entries.shape[1:]), dtype=entries.dtype)
        summed = summed.index_add(0, inverse, entries)
        rows = []
        for n in reversed(sizes):
            rows.append(unique % n)
            unique = unique // n
        return make(rl.stack(rows[::-1]), summed, self.shape, True)

    def to_dense(self, dtype=None, *, masked_grad=None):
        entries = self._entries if dtype is None else self._entries.to(dtype)
        if self.sparse_dim() == 0:
            return entries.sum(0)
        whole = rl.zeros(tuple(self.shape), dtype=entries.dtype)
        return whole.index_put_(tuple(self._places), entries, accumulate=not self._coalesced)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        if layout is None or layout is rl.sparse_coo:
            return self
        from rushlight.sparse._compressed import class_of, compress

        return compress(self, class_of(layout))

    def to_sparse_coo(self):
        return self.to_sparse()

    def __repr__(self, **kwargs):
        return _text.describe(self, [("indices", self._places), ("values", self._entries)], own_line=True)

    __str__ = __repr__

    def __deepcopy__(self, memo):
        entries = self._entries.detach().clone().requires_grad_(self.requires_grad)
        return make(self._places.clone(), entries, self.shape, self._coalesced)

    def __reduce_ex__(self, protocol):
        return make, (self._places, self._entries.detach(), tuple(self.shape), self._coalesced)


rl._C.ops["_set_sparse_type"](SparseTensor)


def without_overrides(function, *args, **kwargs):
    before = rl._C.ops["_set_torch_function"](False)
    try:
        return function(*args, **kwargs)
    finally:
        rl._C.ops["_set_torch_function"](before)


def make(indices, values, size, coalesced=False):
    """A sparse tensor of parts that are known to fit."""
    tensor = rl.zeros((), dtype=values.dtype).expand(tuple(size)).as_subclass(SparseTensor)
    tensor._places, tensor._entries, tensor._coalesced = indices, values, coalesced
    return tensor


def sparse_coo_tensor(
    indices,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """A sparse tensor with `values` at the places that the columns of `indices` name; the rest is zero."""
    if values is None or (size is None and _is_size(indices)):
        size = indices if values is None else size
        indices, values = rl.empty((len(size), 0), dtype=rl.int64), rl.empty(0, dtype=dtype)
    indices = indices if isinstance(indices, Tensor) else rl.tensor(indices)
    values = values if isinstance(values, Tensor) else rl.tensor(values, dtype=dtype)
    if indices.numel() == 0 and indices.dim() == 1:
        indices = indices.reshape(0, 0)
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == rl.bool:
        raise RuntimeError(f"indices must be an int64 tensor, but got {indices.dtype}")
    indices = indices.to(rl.int64)
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {indices.dim()}-d")
    if dtype is not None:
        values = values.to(dtype)
    if values.dim() == 0:
        values = values.expand(indices.size(1)) if indices.size(1) else values.reshape(1)[:0]
    if values.size(0) != indices.size(1):
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.size(1)}, "
            f"nnz from values: {values.size(0)}"
        )
    size = _checked_size(indices, values, size)
    if requires_grad:
        values = values.detach().requires_grad_()
    return make(indices, values, size, bool(is_coalesced))


def _is_size(value):
    return isinstance(value, (rl.Size, tuple, list)) and all(isinstance(n, int) for n in value)


def _checked_size(indices, values, size):
    lowest, highest = [0] * indices.size(0), [0] * indices.size(0)
    if indices.numel():
        lowest, highest = (x.tolist() for x in indices.aminmax(dim=1))
        highest = [n + 1 for n in highest]
    if size is None:
        size = (*highest, *values.shape[1:])
    size = tuple(int(n) for n in size)
    if len(size) != indices.size(0) + values.dim() - 1:
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({indices.size(0)}) + dense_dim ({values.dim() - 1}), "
            f"but got {len(size)}"
        )
    for d in range(indices.size(0)):
        if lowest[d] < 0:
            raise RuntimeError(f"found negative index {lowest[d]} for dim {d}")
        if highest[d] > size[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {size[d]} "
                f"but found index {highest[d] - 1}"
            )
    if size[indices.size(0) :] != tuple(values.shape[1:]):
        raise RuntimeError(
            f"values has incorrect size, expected {size[indices.size(0) :]}, got {tuple(values.shape[1:])}"
        )
    return size


def to_sparse(dense, sparse_dim=None):
    """The nonzero entries of a dense tensor."""
    sparse_dim = dense.dim() if sparse_dim is None else sparse_dim
    if not 0 <= sparse_dim <= dense.dim():
        raise RuntimeError(f"sparse_dim must be between 0 and {dense.dim()}, got {sparse_dim}")
    filled = dense.detach() != 0
    for _ in range(dense.dim() - sparse_dim):
        filled = filled.any(-1)
    where = filled.nonzero()
    if sparse_dim == 0:
        return make(rl.empty((0, 1), dtype=rl.int64), dense.unsqueeze(0), dense.shape, True)
    places = where.t().contiguous()
    return make(places, dense[tuple(places)], dense.shape, True)
