"""Measuring how long statements take, and comparing the results in a table."""

from timeit import default_timer as timer

from ._compare import Compare
from ._timer import Language, Measurement, TaskSpec, Timer, select_unit

__all__ = ["Compare", "Language", "Measurement", "TaskSpec", "Timer", "select_unit", "timer"]
