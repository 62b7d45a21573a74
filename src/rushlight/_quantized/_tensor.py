"""The quantized tensor: a tensor of integers that knows its quantized type and what its integers stand for.

Ops on it arrive at __torch_function__ and are answered by _functions.py, or refused by name as PyTorch does. Types
of less than a byte are kept a byte to an element here, and packed where a program sees their bytes: int_repr(),
storage(), files.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import _C
from rushlight import _tensor_str as text
from rushlight._C import Tensor
from rushlight._quantized import _schemes as schemes

_METADATA = frozenset(
    [
        "dim", "ndimension", "size", "numel", "nelement", "is_complex", "is_floating_point", "element_size", "get_device",
        "is_distributed", "is_inference", "is_contiguous", "stride", "storage_offset", "data_ptr", "is_conj", "is_neg",
        "is_same_size", "untyped_storage", "_is_view", "is_shared", "is_non_overlapping_and_dense",
    ]
)  # fmt: skip


def no_kernel(name, backend="QuantizedCPU", instead="call .dequantize() first, and quantize the result"):
    """The error for an op that tensors of a kind do not have."""
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend: {instead}"
    )


class QuantizedTensor(Tensor):
    """Integers, their quantized type `_dtype`, and `_quantizer`, which says what they stand for."""

    _ops_only = True
    is_quantized = True
    _dtype: _C.dtype
    _quantizer: Any

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from rushlight._quantized import _functions

        name = getattr(func, "_op_name", func.__name__).rpartition(".")[2]
        if name in _METADATA:
            return without_overrides(func, *args, **(kwargs or {}))
        handler = _functions.HANDLERS.get(name)
        if handler is None:
            raise no_kernel(name)
        return handler(*args, **(kwargs or {}))

    @property
    def dtype(self):
        return self._dtype

    def is_signed(self):
        raise RuntimeError("isSignedType not supported for quantized types")

    def qscheme(self):
        return self._quantizer.scheme

    def q_scale(self):
        return self._per_tensor().scale

    def q_zero_point(self):
        return self._per_tensor().zero_point

    def q_per_channel_scales(self):
        return self._per_channel().scales

    def q_per_channel_zero_points(self):
        return self._per_channel().zero_points

    def q_per_channel_axis(self):
        return self._per_channel().axis

    def _per_tensor(self):
        if type(self._quantizer) is not schemes.PerTensor:
            raise RuntimeError(
                "Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false. The tensor has a scale for "
                "each channel: see q_per_channel_scales() and q_per_channel_zero_points()"
            )
        return self._quantizer

    def _per_channel(self):
        if type(self._quantizer) is not schemes.PerChannel:
            raise RuntimeError(
                "Expected quantizer->qscheme() == kPerChannelAffine || quantizer->qscheme() == "
                "kPerChannelAffineFloatQParams to be true, but got false. The tensor has one scale: see q_scale() and "
                "q_zero_point()"
            )
        return self._quantizer

    def _ints(self):
        """The integers, on the same memory."""
        return self.as_subclass(Tensor)

    def int_repr(self):
        if self._dtype in schemes.PER_BYTE:
            return schemes.packed(self._ints(), self._dtype)
        return self._ints().clone()

    def dequantize(self):
        return self._quantizer.dequantize(self._ints())

    def _like(self, ints, quantizer=None):
        """Other integers of the same type."""
        return make(ints, self._dtype, quantizer or self._quantizer)

    def _bytes_in_files(self):
        """The integers on their memory, or packed bytes that stand for them."""
        return _packed_rows(self) if self._dtype in schemes.PER_BYTE else self._ints()

    def _typed_storage(self):
        """The memory as elements of the quantized type; of packed types a copy."""
        memory = self._bytes_in_files().untyped_storage()
        return rl.TypedStorage(wrap_storage=memory, dtype=self._dtype, _internal=True)

    def type(self, dtype=None, non_blocking=False, **kwargs):
        if dtype is None:
            return f"torch.quantized.{schemes.NAMES[self._dtype]}Tensor"
        return self.to(dtype)

    @property
    def data(self):
        return self._like(self._ints())

    @data.setter
    def data(self, other):
        if not isinstance(other, QuantizedTensor) or other._dtype is not self._dtype:
            raise TypeError("data of a quantized tensor must be a quantized tensor of the same type")
        Tensor.data.__set__(self, other._ints())  # type: ignore[attr-defined]
        self._quantizer = other._quantizer

    def item(self):
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.dequantize().item()

    def tolist(self):
        raise RuntimeError(
            "load_scalar: invalid type: a quantized tensor gives its values by dequantize().tolist()"
        )

    def __bool__(self):
        return bool(self.dequantize())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __complex__(self):
        return complex(self.item())

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __contains__(self, element):
        return bool((self == element).any())

    def __format__(self, spec):
        return self.item().__format__(spec) if self.dim() == 0 else object.__format__(self, spec)

    def numpy(self, *, force=False):
        raise TypeError(
            f"Got unsupported ScalarType {schemes.NAMES[self._dtype]}: a quantized tensor becomes an array by "
            "dequantize().numpy(), or int_repr().numpy()"
        )

    def __array__(self, *args, **kwargs):
        return self.numpy()

    def new(self, *args, **kwargs):
        raise RuntimeError("legacy tensor constructor / new doesn't support quantized tensors")

    def new_tensor(self, *args, **kwargs):
        raise RuntimeError(
            "store_scalar: invalid type: torch.quantize_per_tensor makes quantized tensors of data"
        )

    def detach_(self):
        return self

    def __repr__(self, **kwargs):
        return describe(self)

    __str__ = __repr__

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self._like(self._ints().clone())
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        from rushlight._utils import _rebuild_qtensor

        offset, stride = self.storage_offset(), self.stride()
        if self._dtype in schemes.PER_BYTE:
            offset, stride = 0, self.contiguous().stride()
        parts = (self._typed_storage(), offset, tuple(self.size()), tuple(stride))
        return _rebuild_qtensor, (*parts, self._quantizer.parts(), False, {})


def without_overrides(function, *args, **kwargs):
    before = rl._C.ops["_swap_overriding"](1)
    try:
        return function(*args, **kwargs)
    finally:
        rl._C.ops["_swap_overriding"](before)


def make(ints, dtype, quantizer):
    """A quantized tensor on the memory of integers that are known to fit."""
    tensor = ints.as_subclass(QuantizedTensor)
    tensor._dtype, tensor._quantizer = dtype, quantizer
    return tensor


def _packed_rows(tensor):
    """The bytes of a packed type: as many as rows that begin at a byte would take, as PyTorch's memory has."""
    data = schemes.packed(tensor._ints(), tensor._dtype)
    row, per_byte = tensor.size(-1) if tensor.dim() else 1, schemes.PER_BYTE[tensor._dtype]
    size = -(-row // per_byte) * (tensor.numel() // row if row else 0)
    return rl.nn.functional.pad(data, (0, max(size - data.numel(), 0)))


def describe(tensor):
    """tensor([...], size=..., dtype=..., quantization_scheme=..., scale=..., zero_point=...)"""
    indent = len("tensor(")
    suffixes = [] if tensor.device.type == "cpu" else [f"device='{tensor.device}'"]
    suffixes += [f"size={tuple(tensor.shape)}", f"dtype={tensor.dtype}"]
    suffixes += [f"quantization_scheme={tensor.qscheme()}", *tensor._quantizer.suffixes()]
    contents = text._contents(tensor.dequantize(), indent) if tensor.numel() else "[]"
    return text._with_suffixes("tensor(" + contents, suffixes, indent)
