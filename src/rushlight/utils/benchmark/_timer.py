"""Timer: runs a statement often enough to time it, on a chosen number of threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from timeit import Timer as _Stopwatch
from timeit import default_timer as timer
from typing import Any

import rushlight as rl

_UNITS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


def select_unit(seconds: float) -> tuple[str, float]:
    """(unit, its length in seconds) in which a time reads well."""
    length, unit = next(((size, name) for size, name in reversed(_UNITS) if seconds >= size), _UNITS[0])
    return unit, length


class Language:
    PYTHON = "python"
    CPP = "c++"


class TaskSpec:
    """What was measured; equal specs are the same cell of a table."""

    def __init__(
        self,
        stmt: str,
        setup: str,
        label: str | None,
        sub_label: str | None,
        description: str | None,
        env: str | None,
        num_threads: int,
    ) -> None:
        self.stmt, self.setup, self.label, self.sub_label = stmt, setup, label, sub_label
        self.description, self.env, self.num_threads = description, env, num_threads

    @property
    def title(self) -> str:
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        lines = [f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}"]
        return "\n".join(lines + [f"  {line}" for line in self.stmt.strip().splitlines()])

    def setup_str(self) -> str:
        return "" if self.setup in ("pass", "") else f"setup: {self.setup.strip()}"

    def key(self) -> tuple[Any, ...]:
        return tuple(self.__dict__.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskSpec) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())


def _quantile(ordered: Any, q: Any) -> Any:
    rank = q * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)


class Measurement:
    """The times of one task: `times` are seconds per run, one for each block of `number_per_run` runs."""

    def __init__(
        self,
        number_per_run: int,
        raw_times: list[float],
        task_spec: TaskSpec,
        metadata: dict[Any, Any] | None = None,
    ) -> None:
        self.number_per_run, self.raw_times = number_per_run, list(raw_times)
        self.task_spec, self.metadata = task_spec, metadata

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "task_spec":
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def _sorted(self) -> list[float]:
        return sorted(self.times)

    @property
    def mean(self) -> float:
        return sum(self.times) / len(self.times)

    @property
    def median(self) -> float:
        result: float = _quantile(self._sorted, 0.5)
        return result

    @property
    def iqr(self) -> float:
        """The width of the middle half."""
        result: float = _quantile(self._sorted, 0.75) - _quantile(self._sorted, 0.25)
        return result

    @property
    def significant_figures(self) -> int:
        """How many digits of the median mean something, judged by the spread of the times."""
        if len(self.times) < 3 or not self.iqr:
            return 4
        upper = max(self.iqr, 1e-12) * 1.4826 / math.sqrt(len(self.times))  # ~ standard error
        return max(1, min(5, math.floor(math.log10(self.median / upper)) + 1)) if self.median > 0 else 1

    @property
    def has_warnings(self) -> bool:
        return bool(len(self.times) > 1 and self.median > 0 and self.iqr / self.median > 0.1)

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        return len(self.times) > 2 and self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        return self.sub_label or self.stmt or "[Unknown]"

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of the same task joined into one each."""
        groups: dict[Any, list[Any]] = {}
        for m in measurements:
            groups.setdefault((m.task_spec, m.number_per_run), []).append(m)
        return [
            Measurement(number, [t for m in group for t in m.raw_times], spec)
            for (spec, number), group in groups.items()
        ]

    def __repr__(self) -> str:
        unit, length = select_unit(self.median)
        lines = [object.__repr__(self), self.title]
        if self.description and self.label:
            lines.append(self.description)
        lines += [line for line in (self.task_spec.setup_str(),) if line]
        n = len(self.times)
        if n > 1:
            low, high = (_quantile(self._sorted, q) / length for q in (0.25, 0.75))
            lines.append(f"  Median: {self.median / length:.2f} {unit}")
            lines.append(f"  IQR:    {self.iqr / length:.2f} {unit} ({low:.2f} to {high:.2f})")
        else:
            lines.append(f"  {self.median / length:.2f} {unit}")
        lines.append(
            f"  {n} measurement{'s' if n > 1 else ''}, {self.number_per_run} runs "
            f"{'per measurement' if n > 1 else ''}, {self.num_threads} "
            f"thread{'s' if self.num_threads > 1 else ''}"
        )
        if self.has_warnings:
            share = self.iqr / self.median
            lines.append(
                f"  WARNING: Interquartile range is {share:.1%} of the median measurement.\n"
                "           This suggests significant environmental influence."
            )
        return "\n".join(lines)


class _threads:
    """Context manager: the number of threads inside a block."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __enter__(self) -> None:
        self.saved = rl.get_num_threads()
        rl.set_num_threads(self.count)

    def __exit__(self, *exc: Any) -> None:
        rl.set_num_threads(self.saved)


class Timer:
    """Times a Python statement, as timeit does, on `num_threads` threads."""

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = Language.PYTHON,
    ) -> None:
        if str(language).lower() not in ("python", "py"):
            raise ValueError(f"Timer: only Python statements can be timed, got language={language!r}")
        if global_setup:
            raise ValueError("global_setup is C++ only, but got a Python statement")
        import textwrap

        stmt, setup = (textwrap.dedent(text).strip() for text in (stmt, setup))
        self._globals = dict(globals or {})
        self._task_spec = TaskSpec(stmt, setup, label, sub_label, description, env, num_threads)
        self._stopwatch = _Stopwatch(stmt=stmt, setup=setup, timer=timer, globals=self._globals)

    def _time(self, number: int) -> float:
        return max(self._stopwatch.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One block of `number` runs, after a short warm-up."""
        with _threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return Measurement(number, [self._time(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: Any) -> int:
        """Runs per block: enough that the clock itself costs under 0.1 % of it."""
        overhead = min(self._clock() for _ in range(5))
        number = 1
        while True:
            taken = self._time(number)
            if taken > max(1000 * overhead, min_run_time / 1000) or taken > min_run_time:
                return number
            number *= 10

    @staticmethod
    def _clock() -> float:
        start = timer()
        return max(timer() - start, 1e-9)

    def blocked_autorange(
        self, callback: Callable[..., Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Blocks of runs until min_run_time seconds are spent."""
        with _threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            times, spent = [], 0.0
            while spent < min_run_time:
                times.append(self._time(number))
                spent += times[-1]
                if callback is not None:
                    callback(number, times[-1])
            return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[..., Any] | None = None,
    ) -> Measurement:
        """Blocks of runs until their spread is below `threshold` of the median, or max_run_time is over."""
        with _threads(self._task_spec.num_threads):
            number = self._block_size(0.05)
            times, spent = [], 0.0
            while spent < max_run_time:
                times.append(self._time(number))
                spent += times[-1]
                if callback is not None:
                    callback(number, times[-1])
                measurement = Measurement(number, times, self._task_spec)
                if spent >= min_run_time and measurement.meets_confidence(threshold):
                    break
            return Measurement(number, times, self._task_spec)
