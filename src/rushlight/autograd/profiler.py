"""The profiler under its older name."""

from rushlight.profiler.profiler import EventList, FunctionEvent, profile, record_function

__all__ = ["EventList", "FunctionEvent", "profile", "record_function"]
