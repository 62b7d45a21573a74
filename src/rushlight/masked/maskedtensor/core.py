"""MaskedTensor: a wrapper of two tensors of one shape, the data and a boolean mask.

Ops arrive at __torch_function__. What has a rule (_rules.py) is computed on the two, and recorded as one node whose
backward computes the rule again on plain tensors. Everything else is refused, by way of __torch_dispatch__, where the
engine's own sums and copies arrive too.
"""

import warnings
from typing import Any

import rushlight as rl
from rushlight._C import Tensor

__all__ = ["MaskedTensor", "is_masked_tensor"]

_DATA_TYPES = (
    rl.float16, rl.float32, rl.float64, rl.bool, rl.int8, rl.int16, rl.int32, rl.int64,
)  # fmt: skip
_LAYOUTS = (rl.strided, rl.sparse_coo, rl.sparse_csr)
_warned = False


def is_masked_tensor(obj: Any) -> bool:
    """Tells whether an object is a MaskedTensor.

    Args:
        obj (object): any.

    Example:
        >>> torch.masked.is_masked_tensor(torch.ones(1))
        False
    """
    return isinstance(obj, MaskedTensor)


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future; so may this one.",
            UserWarning,
            stacklevel=4,
        )


class MaskedTensor(Tensor):
    """A tensor of which only the elements where a mask is True have a value.

    Elementwise functions keep the mask, reductions leave masked-out elements out. get_data() and get_mask()
    give the parts, to_tensor(value) fills in.

    Args:
        data (Tensor): the elements.
        mask (Tensor): bool, of the same shape.
        requires_grad (bool): whether it asks for a gradient. Default: False

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")  # says that they are a prototype
        >>> x = torch.masked.masked_tensor(torch.tensor([1.0, 2.0]), torch.tensor([True, False]))
        >>> (x * 10).to_tensor(0.0)
        tensor([10.,  0.])
    """

    _masked_data: Tensor
    _masked_mask: Tensor

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        if is_masked_tensor(data) or not isinstance(data, Tensor):
            raise TypeError("data must be a Tensor")
        if is_masked_tensor(mask) or not isinstance(mask, Tensor):
            raise TypeError("mask must be a Tensor")
        _warn_once()
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, write "
                "data.detach().clone(), or take as_masked_tensor(data, mask), which data gets its gradient through.",
                UserWarning,
                stacklevel=3,
            )
        data, mask = _check(data.detach(), mask.detach())
        return _make(cls, data.clone(), mask.clone(), requires_grad)

    @classmethod
    def _from_values(cls, data, mask):
        """On the memory of data and mask, and part of data's graph."""
        _warn_once()
        data, mask = _check(data, mask)
        from rushlight.masked.maskedtensor._record import Values

        return Values.apply(data, mask)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from rushlight.masked.maskedtensor import _record

        return _record.call(cls, func, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from rushlight.masked.maskedtensor import _record

        return _record.below(func.overloadpacket.__name__, func.overloadpacket.op, args, kwargs or {})

    def get_data(self):
        """The data, those of no value included; part of the graph."""
        if self.requires_grad and rl.is_grad_enabled():
            from rushlight.masked.maskedtensor._record import GetData

            return GetData.apply(self)
        return self._masked_data

    def get_mask(self):
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value):
        """The data, with value where the mask is False."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    def is_sparse_coo(self):
        """Whether data and mask are sparse by coordinates."""
        return self._masked_data.layout is rl.sparse_coo

    def is_sparse_csr(self):  # type: ignore[override]
        """Whether data and mask are sparse by rows."""
        return self._masked_data.layout is rl.sparse_csr

    @property
    def is_sparse(self):  # type: ignore[override]
        return self.is_sparse_coo() or self.is_sparse_csr()

    @property
    def layout(self):
        return self._masked_data.layout

    def __repr__(self, *, tensor_contents=None):
        from rushlight.masked.maskedtensor._text import describe

        return describe(self._masked_data, self._masked_mask)

    __str__ = __repr__

    def __reduce_ex__(self, protocol):
        return _restore, (self._masked_data, self._masked_mask, self.requires_grad)

    def __deepcopy__(self, memo):
        made = memo[id(self)] = _make(
            type(self), self._masked_data.clone(), self._masked_mask.clone(), self.requires_grad
        )
        return made


def _restore(data, mask, requires_grad):
    return _make(MaskedTensor, data, mask, requires_grad)


def _make(cls, data, mask, requires_grad=False):
    """A masked tensor of parts that are known to fit."""
    if requires_grad and not (data.is_floating_point() or data.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
        cls, tuple(data.shape), dtype=data.dtype, device=data.device, requires_grad=requires_grad,
        strides=data.stride() if data.layout is rl.strided else None,
    )  # fmt: skip
    made._masked_data, made._masked_mask = data, mask
    return made


def _check(data, mask):
    """data and mask if they fit; sparse data with the entries of a mask that has others."""
    if data.layout is not mask.layout:
        raise TypeError(
            f"data and mask must have the same layout. Got {data.layout} and {mask.layout}: "
            "data.sparse_mask(mask) has that of a sparse mask"
        )
    if data.layout not in _LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if data.layout is rl.sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
        if data._nnz() != mask._nnz():
            data = data.sparse_mask(mask)
    if data.layout is rl.sparse_coo and not _same(data._indices(), mask._indices()):
        raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
    if data.layout is rl.sparse_csr and not (
        _same(data.crow_indices(), mask.crow_indices()) and _same(data.col_indices(), mask.col_indices())
    ):
        raise ValueError(
            "data and mask are both sparse CSR tensors but do not share either crow or col indices."
        )
    if mask.dtype is not rl.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _DATA_TYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    return data, mask


def _same(a, b):
    return a.shape == b.shape and bool((a == b).all())


def _tensors_match(a, b, exact=True, rtol=1e-05, atol=1e-08):
    """Whether two plain tensors have one layout, type and values; NaN equals NaN."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout is not b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if a.dtype is not b.dtype:
        b = b.to(a.dtype)
    if a.layout is rl.sparse_coo:
        return _tensors_match(a.indices(), b.indices()) and _tensors_match(
            a.values(), b.values(), exact, rtol, atol
        )
    if a.layout is rl.sparse_csr:
        return (
            _tensors_match(a.crow_indices(), b.crow_indices())
            and _tensors_match(a.col_indices(), b.col_indices())
            and _tensors_match(a.values(), b.values(), exact, rtol, atol)
        )
    if exact:
        return a.dim() == b.dim() and a.shape == b.shape and bool((a == b).all())
    return a.dim() == b.dim() and rl.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)


def _masks_match(a, b):
    """Whether two arguments have one mask, so far as they have any."""
    if is_masked_tensor(a) and is_masked_tensor(b):
        return _tensors_match(a.get_mask(), b.get_mask())
    return True


def _get_data(a):
    return a._masked_data if is_masked_tensor(a) else a


def _maybe_get_mask(a):
    return a.get_mask() if is_masked_tensor(a) else None
