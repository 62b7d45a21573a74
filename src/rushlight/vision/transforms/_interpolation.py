"""How a pixel between pixels is computed."""

from __future__ import annotations

import enum
import numbers
from typing import Any, cast

import rushlight as rl


class InterpolationMode(enum.Enum):
    """How pixels are computed from their neighbours; box, hamming and lanczos are for images of Pillow."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_M = InterpolationMode
# Pillow's numbers; its nearest is what is called exact here.
pil_modes_mapping = {
    _M.NEAREST: 0, _M.LANCZOS: 1, _M.BILINEAR: 2, _M.BICUBIC: 3, _M.BOX: 4, _M.HAMMING: 5, _M.NEAREST_EXACT: 0,
}  # fmt: skip
_BY_NUMBER = {0: _M.NEAREST, 1: _M.LANCZOS, 2: _M.BILINEAR, 3: _M.BICUBIC, 4: _M.BOX, 5: _M.HAMMING}


def mode_of_int(number: Any) -> InterpolationMode:
    """The mode that Pillow's number (an int, or a member of PIL.Image.Resampling) means."""
    return _BY_NUMBER[int(number)]


def check_mode(interpolation: Any) -> InterpolationMode:
    """An InterpolationMode, also from Pillow's numbers."""
    if isinstance(interpolation, int):
        return mode_of_int(interpolation)
    if not isinstance(interpolation, InterpolationMode):
        raise TypeError(
            "Argument interpolation should be a InterpolationMode or a corresponding Pillow integer constant"
        )
    return interpolation


def setup_size(size: Any, message: str = "Please provide only two dimensions (h, w) for size.") -> Any:
    """(h, w) from one number or two."""
    if isinstance(size, numbers.Number):
        edge = int(cast(float, size))
        return edge, edge
    if isinstance(size, (list, tuple)) and len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError(message)
    return size


def setup_kernel(kernel_size: Any) -> Any:
    """The two lengths of a kernel, which have a middle."""
    kernel = setup_size(kernel_size, "Kernel size should be a tuple/list of two integers")
    if any(length < 1 or length % 2 == 0 for length in kernel):
        raise ValueError("Kernel size value should be an odd and positive number.")
    return kernel


def uniform(low: float, high: float) -> float:
    """One float32 draw between two values, as a float."""
    return float(rl.empty(1).uniform_(float(low), float(high)).item())


def draw_int(low: int, high: int) -> int:
    """One integer draw from [low, high)."""
    return int(rl.randint(low, high, size=(1,)).item())
