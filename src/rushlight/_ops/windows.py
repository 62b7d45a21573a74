"""torch.hann_window and its kin: periodic unless asked otherwise."""

from __future__ import annotations

import math

from rushlight._C import Tensor

from .. import _C
from .._core.compose import op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


def _window(name, length, periodic, dtype, layout, device, requires_grad, values):
    """values(n, N): the window at the steps n of a symmetric one of N points."""
    dtype = dtype or _C.ops["get_default_dtype"]()
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if layout is not None and layout is not _C.strided:
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {layout}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length == 0:
        result = _C.ops["empty"](0, dtype=dtype, device=device)
    elif length == 1:
        result = _C.ops["ones"](1, dtype=dtype, device=device)
    else:
        points = length + 1 if periodic else length
        result = values(_C.ops["arange"](length, dtype=_C.float64, device=device), points).to(dtype)
    return result.requires_grad_() if requires_grad else result


def _arguments(
    dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
) -> tuple[Any, Any, Any, bool]:
    return dtype, layout, device, requires_grad


@op(differentiable=False)
def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A raised cosine that begins at 0: 1/2 - 1/2 cos(2 pi n / (N - 1)).

    Args:
        window_length (int): how many values.
        periodic (bool): leaves out the last of window_length + 1 values, as a period does. Default: True
        options: dtype, layout, device, pin_memory and requires_grad of the result.

    Example:
        >>> torch.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window(
        "hann_window",
        window_length,
        periodic,
        *_arguments(**options),
        lambda n, N: 0.5 - 0.5 * (n * (2 * math.pi / (N - 1))).cos(),
    )


@op(differentiable=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """A raised cosine: alpha - beta cos(2 pi n / (N - 1)).

    Args:
        window_length (int): how many values.
        periodic (bool): leaves out the last of window_length + 1 values, as a period does. Default: True
        alpha (float): the mean. Default: 0.54
        beta (float): the height of the cosine. Default: 0.46
        options: dtype, layout, device, pin_memory and requires_grad of the result.

    Example:
        >>> torch.hamming_window(4)
        tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window(
        "hamming_window",
        window_length,
        periodic,
        *_arguments(**options),
        lambda n, N: alpha - beta * (n * (2 * math.pi / (N - 1))).cos(),
    )


@op(differentiable=False)
def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A sum of two cosines: 0.42 - 0.5 cos(2 pi n / (N - 1)) + 0.08 cos(4 pi n / (N - 1)).

    Args:
        window_length (int): how many values.
        periodic (bool): leaves out the last of window_length + 1 values, as a period does. Default: True
        options: dtype, layout, device, pin_memory and requires_grad of the result.

    Example:
        >>> torch.blackman_window(4)[1:]
        tensor([0.3400, 1.0000, 0.3400])
    """

    def values(n, N):  # noqa: N803
        angle = n * (2 * math.pi / (N - 1))
        return 0.42 - 0.5 * angle.cos() + 0.08 * (2 * angle).cos()

    return _window("blackman_window", window_length, periodic, *_arguments(**options), values)


@op(differentiable=False)
def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """A triangle: 1 - |2 n / (N - 1) - 1|.

    Args:
        window_length (int): how many values.
        periodic (bool): leaves out the last of window_length + 1 values, as a period does. Default: True
        options: dtype, layout, device, pin_memory and requires_grad of the result.

    Example:
        >>> torch.bartlett_window(5, periodic=False)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window(
        "bartlett_window",
        window_length,
        periodic,
        *_arguments(**options),
        lambda n, N: 1 - (n * (2 / (N - 1)) - 1).abs(),
    )


@op(differentiable=False)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """A bell with a chosen width: i0(beta sqrt(1 - x^2)) / i0(beta), x from -1 to 1.

    Args:
        window_length (int): how many values.
        periodic (bool): leaves out the last of window_length + 1 values, as a period does. Default: True
        beta (float): the larger, the narrower the bell. Default: 12.0
        options: dtype, layout, device, pin_memory and requires_grad of the result.

    Example:
        >>> torch.kaiser_window(5, periodic=False, beta=2.0)
        tensor([0.4387, 0.8348, 1.0000, 0.8348, 0.4387])
    """

    def values(n, N):  # noqa: N803
        x = n * (2 / (N - 1)) - 1
        scale = _C.ops["tensor"](float(beta), dtype=_C.float64)
        return ((1 - x * x).clamp(min=0).sqrt() * beta).i0() / scale.i0()

    return _window("kaiser_window", window_length, periodic, *_arguments(**options), values)
