"""Functions that make quantized tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight._C import Tensor, device, dtype, layout
from rushlight._core.compose import factory, public
from rushlight._quantized import _schemes as schemes
from rushlight._quantized._parameters import chosen
from rushlight._quantized._schemes import PerChannel, PerTensor
from rushlight._quantized._tensor import QuantizedTensor, make, no_kernel


def _floats(input, dtype, name):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(input).__name__}")
    if not isinstance(dtype, rl.dtype):
        raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    if isinstance(input, QuantizedTensor):
        raise no_kernel(name)
    if dtype not in schemes.INTEGERS:
        raise RuntimeError(
            f"ScalarType {_legacy_name(dtype)} is not supported in new_qtensor: expected a quantized type, "
            "torch.quint8, torch.qint8, torch.qint32, torch.quint4x2 or torch.quint2x4"
        )
    if input.dtype is not rl.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {_legacy_name(input.dtype)}")
    return input.detach()


def _legacy_name(dtype):
    if dtype in schemes.NAMES:
        return schemes.NAMES[dtype]
    return rl.empty(0, dtype=dtype).type().rpartition(".")[2].removesuffix("Tensor")


def _quantized(input, dtype, quantizer, what):
    quantizer.check(dtype, what)
    ints = quantizer.quantize(input, dtype)
    return make(ints.contiguous() if dtype in schemes.PER_BYTE else ints, dtype, quantizer)


@public
def quantize_per_tensor(
    input: Tensor | None = None,
    scale: float | Tensor | None = None,
    zero_point: int | Tensor | None = None,
    dtype: dtype | None = None,
    *,
    tensors: Sequence[Tensor] | None = None,
    scales: Tensor | None = None,
    zero_points: Tensor | None = None,
) -> Any:
    """float32 values as integers q of a quantized type, with (q - zero_point) * scale nearest to each value.

    Args:
        input (Tensor): float32.
        scale (float or Tensor): the distance of levels.
        zero_point (int or Tensor): the integer that stands for 0.
        dtype (dtype): torch.quint8, qint8 or qint32.
        tensors (sequence of Tensors): several, which give a tuple, with scales and zero_points, a Tensor each.

    Example:
        >>> torch.quantize_per_tensor(torch.tensor([0.2, 1.0]), 0.5, 3, torch.qint8).int_repr()
        tensor([3, 5], dtype=torch.int8)
    """
    input = tensors if input is None else input
    scale = scales if scale is None else scale
    zero_point = zero_points if zero_point is None else zero_point
    if isinstance(input, (list, tuple)):
        given = zip(input, scale, zero_point, strict=True)  # type: ignore[arg-type]
        return tuple(quantize_per_tensor(x, float(s), int(z), dtype) for x, s, z in given)
    x = _floats(input, dtype, "quantize_per_tensor")
    for name, value in (("scale", scale), ("zero_point", zero_point)):
        if isinstance(value, Tensor) and value.numel() != 1:
            raise RuntimeError(f"quantize_per_tensor: {name} must have one element, got {value.numel()}")
        if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
            raise TypeError(
                f"quantize_per_tensor(): argument '{name}' must be a number or a Tensor, not {type(value).__name__}"
            )
    return _quantized(x, dtype, PerTensor(scale, zero_point), "quantize_tensor_per_tensor_affine")


@public
def quantize_per_tensor_dynamic(input: Tensor, dtype: dtype, reduce_range: bool) -> Tensor:
    """float32 values as integers of 8 bits, with the scale that their range needs.

    Args:
        input (Tensor): float32.
        dtype (dtype): torch.quint8 or qint8; float16 gives the values in that type.
        reduce_range (bool): takes 7 bits.

    Example:
        >>> torch.quantize_per_tensor_dynamic(torch.tensor([0.0, 2.55]), torch.quint8, False).int_repr()
        tensor([  0, 255], dtype=torch.uint8)
    """
    if dtype is rl.float16:
        return input.to(rl.float16)
    if dtype not in (rl.quint8, rl.qint8):
        raise RuntimeError(f"dtype {_legacy_name(dtype)}not supported")
    x = _floats(input, dtype, "quantize_per_tensor_dynamic")
    low, high = schemes.RANGES[dtype]
    if reduce_range:
        low, high = low // 2, high // 2
    scale, zero_point = chosen(float(x.min()), float(x.max()), low, high)
    return quantize_per_tensor(x, scale, zero_point, dtype)


@public
def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: dtype
) -> Tensor:
    """float32 values as integers of a quantized type, with a scale and a zero point for each index along `axis`.

    Args:
        input (Tensor): float32.
        scales (Tensor): distances of levels.
        zero_points (Tensor): the integers that stand for 0.
        axis (int): the dimension they belong to.
        dtype (dtype): torch.quint8, qint8 or qint32.

    Example:
        >>> scales, zeros = torch.tensor([0.5, 1.0]), torch.tensor([0, 0])
        >>> torch.quantize_per_channel(torch.ones(2, 1), scales, zeros, 0, torch.qint8).int_repr()
        tensor([[2],
                [1]], dtype=torch.int8)
    """
    x = _floats(input, dtype, "quantize_per_channel")
    schemes.checked_parameters(scales, zero_points)
    if dtype in schemes.PER_BYTE and not zero_points.is_floating_point():
        raise RuntimeError(f"quantize_per_channel: {dtype} needs scales and zero points of float32")
    if dtype is rl.qint32 and zero_points.is_floating_point():
        raise RuntimeError("quantize_per_channel: zero points of torch.qint32 must be integers")
    quantizer = PerChannel(scales, zero_points, axis)
    quantizer.fit(x.shape, "quantization")
    return _quantized(x, dtype, quantizer, "quantize_tensor_per_channel_affine")


@public
def _make_per_tensor_quantized_tensor(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """A quantized tensor of integers that are there already (uint8, int8 or int32)."""
    dtype = schemes.quantized_dtype(schemes.OF_INTEGERS.get(input.dtype))
    return make(input.clone(memory_format=rl.contiguous_format), dtype, PerTensor(scale, zero_point))


@public
def _make_per_channel_quantized_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    """The same with a scale and a zero point for each index along `axis`."""
    dtype = schemes.quantized_dtype(schemes.OF_INTEGERS.get(input.dtype))
    schemes.checked_parameters(scale, zero_point)
    quantizer = PerChannel(scale, zero_point, axis)
    quantizer.fit(input.shape, "quantization")
    return make(input.clone(memory_format=rl.contiguous_format), dtype, quantizer)


def empty(size, dtype, quantizer, memory_format=None, device=None):
    """A quantized tensor whose integers are not set."""
    ints = schemes.INTEGERS[schemes.quantized_dtype(dtype)]
    memory_format = memory_format or rl.contiguous_format
    return make(rl.empty(size, dtype=ints, device=device, memory_format=memory_format), dtype, quantizer)


def _sizes(size):
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size


@factory
def _empty_affine_quantized(
    *size: int | Sequence[int], scale: float = 1.0, zero_point: int = 0, dtype: dtype | None = None, device: device | str | int | None = None, layout: layout | None = None, pin_memory: bool | None = None, requires_grad: bool = False,
    memory_format: int | None = None,
) -> Tensor:  # fmt: skip
    """A quantized tensor with one scale and zero point whose integers are not set."""
    return empty(_sizes(size), dtype, PerTensor(scale, zero_point), memory_format, device)


@factory
def _empty_per_channel_affine_quantized(
    *size: int | Sequence[int], scales: Tensor, zero_points: Tensor, axis: int, dtype: dtype | None = None, device: device | str | int | None = None, layout: layout | None = None, pin_memory: bool | None = None, requires_grad: bool = False,
    memory_format: int | None = None,
) -> Tensor:  # fmt: skip
    """A quantized tensor with a scale for each index along `axis` whose integers are not set."""
    size = _sizes(size)
    schemes.checked_parameters(scales, zero_points)
    quantizer = PerChannel(scales, zero_points, axis)
    quantizer.fit(size, "quantization")
    return empty(size, dtype, quantizer, memory_format, device)


def empty_quantized(
    size,
    qtensor,
    *,
    dtype=None,
    device=None,
    layout=None,
    pin_memory=None,
    requires_grad=False,
    memory_format=None,
):
    """A quantized tensor with the scale of another; its integers are not set.

    Args:
        size (sequence of ints): of the result.
        qtensor (Tensor): whose type, scale and zero point are taken.
        dtype, device, layout, pin_memory, requires_grad, memory_format: as of torch.empty. Default: None

    Example:
        >>> q = torch.quantize_per_tensor(torch.zeros(1), 0.5, 0, torch.qint8)
        >>> torch.empty_quantized((2, 3), q).q_scale()
        0.5
    """
    if not isinstance(qtensor, QuantizedTensor):
        raise no_kernel("empty_quantized", "CPU", "the second argument must be a quantized tensor")
    return empty(tuple(size), dtype or qtensor.dtype, qtensor._quantizer, memory_format, device)


@public
def dequantize(tensors: Sequence[Tensor]) -> Any:
    """The values of a quantized tensor, or of each of a list of them, in float32.

    Args:
        tensors (Tensor or sequence of Tensors): what is read.

    Example:
        >>> q = torch.quantize_per_tensor(torch.tensor([0.11]), 0.5, 0, torch.qint8)
        >>> torch.dequantize(q)
        tensor([0.])
    """
    if isinstance(tensors, Tensor):
        return tensors.dequantize()
    return tuple(t.dequantize() for t in tensors)


def _asking(name, what, shown):
    def ask(input):
        return getattr(input, name)()

    ask.__name__ = ask.__qualname__ = name
    made = (
        "per_channel(torch.ones(1), torch.tensor([0.5]), torch.tensor([3]), 0, torch.qint8)"
        if "channel" in name
        else "per_tensor(torch.ones(1), 0.5, 3, torch.qint8)"
    )
    ask.__doc__ = (
        f"{what}\n\nArgs:\n    input (Tensor): quantized.\n\nExample:\n    >>> q = torch.quantize_{made}\n"
        f"    >>> torch.{name}(q)\n    {shown}\n"
    )
    return public(ask)


int_repr = _asking("int_repr", "The integers of a quantized tensor, copied.", "tensor([5], dtype=torch.int8)")
q_scale = _asking("q_scale", "The scale of a quantized tensor.", "0.5")
q_zero_point = _asking("q_zero_point", "The zero point of a quantized tensor.", "3")
q_per_channel_scales = _asking(
    "q_per_channel_scales",
    "The scales of a quantized tensor that has one for each channel.",
    "tensor([0.5000], dtype=torch.float64)",
)
q_per_channel_zero_points = _asking(
    "q_per_channel_zero_points",
    "The zero points of a quantized tensor that has one for each channel.",
    "tensor([3])",
)
q_per_channel_axis = _asking(
    "q_per_channel_axis", "The dimension of a quantized tensor that its scales belong to.", "0"
)


@public
def _saturate_weight_to_fp16(weight: Tensor) -> Tensor:
    """float32 values, those that float16 does not hold cut off."""
    return weight.clamp(-65504, 65504).contiguous()
