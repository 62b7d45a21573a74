"""What a profile found: single events, and their sums by op, by line of source, by module."""

from __future__ import annotations

import gzip
import json
import os
from typing import Any, cast

OP, BACKWARD, REGION = 0, 1, 2
_CATEGORY = ("cpu_op", "backward", "user_annotation")


def location(frame: Any) -> str:
    """file(line): function, of a frame (file, line, function, text)."""
    return f"{frame[0]}({frame[1]}): {frame[2]}"


class _Times:
    """Names that PyTorch gives to the same values; nothing here runs on another device."""

    cpu_time_total: Any
    self_cpu_time_total: Any
    count: int

    cuda_time = cuda_time_total = self_cuda_time_total = 0.0
    device_time = device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = cuda_memory_usage = self_cuda_memory_usage = 0
    flops = 0
    is_async = is_remote = is_legacy = False

    @property
    def cpu_time(self) -> Any:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> Any:
        return time_text(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> Any:
        return time_text(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> Any:
        return time_text(self.self_cpu_time_total)


class Interval:
    """The time an event took, in microseconds of a monotonic clock."""

    def __init__(self, start: Any, end: Any) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> Any:
        return self.end - self.start


class FunctionEvent(_Times):
    """One call of an op, one run of a backward node, or one region. Times are in microseconds."""

    count = 1

    kind = OP
    cpu_memory_usage = 0
    frames = ()
    module = ""
    _parent = -1

    def __init__(
        self,
        id: Any,
        name: str,
        thread: Any,
        start_us: Any,
        end_us: Any,
        fwd_thread: Any = None,
        input_shapes: Any = None,
        node_id: int = -1,
        sequence_nr: int = -1,
    ) -> None:
        self.id, self.node_id = id, node_id
        self.name = self.key = self.trace_name = name
        self.time_range = Interval(start_us, end_us)
        self.thread, self.fwd_thread = thread, fwd_thread
        self.input_shapes = input_shapes or []
        self.cpu_parent = None
        self.cpu_children: list[FunctionEvent] = []
        self.sequence_nr = sequence_nr

    @classmethod
    def _from_row(cls, row: Any, number: int) -> FunctionEvent:
        """The event of a row of the C++ profiler."""
        name, kind, start, end, thread, parent, memory, frames, scope, shapes = row
        event = cls(number, name, thread, start / 1e3, end / 1e3, None, [list(s) for s in shapes or ()])
        event.kind, event._parent, event.cpu_memory_usage = kind, parent, memory
        event.frames, event.module = frames, _module_path(scope)
        return event

    def append_cpu_child(self, child: Any) -> None:
        """Makes `child` an event that ran inside this one."""
        self.cpu_children.append(child)
        child.cpu_parent = self

    is_user_annotation = property(lambda self: self.kind == REGION)
    stack = property(lambda self: [location(f) for f in self.frames])
    cpu_time_total = property(lambda self: self.time_range.elapsed_us())

    @property
    def self_cpu_time_total(self) -> Any:
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name} {time_text(self.cpu_time_total)}>"


class FunctionEventAvg(_Times):
    """The sum of several events of one key."""

    def __init__(self, key: Any = None) -> None:
        self.key = self.name = key
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.backward_time_total = 0.0  # the part of the self time that backward nodes took
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.input_shapes: list[Any] = []
        self.stack: list[Any] = []
        self.frames: Any = ()
        self.module = ""
        self.is_user_annotation = False

    def add(self, event: Any) -> FunctionEventAvg:
        if self.key is None:
            self.key = self.name = event.key
        if not self.count:
            self.input_shapes, self.frames, self.stack = event.input_shapes, event.frames, event.stack
            self.module, self.is_user_annotation = event.module, event.is_user_annotation
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        if getattr(event, "kind", OP) == BACKWARD:
            self.backward_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        return self

    def __repr__(self) -> str:
        return f"<FunctionEventAvg {self.key} {self.count} x {time_text(self.cpu_time)}>"


def _module_path(scope: Any) -> Any:
    """The names of the modules around a call, outermost first: "Net.encoder.0"."""
    from rushlight._inspect.graph.collect import child_name

    names = []
    while scope is not None:
        outer, weak, kind = scope
        names.append(child_name(outer, weak() if weak is not None else None) or kind.__name__)
        scope = outer
    return ".".join(reversed(names))


def from_rows(rows: Any) -> EventList:
    """Events of the C++ profiler, each knowing its parent and children. What never ended is left out."""
    made = [FunctionEvent._from_row(row, i) if row[3] else None for i, row in enumerate(rows)]
    for event in made:
        if event is None:
            continue
        at = event._parent
        while at >= 0 and made[at] is None:
            at = rows[at][5]
        if at >= 0:
            cast(FunctionEvent, made[at]).append_cpu_child(event)
    return EventList(e for e in made if e is not None)


class EventList(list[Any]):
    """Events, or sums of them."""

    def __init__(self, events: Any = (), columns: Any = ()) -> None:
        super().__init__(events)
        self._columns = columns  # what tables show beside times: "memory", "shapes", "source", "backward"

    def _populate_cpu_children(self) -> None:
        """Finds the parent of each event: the innermost one of its thread whose time holds all of its own."""
        threads: dict[int, list[Any]] = {}
        for event in sorted(self, key=lambda e: (e.time_range.start, -e.time_range.end)):
            around = threads.setdefault(event.thread, [])
            start, end = event.time_range.start, event.time_range.end
            while around and (start >= around[-1].time_range.end or end > around[-1].time_range.end):
                around.pop()
            if around:
                around[-1].append_cpu_child(event)
            around.append(event)

    def _grouped(self, key: Any, columns: Any) -> EventList:
        groups: dict[Any, Any] = {}
        for event in self:
            k = key(event)
            if k is None:
                continue
            name = k[0] if isinstance(k, tuple) else k
            groups.setdefault(k, FunctionEventAvg(name)).add(event)
        extra = tuple(c for c in self._columns if c == "memory")
        return EventList(groups.values(), (*columns, *extra))

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One row per op; on wish also per shapes of its inputs, or per innermost lines that called it."""
        shapes, lines = bool(group_by_input_shape), int(group_by_stack_n)

        def key(e: Any) -> Any:
            parts = (str(e.input_shapes) if shapes else "", tuple(e.stack[:lines]) if lines else ())
            return (e.key, *parts)

        columns = (("shapes",) if shapes else ()) + (("source",) if lines else ())
        return self._grouped(key, columns)

    def by_line(self) -> EventList:
        """One row per line of source: the time of its ops and of their backward, without what they call."""

        def key(e: Any) -> Any:
            if e.is_user_annotation or not e.frames:
                return None
            file, line, _, text = e.frames[0]
            return f"{os.path.basename(file)}:{line}  {text}", file, line

        return self._grouped(key, ("backward",))

    def by_module(self) -> EventList:
        """One row per module: the time of the ops that its own forward ran, and of their backward."""
        return self._grouped(
            lambda e: None if e.is_user_annotation else e.module or "(no module)", ("backward",)
        )

    def total_average(self) -> FunctionEventAvg:
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    @property
    def self_cpu_time_total(self) -> int:
        return sum(e.self_cpu_time_total for e in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        **kwargs: Any,
    ) -> str:
        """A text table. sort_by: cpu_time_total, self_cpu_time_total, cpu_time, count, cpu_memory_usage, ...;
        row_limit -1 shows all rows.
        """
        from ._table import table

        widths = max_name_column_width, max_src_column_width, max_shapes_column_width
        rows = [e for e in self if not top_level_events_only or getattr(e, "cpu_parent", None) is None]
        return table(rows, self._columns, self.self_cpu_time_total, sort_by, row_limit, widths, header)

    def export_chrome_trace(self, path: str) -> None:
        """Writes a file for chrome://tracing or ui.perfetto.dev; compressed if its name ends in .gz."""
        events = [
            {
                "ph": "X",
                "cat": _CATEGORY[e.kind],
                "name": e.name,
                "pid": os.getpid(),
                "tid": e.thread,
                "ts": e.time_range.start,
                "dur": e.time_range.elapsed_us(),
                "args": {
                    "Input Dims": e.input_shapes,
                    "Call stack": ";".join(reversed(e.stack)),
                    "Module Hierarchy": e.module,
                    "Bytes": e.cpu_memory_usage,
                },
            }
            for e in self
        ]
        opener = gzip.open if str(path).endswith(".gz") else open
        with opener(path, "wt", encoding="utf-8") as f:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events}, f)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes folded stacks, outermost frame first, for flame graphs."""
        if metric not in ("self_cpu_time_total", "self_cuda_time_total"):
            raise ValueError(f"metric should be self_cpu_time_total or self_cuda_time_total, got {metric}")
        sums: dict[str, float] = {}
        for e in self:
            if e.frames:
                key = ";".join([*reversed(e.stack), e.name])
                sums[key] = sums.get(key, 0) + getattr(e, metric)
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(f"{key} {int(value)}\n" for key, value in sums.items() if int(value) > 0)

    def __str__(self) -> str:
        return self.table()


def time_text(us: float) -> str:
    return f"{us / 1e6:.3f}s" if us >= 1e6 else f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"
