"""Tensors of the layout torch._mkldnn: what to_mkldnn() makes. The library's own order of elements is no gain here, so
they are kept dense; what they promise is kept too: the layout, the ops that PyTorch has for it, and no others."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._C import Tensor

_OPS = frozenset(
    [
        "add",
        "add_",
        "mul",
        "mul_",
        "relu",
        "relu_",
        "sigmoid",
        "sigmoid_",
        "tanh",
        "gelu",
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "convolution",
        "batch_norm",
        "max_pool2d",
        "max_pool3d",
        "avg_pool2d",
        "avg_pool3d",
        "adaptive_avg_pool2d",
        "softmax",
        "_softmax",
        "reshape",
        "view_as",
        "transpose",
        "clone",
        "detach",
        "copy_",
        "prelu",
        "hardswish",
        "hardswish_",
        "hardsigmoid",
        "hardsigmoid_",
        "leaky_relu",
        "mkldnn_linear",
        "log_softmax",
        "flatten",
    ]
)
_METADATA = frozenset(
    [
        "dim",
        "ndimension",
        "size",
        "numel",
        "nelement",
        "is_complex",
        "is_floating_point",
        "element_size",
        "get_device",
        "is_signed",
    ]
)
_TYPES = (rl.float32, rl.bfloat16, rl.float16, rl.uint8, rl.int8)


class MkldnnTensor(Tensor):
    """A dense tensor under the layout torch._mkldnn."""

    _ops_only = True
    is_mkldnn = True
    _values: Any  # the plain tensor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from rushlight.sparse._coo import without_overrides

        name = getattr(func, "_op_name", func.__name__).rpartition(".")[2]
        if name in _METADATA:
            return without_overrides(func, *args, **(kwargs or {}))
        if name == "to_dense":
            return args[0].to_dense(*args[1:], **(kwargs or {}))
        if name not in _OPS:
            raise NotImplementedError(
                f"Could not run 'aten::{name}' with arguments from the 'MkldnnCPU' backend: call .to_dense() first"
            )
        result = func(*map(_dense, args), **{k: _dense(v) for k, v in (kwargs or {}).items()})
        if name.endswith("_"):
            return args[0]
        if isinstance(result, Tensor):
            return wrap(result)
        return type(result)(wrap(r) if isinstance(r, Tensor) and r.is_floating_point() else r for r in result)

    @property
    def layout(self):
        return rl._mkldnn

    @property
    def requires_grad(self):
        return self._values.requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        self._values.requires_grad = value

    def requires_grad_(self, requires_grad=True):
        self._values.requires_grad_(requires_grad)
        return self

    @property
    def grad_fn(self):
        return self._values.grad_fn

    @property
    def is_leaf(self):
        return self._values.is_leaf

    @property
    def grad(self):  # type: ignore[override]  # read alone
        return None if self._values.grad is None else wrap(self._values.grad)

    @property
    def data(self):  # type: ignore[override]  # read alone
        return wrap(self._values.detach())

    def to_dense(self, dtype=None, *, masked_grad=None):
        """The elements as a plain tensor, copied."""
        return self._values.clone() if dtype is None else self._values.to(dtype, copy=True)

    _to_dense = to_dense  # type: ignore[assignment]

    def to_mkldnn(self, dtype=None):
        """The tensor itself, which has that layout, or one of another type."""
        return self if dtype in (None, self.dtype) else wrap(self._values.to(dtype))

    def item(self):
        return self._values.item()

    def tolist(self):
        return self._values.tolist()

    def _refuse(self, what):
        raise RuntimeError(
            f"Cannot access {what} of a tensor of layout torch._mkldnn: call .to_dense() first"
        )

    def data_ptr(self):
        self._refuse("the data pointer")

    def storage(self):
        self._refuse("the storage")

    def untyped_storage(self):
        self._refuse("the storage")

    def stride(self, dim=None):
        self._refuse("the strides")

    def numpy(self, *, force=False):
        raise TypeError("can't convert torch._mkldnn layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, *args, **kwargs):
        return self.numpy()

    def __deepcopy__(self, memo):
        return memo.setdefault(
            id(self), wrap(self._values.detach().clone().requires_grad_(self.requires_grad))
        )

    def __reduce_ex__(self, protocol):
        return wrap, (self._values.detach(),)

    def __repr__(self, **kwargs):
        from rushlight import _tensor_str as text

        contents = text._contents(self._values.detach(), len("tensor(")) if self.numel() else "[]"
        suffixes = [] if self.dtype in text._default_dtypes(True) else [f"dtype={self.dtype}"]
        return text._with_suffixes("tensor(" + contents, [*suffixes, "layout=torch._mkldnn"], len("tensor("))

    __str__ = __repr__


def _dense(value):
    if isinstance(value, MkldnnTensor):
        return value._values
    return type(value)(map(_dense, value)) if type(value) in (list, tuple) else value


_ZEROS: dict = {}


def wrap(values: Any) -> Any:
    """A tensor of the layout around a dense one."""
    zero = _ZEROS.get(values.dtype)
    if zero is None:
        with rl.inference_mode(False):
            zero = _ZEROS[values.dtype] = rl.zeros((), dtype=values.dtype)
    tensor = zero.expand(values.shape).as_subclass(MkldnnTensor)
    tensor._values = values
    return tensor


def to_mkldnn(tensor, dtype=None):
    """A tensor in the layout torch._mkldnn."""
    if tensor.layout is not rl.strided or tensor.dtype not in _TYPES or tensor.device.type != "cpu":
        raise RuntimeError(
            "dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input on the CPU"
        )
    if dtype is not None and dtype not in _TYPES[:3]:
        raise RuntimeError("dense_to_mkldnn expects float, bfloat16 or half as the type of its result")
    return wrap(tensor.to(dtype or tensor.dtype, memory_format=rl.contiguous_format, copy=True))
