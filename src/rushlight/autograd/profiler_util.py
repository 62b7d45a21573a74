"""Events of the profiler and their tables, under the name of their module in PyTorch."""

from __future__ import annotations

from typing import Any

from rushlight.profiler._events import EventList, FunctionEvent, FunctionEventAvg

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg"]


def _format_time(time_us: float) -> str:
    """12.000us, 1.500ms, 2.000s"""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if time_us >= size:
            return f"{time_us / size:.3f}{unit}"
    return f"{time_us:.3f}us"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    """The share of a total, in percent."""
    return f"{time_us * 100.0 / total_time_us:.2f}%" if total_time_us else "NaN"


def __getattr__(name: str) -> Any:
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
