"""Ops of two arguments: masked tensors must have one mask, plain tensors and scalars have none."""

from rushlight.ops import aten

__all__: list = []

BINARY_NAMES = [
    "add", "atan2", "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
    "bitwise_right_shift", "div", "divide", "floor_divide", "fmod", "logaddexp", "logaddexp2", "mul", "multiply",
    "nextafter", "remainder", "sub", "subtract", "true_divide", "eq", "ne", "le", "ge", "greater", "greater_equal",
    "gt", "less_equal", "lt", "less", "maximum", "minimum", "fmax", "fmin", "not_equal",
]  # fmt: skip
_NOT_IN_PLACE = ("logaddexp", "logaddexp2", "fmax", "fmin", "maximum", "minimum")
INPLACE_BINARY_NAMES = [f"{name}_" for name in BINARY_NAMES if name not in _NOT_IN_PLACE]

NATIVE_BINARY_FNS = [getattr(aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(aten, name) for name in INPLACE_BINARY_NAMES]
