"""The profiler under its older name."""

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


def __getattr__(name):
    from rushlight._missing import no_name

    raise no_name(__name__, name)
