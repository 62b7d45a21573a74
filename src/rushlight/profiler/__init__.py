"""How long ops, backward nodes and named regions take, and which lines and modules they belong to."""

from __future__ import annotations

from rushlight.profiler.profiler import (
    ProfilerAction as ProfilerAction,
)
from rushlight.profiler.profiler import (
    ProfilerActivity as ProfilerActivity,
)
from rushlight.profiler.profiler import (
    profile as profile,
)
from rushlight.profiler.profiler import (
    record_function as record_function,
)
from rushlight.profiler.profiler import (
    schedule as schedule,
)
from rushlight.profiler.profiler import (
    supported_activities as supported_activities,
)
from rushlight.profiler.profiler import (
    tensorboard_trace_handler as tensorboard_trace_handler,
)

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def kineto_available() -> bool:
    return False


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
