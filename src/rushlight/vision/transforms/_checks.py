"""Checks of arguments that several transforms take."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, cast

_PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


def check_kind(value: Any, kinds: Any, message: Any) -> None:
    """Refuses a value of another type."""
    if not isinstance(value, kinds):
        raise TypeError(message)


def check_sequence(value: Any, name: Any) -> None:
    check_kind(value, (list, tuple), f"Argument {name} should be a sequence")


def check_angle(angle: Any) -> None:
    check_kind(angle, (int, float), "Argument angle should be int or float")


def check_affine(
    angle: Any, translate: Any, scale: Any, shear: Any, center: Any
) -> tuple[float, list[Any], Any]:
    """(angle, [x, y] of the translation, [x, y] of the shear) of an affine map, once its arguments are found valid."""
    check_angle(angle)
    check_sequence(translate, "translate")
    if len(translate) != 2:
        raise ValueError("Argument translate should be a sequence of length 2")
    if scale <= 0.0:
        raise ValueError("Argument scale should be positive")
    both = (numbers.Number, list, tuple)
    check_kind(shear, both, "Shear should be either a single value or a sequence of two values")
    shear = [shear, 0.0] if isinstance(shear, numbers.Number) else list(shear)
    shear = shear * 2 if len(shear) == 1 else shear
    if len(shear) != 2:
        raise ValueError(f"Shear should be a sequence containing two values. Got {shear}")
    if center is not None:
        check_sequence(center, "center")
    return float(angle), list(translate), shear


def check_padding(padding: Any, padding_mode: str) -> None:
    """Refuses other modes of padding, and sequences that are not of 1, 2 or 4 sides."""
    if padding_mode not in _PADDING_MODES:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    count = len(padding) if isinstance(padding, (tuple, list)) else 1
    if count not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {count} element tuple")


def float_list(fill: Any) -> list[float]:
    """The values of a colour as floats."""
    kinds = (int, float, list, tuple)
    check_kind(fill, kinds, f"fill should be int or float or a list or tuple of them. Got {type(fill)}")
    return [float(v) for v in (fill if isinstance(fill, (list, tuple)) else [fill])]


def check_erasing(p: float, scale: Any, ratio: Any, value: Any) -> None:
    """Refuses arguments of RandomErasing that make no sense."""
    kinds = (numbers.Number, str, tuple, list)
    check_kind(value, kinds, "Argument value should be either a number or str or a sequence")
    if isinstance(value, str) and value != "random":
        raise ValueError("If value is str, it should be 'random'")
    for name, ends in (("Scale", scale), ("Ratio", ratio)):
        check_kind(ends, (tuple, list), f"{name} should be a sequence")
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=3)
    if scale[0] < 0 or scale[1] > 1:
        raise ValueError("Scale should be between 0 and 1")
    if p < 0 or p > 1:
        raise ValueError("Random erasing probability should be between 0 and 1")


def factor_ends(
    value: Any, name: Any, center: Any, clip_first_on_zero: Any, message: Any
) -> list[Any] | list[float]:
    """[low, high] of a factor from its distance to `center`, or from both ends."""
    if isinstance(value, numbers.Number):
        value = cast(float, value)
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        low = max(center - value, 0.0) if clip_first_on_zero else center - value
        return [low, center + value]
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(message)
    return [float(end) for end in value]
