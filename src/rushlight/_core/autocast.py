"""Autocast for functions written in Python: what the flags kCastLow and kCastFull say of ops in C++.

`@low` runs a function in the region's short type, `@full` in float32; the function's own calls cast no more.
"""

from __future__ import annotations

import functools

from .._C import Tensor, bfloat16, float16, float32, ops

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from collections.abc import Callable
    from typing import Any, TypeVar

    _F = TypeVar("_F", bound=Callable[..., Any])

_region = ops["_autocast_dtype"]  # the short type, or None outside regions
_set = ops["_set_autocast"]
_SHORT = (float16, bfloat16)


def cast(value: Any, dtype: Any, device_type: str = "cpu") -> Any:
    """Float tensors (not float64) in another type, also inside lists, tuples and dicts."""
    if isinstance(value, Tensor):
        wanted = (value.dtype == float32 or value.dtype in _SHORT) and value.device.type == device_type
        return value.to(dtype) if wanted else value
    if isinstance(value, dict):
        return {k: cast(v, dtype, device_type) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(cast(v, dtype, device_type) for v in value)
    return value


def _casting(function: _F, choose: Callable[[Any], Any]) -> _F:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        region = _region()
        if region is None:
            return function(*args, **kwargs)
        args, kwargs = cast((args, kwargs), choose(region))
        before = _set(False, region, True)
        try:
            return function(*args, **kwargs)
        finally:
            _set(True, region, before)

    return wrapper  # type: ignore[return-value]  # the function itself, to those who call it


def low(function: _F) -> _F:
    return _casting(function, lambda region: region)


def full(function: _F) -> _F:
    return _casting(function, lambda region: float32)
