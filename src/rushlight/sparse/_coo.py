"""The sparse tensor: a Tensor of its shape and type that takes no memory, with the entries beside it.

Every op on it arrives at __torch_function__ and is answered by _functions.py, or refused by name. Gradients
flow through the values: a sparse tensor wants gradients when its values do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight._C import Tensor, device, dtype
from rushlight._core.compose import factory
from rushlight.sparse import _text
from rushlight.sparse._invariants import check_sparse_tensor_invariants

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
        "is_distributed",
        "is_inference",
        "indices_copy",
        "values_copy",
        "_indices_copy",
        "_values_copy",
        "crow_indices_copy",
        "col_indices_copy",
        "ccol_indices_copy",
        "row_indices_copy",
        "result_type",
    ]
)


class SparseTensor(Tensor):
    """indices: (sparse_dim, nnz) int64; values: (nnz, *dense sizes)."""

    _ops_only = True
    _entries: Tensor
    _stored: Tensor
    _unchecked = False  # whether indices may lie outside: looked at before anything reads them

    @property
    def _coords(self):
        if self._unchecked:
            _check_coords(self._stored, self.shape)
            self._unchecked = False
        return self._stored

    @_coords.setter
    def _coords(self, indices):
        self._stored = indices

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from rushlight.sparse import _functions

        name = getattr(func, "_op_name", func.__name__).rpartition(".")[2]
        if name in _METADATA:
            return without_overrides(func, *args, **(kwargs or {}))
        handler = _functions.HANDLERS.get(name) or _functions.in_place(name)
        if kwargs and isinstance(kwargs.get("out"), SparseTensor):
            given = dict(kwargs)
            out = given.pop("out")
            if handler is not None:
                return _functions.written(out, handler(*args, **given))
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
        """What was assigned, and what backward has added at the entries since."""
        added = self._entries.grad
        if added is not None:
            own, self._entries.grad = self.__dict__.get("_own_grad"), None
            self._own_grad = self._gradient(added) if own is None else own + self._gradient(added)
        return self.__dict__.get("_own_grad")

    @grad.setter
    def grad(self, value):
        self._entries.grad = None
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got {type(value)}")
            if value.shape != self.shape:
                raise RuntimeError(
                    f"assigned grad has data of a different size: expected {list(self.shape)}, got {list(value.shape)}"
                )
            if value.dtype is not self.dtype:
                raise RuntimeError(
                    f"assigned grad has data of a different type: expected {self.dtype}, got {value.dtype}"
                )
        self._own_grad = value

    def register_hook(self, hook):
        """Calls hook(gradient) with the sparse gradient by this tensor; what it returns replaces it."""
        if not self._entries.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")

        def of_entries(grad):
            changed = hook(None if grad is None else self._gradient(grad))
            if changed is None:
                return None
            dense = changed.to_dense() if isinstance(changed, SparseTensor) else changed
            return self._picked(dense)

        return self._entries.register_hook(of_entries)

    def _gradient(self, entries):
        """The gradient by this tensor, given that by each entry. Entries at one index are summands of the same element:
        each of them has that element's derivative, which the gradient holds once.
        """
        if self._coalesced or self._nnz() <= 1:
            return self._with(entries)
        if self.sparse_dim() == 0:
            return make(self._coords[:, :1], entries[:1], self.shape, False)
        keys, inverse = rl.unique(self._keys(), return_inverse=True)
        if keys.numel() == self._nnz():
            return self._with(entries)
        first = rl.empty(keys.numel(), dtype=rl.int64)
        first[inverse] = rl.arange(self._nnz())
        return make(self._coords[:, first], entries[first], self.shape, False)

    def _picked(self, dense):
        """The elements of a dense tensor at the indices of the entries."""
        return dense[tuple(self._coords)] if self.sparse_dim() else dense.unsqueeze(0)

    def _as_gradient(self, shared):
        """This tensor as somebody's .grad, which is going to be added to: a copy if others hold it."""
        if not shared and self._entries.is_contiguous() and self._stored.is_contiguous():
            return self
        return make(self._coords.clone(), self._entries.contiguous().clone(), self.shape, self._coalesced)

    @property
    def grad_fn(self):
        return self._entries.grad_fn

    def sparse_dim(self):
        return self._stored.size(0)

    def dense_dim(self):
        return self._entries.dim() - 1

    _dimI, _dimV = sparse_dim, dense_dim

    def _nnz(self):
        return self._stored.size(1)

    def _indices(self):
        return self._stored

    def _values(self):
        return self._entries.detach() if self._entries.requires_grad else self._entries  # not differentiable

    def _coalesced_(self, coalesced):
        self._coalesced = coalesced
        return self

    def is_coalesced(self):
        return self._coalesced

    def indices(self):
        self._need_coalesced("indices")
        return self._coords

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

    @property
    def _base(self):
        return self.__dict__.get("_seen")

    def _is_view(self):
        return self._base is not None

    def _seen_from(self, base):
        """Marks a tensor that shares its entries with another one."""
        if self is not base:
            self._seen = base if base._base is None else base._base
        return self

    def _with(self, entries):
        """Other values at the same indices."""
        result = make(self._coords, entries, self.shape, self._coalesced)
        result.__dict__.update({k: v for k, v in self.__dict__.items() if k == "_starts"})
        return result

    def _keys(self, leave_out=None):
        """(nnz,) the flat index of each entry, the last sparse dimension counting fastest."""
        key = rl.zeros(self._nnz(), dtype=rl.int64)
        for d, row in enumerate(self._coords):
            if d != leave_out:
                key = key * self.size(d) + row
        return key

    def _row_starts(self):
        """(rows + 1,) where the entries of each row begin; of coalesced matrices, whose entries are in that order."""
        if "_starts" not in self.__dict__:
            self._starts = rl.searchsorted(self._coords[0].contiguous(), rl.arange(self.size(0) + 1))
        return self._starts

    def _summed(self):
        """Entries in order, each index once: coordinates are coalesced, compressed ones are so already."""
        return self.coalesce()

    def coalesce(self):
        """The same tensor with its entries sorted and each index named once."""
        if self._coalesced:
            return self
        coords, entries, sizes = self._coords, self._entries, self.shape[: self.sparse_dim()]
        if self.sparse_dim() == 0 or self._nnz() == 0:
            if self._nnz() > 1:
                coords, entries = coords[:, :1], entries.sum(0, keepdim=True, dtype=entries.dtype)
            return make(coords, entries, self.shape, True)
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
            return entries.sum(0, dtype=entries.dtype)
        whole = rl.zeros(tuple(self.shape), dtype=entries.dtype)
        return whole.index_put_(tuple(self._coords), entries, accumulate=not self._coalesced)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        if layout is None or layout is rl.sparse_coo:
            _text.check_sparse_dim(self, sparse_dim, self.sparse_dim())
            return self
        from rushlight.sparse._layouts import converted

        return converted(self, layout, blocksize, dense_dim)

    def to_sparse_coo(self):
        return self.to_sparse()

    def _to_dense(self, dtype=None, masked_grad=None):
        if dtype is not None:
            raise RuntimeError("dtype argument is not supported by sparse_to_dense")
        return self.to_dense()

    def _sparse_mask_projection(self, mask, accumulate_matches=False):
        return self._resizing("_sparse_mask_projection").projection(self, mask, accumulate_matches)

    def resize_as_sparse_(self, the_template):
        if self.layout is not rl.sparse_coo:
            from rushlight.sparse import _compressed_resize

            return _compressed_resize.resize_as(self, the_template)
        return self._resizing("resize_as_sparse_").resize_as(self, the_template)

    def sparse_resize_(self, size, sparse_dim, dense_dim):
        return self._resizing("sparse_resize_").resize(self, size, sparse_dim, dense_dim)

    def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
        return self._resizing("sparse_resize_and_clear_").resize_and_clear(self, size, sparse_dim, dense_dim)

    def _resizing(self, name):
        from rushlight.sparse import _resize

        if self.layout is not rl.sparse_coo:
            raise NotImplementedError(
                f"Could not run 'aten::{name}' with arguments from the 'SparseCsrCPU' backend: only tensors by "
                "coordinates (torch.sparse_coo) have it"
            )
        return _resize

    # What would else be read from the memory that only stands for the shape.

    @property
    def data(self):
        return self._with(self._entries.detach())

    @data.setter
    def data(self, other):
        if other.layout is not self.layout or other.shape != self.shape:
            raise RuntimeError(
                f"data of a sparse tensor: expected {self.layout} of {tuple(self.shape)}, got {other.layout} of {tuple(other.shape)}"
            )
        self._entries.data = other._entries
        kept = ("_entries", "_own_grad")
        self.__dict__.update({name: part for name, part in other.__dict__.items() if name not in kept})

    def item(self):
        return self.to_dense().item()

    def new(self, *args, **kwargs):
        """A tensor of coordinates: of indices and values, or by sizes without entries."""
        from rushlight.sparse._functions import new

        return new(self, *args, **kwargs)

    def __bool__(self):
        return bool(self.to_dense())

    def __int__(self):
        return int(self.to_dense())

    def __float__(self):
        return float(self.to_dense())

    def __complex__(self):
        return complex(self.to_dense())

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def numpy(self, *, force=False):
        raise TypeError(
            f"can't convert {_text.layout_name(self)} layout tensor to numpy. Use Tensor.to_dense() first."
        )

    def __array__(self, *args, **kwargs):
        return self.numpy()

    def data_ptr(self):
        raise RuntimeError("Cannot access data pointer of a sparse tensor: it has indices and values")

    def detach_(self):
        """Leaves the graph, in place."""
        self._entries = self._entries.detach()
        return self

    def __repr__(self, **kwargs):
        return _text.describe(self, [("indices", self._coords), ("values", self._entries)], own_line=True)

    __str__ = __repr__

    def __deepcopy__(self, memo):
        entries = self._entries.detach().clone().requires_grad_(self.requires_grad)
        made = memo[id(self)] = make(self._coords.clone(), entries, self.shape, self._coalesced)
        if self.grad is not None:
            from copy import deepcopy

            made.grad = deepcopy(self.grad, memo)
        return made

    def __reduce_ex__(self, protocol):
        return make, (self._coords, self._entries.detach(), tuple(self.shape), self._coalesced)


rl._C.ops["_set_sparse_type"](SparseTensor)


def without_overrides(function, *args, **kwargs):
    before = rl._C.ops["_set_torch_function"](False)
    try:
        return function(*args, **kwargs)
    finally:
        rl._C.ops["_set_torch_function"](before)


_ZEROS: dict = {}  # of each type one, which all sparse tensors show as their memory


def make(indices: Any, values: Any, size: Any, coalesced: bool = False) -> Any:
    """A sparse tensor of parts that are known to fit."""
    dtype = values.dtype
    zero = _ZEROS.get(dtype)
    if zero is None:
        with rl.inference_mode(False):
            zero = _ZEROS[dtype] = rl.zeros((), dtype=dtype, device="cpu")
    tensor = zero.expand(size).as_subclass(SparseTensor)
    tensor._stored, tensor._entries, tensor._coalesced = indices, values, coalesced
    return tensor


@factory
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: int | Sequence[int] | None = None,
    *,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    pin_memory: bool | None = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor with values at the indices that the columns of `indices` name; the rest is zero.

    Args:
        indices (Tensor): (sparse dimensions, entries), integers.
        values (Tensor): (entries, *dense dimensions).
        size (sequence of ints): Default: None, the least that holds the indices
        dtype (dtype): of the values. Default: None, as they are
        device (device): where the result lives. Default: None, where the values live
        pin_memory (bool): accepted. Default: False
        requires_grad (bool): whether autograd records what is computed from it. Default: False
        check_invariants (bool): whether indices are checked. Default: None, where that is asked for
        is_coalesced (bool): says that no index is there twice. Default: None

    Example:
        >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    if values is None:
        size = size if indices is None else indices
        if size is None:
            raise TypeError("sparse_coo_tensor(): expected indices and values, or a size")
        indices, values = rl.empty((len(size), 0), dtype=rl.int64), rl.empty(0, dtype=dtype)  # type: ignore[arg-type]
    if not isinstance(indices, Tensor):
        indices = rl.tensor(indices)
    values = values if isinstance(values, Tensor) else rl.tensor(values, dtype=dtype)
    if indices.dtype is not rl.int64:
        if indices.is_floating_point() and not rl.equal(indices, indices.trunc()):
            raise RuntimeError(f"indices must be an int64 tensor, but got fractions of {indices.dtype}")
        indices = indices.to(rl.int64)
    if indices.dim() != 2:
        if indices.numel() or indices.dim() != 1:
            raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {indices.dim()}-d")
        indices = indices.reshape(0, 0)
    nnz = indices.size(1)
    if dtype is not None:
        values = values.to(dtype)
    if values.dim() == 0:
        values = values.expand(nnz) if nnz else values.reshape(1)[:0]
    if values.size(0) != nnz:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {nnz}, "
            f"nnz from values: {values.size(0)}"
        )
    check = size is None or (
        check_sparse_tensor_invariants.is_enabled() if check_invariants is None else check_invariants
    )
    size = _checked_size(indices, values, size)
    if requires_grad:
        values = values.detach().requires_grad_()
    else:  # geometry of its own: whoever gave the values may resize them
        values = values.view_as(values) if values.requires_grad else values.detach()
    indices = indices.detach()
    tensor = make(indices, values, size, nnz < 2 if is_coalesced is None else bool(is_coalesced))
    if check:
        _check_coords(indices, size)
        _check_distinct(tensor, is_coalesced)
    else:  # as PyTorch does not look now, but before they are used
        tensor._unchecked = True
    return tensor


def _check_distinct(tensor, is_coalesced):
    if is_coalesced and tensor._nnz() > 1:
        keys = tensor._keys()
        if not bool((keys[1:] > keys[:-1]).all()):
            raise RuntimeError(
                "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor: they must be in order, "
                "each index named once"
            )


def _is_size(value):
    return isinstance(value, (rl.Size, tuple, list)) and all(isinstance(n, int) for n in value)


def _checked_size(indices, values, size):
    sparse_dim, dense = indices.size(0), values.shape[1:]
    if size is None:
        highest = (indices.amax(1) + 1).tolist() if indices.numel() else [0] * sparse_dim
        size = (*(max(n, 0) for n in highest), *dense)
    size = tuple(map(int, size))
    if len(size) != sparse_dim + len(dense):
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({len(dense)}), "
            f"but got {len(size)}"
        )
    if size[sparse_dim:] != tuple(dense):
        raise RuntimeError(f"values has incorrect size, expected {size[sparse_dim:]}, got {tuple(dense)}")
    return size


def _check_coords(indices, size):
    if indices.numel() == 0:
        return
    lowest, highest = (x.tolist() for x in indices.aminmax(dim=1))
    for d in range(indices.size(0)):
        if lowest[d] < 0:
            raise RuntimeError(f"found negative index {lowest[d]} for dim {d}")
        if highest[d] >= size[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {highest[d]}"
            )


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
        nnz = int(bool(filled.any())) if dense.dim() == 0 else 1
        return make(rl.empty((0, nnz), dtype=rl.int64), dense.unsqueeze(0)[:nnz], dense.shape, True)
    coords = where.t().contiguous()
    return make(coords, dense[tuple(coords)], dense.shape, True)


def _validate_sparse_coo_tensor_args(indices, values, size, is_coalesced=None, check_pinning=None):
    """Raises where the parts do not make a tensor of coordinates."""
    sparse_coo_tensor(indices, values, size, check_invariants=True, is_coalesced=is_coalesced)
