"""The profiler under its older name."""

from __future__ import annotations

from rushlight.profiler.profiler import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    emit_itt,
    emit_nvtx,
    profile,
    record_function,
)

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "emit_itt",
    "emit_nvtx",
    "profile",
    "record_function",
]


from typing import Any


def __getattr__(name: str) -> Any:
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)


def _profiler_enabled() -> bool:
    """Whether a profiler runs."""
    from rushlight.profiler import profiler

    return profiler._running is not None


def _disable_profiler() -> list[Any]:
    """Ends the old profiler, of which there is none: its events."""
    return []
