"""profile, record_function and schedules."""

import contextlib
import enum
import json
import os
import threading
import time


class ProfilerActivity(enum.Enum):
    CPU = 0
    CUDA = 1
    XPU = 2
    MTIA = 3


class ProfilerAction(enum.Enum):
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities():
    return {ProfilerActivity.CPU}


def schedule(*, wait=0, warmup=0, active, repeat=0, skip_first=0, skip_first_wait=0):
    """step number -> what to do: skip some, then wait, warm up and record in turns, `repeat` times (0: for
    ever).
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(f"Invalid profiler schedule arguments: {wait}, {warmup}, {active}, {repeat}")
    cycle = wait + warmup + active

    def action(step):
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        if repeat and step >= repeat * cycle:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    return action


_active = []  # profiles that are recording


class record_function(contextlib.ContextDecorator):
    """Names a region (with block or decorator) for the profiles that are running."""

    def __init__(self, name, args=None):
        self.name = name
        self.args = args
        self._starts = []

    def __enter__(self):
        self._starts.append(time.perf_counter_ns())
        return self

    def __exit__(self, *exc):
        start = self._starts.pop()
        if _active:
            event = FunctionEvent(self.name, start, time.perf_counter_ns(), threading.get_ident())
            for profiler in _active:
                profiler._events.append(event)
        return False


class FunctionEvent:
    """One run of a region. Times are in microseconds."""

    def __init__(self, name, start, end, thread):
        self.name = self.key = name
        self.start, self.end, self.thread = start / 1e3, end / 1e3, thread
        self.count = 1
        self.cpu_time = self.cpu_time_total = self.self_cpu_time_total = self.end - self.start
        self.cuda_time = self.cuda_time_total = self.device_time = self.device_time_total = 0.0
        self.input_shapes = []


class EventList(list):
    """Events, or averages of them."""

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        groups = {}
        for event in self:
            groups.setdefault(event.key, []).append(event)
        averages = EventList()
        for events in groups.values():
            mean = FunctionEvent(events[0].name, 0, 0, events[0].thread)
            mean.count = len(events)
            mean.cpu_time_total = mean.self_cpu_time_total = sum(e.cpu_time_total for e in events)
            mean.cpu_time = mean.cpu_time_total / mean.count
            averages.append(mean)
        return averages

    def total_average(self):
        total = FunctionEvent("Total", 0, 0, 0)
        total.count = sum(e.count for e in self)
        total.cpu_time_total = total.self_cpu_time_total = sum(e.cpu_time_total for e in self)
        return total

    def table(self, sort_by=None, row_limit=100, max_name_column_width=55, **kwargs):
        """A text table of names, times and counts; row_limit -1 shows all."""
        key = {"count": "count", "cpu_time": "cpu_time"}.get(sort_by, "cpu_time_total")
        rows = sorted(self, key=lambda e: getattr(e, key), reverse=True) if sort_by else list(self)
        rows = rows if row_limit < 0 else rows[:row_limit]
        width = min(max([len(e.name) for e in rows] + [4]), max_name_column_width)
        line = f"{'-' * width}  {'-' * 12}  {'-' * 12}  {'-' * 10}"
        out = [line, f"{'Name':>{width}}  {'CPU total':>12}  {'CPU time avg':>12}  {'# of Calls':>10}", line]
        for e in rows:
            times = f"{_time(e.cpu_time_total):>12}  {_time(e.cpu_time):>12}"
            out.append(f"{e.name[:width]:>{width}}  {times}  {e.count:>10}")
        return "\n".join([*out, line])

    def export_chrome_trace(self, path):
        events = [
            {
                "name": e.name,
                "ph": "X",
                "ts": e.start,
                "dur": e.end - e.start,
                "pid": os.getpid(),
                "tid": e.thread,
            }
            for e in self
        ]
        with open(path, "w") as f:
            json.dump({"traceEvents": events}, f)

    def __str__(self):
        return self.table()


def _time(us):
    return f"{us / 1e6:.3f}s" if us >= 1e6 else f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


class profile:
    """with profile(schedule=..., on_trace_ready=...) as p: ...; p.step().

    Times the regions that record_function names.
    """

    def __init__(
        self,
        enabled=True,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        **options,
    ):
        self.activities = set(activities) if activities else supported_activities()
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self._enabled = enabled
        self._events = EventList()
        self._step = None

    @property
    def current_action(self):
        return self.schedule(self.step_num) if self.schedule else ProfilerAction.RECORD

    def _follow(self):
        wanted = self._enabled and self.current_action in (
            ProfilerAction.RECORD,
            ProfilerAction.RECORD_AND_SAVE,
        )
        if wanted and self not in _active:
            self._events = EventList()
            _active.append(self)
        elif not wanted and self in _active:
            _active.remove(self)

    def start(self):
        self._follow()
        if self.schedule:
            self._step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def stop(self):
        recording = self in _active
        if self._step:
            self._step.__exit__(None, None, None)
            self._step = None
        if recording:
            _active.remove(self)
            if self.on_trace_ready:
                self.on_trace_ready(self)

    def step(self):
        """Ends one step of the schedule and begins the next."""
        if self._step:
            self._step.__exit__(None, None, None)
        save = self.schedule and self.current_action is ProfilerAction.RECORD_AND_SAVE
        if save and self in _active:
            _active.remove(self)
            if self.on_trace_ready:
                self.on_trace_ready(self)
        self.step_num += 1
        self._follow()
        if self.schedule:
            self._step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()
        return False

    def events(self):
        return self._events

    @property
    def function_events(self):
        return self._events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, **kwargs):
        return self._events.key_averages()

    def total_average(self):
        return self._events.total_average()

    def table(self, **kwargs):
        return self._events.table(**kwargs)

    def export_chrome_trace(self, path):
        self._events.export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        with open(path, "w") as f:
            for event in self.key_averages():
                f.write(f"{event.name} {int(event.cpu_time_total)}\n")

    def add_metadata(self, key, value):
        return None

    add_metadata_json = add_metadata


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """An on_trace_ready that writes a trace file into a folder, for TensorBoard or chrome://tracing."""
    name = worker_name or f"{os.uname().nodename}_{os.getpid()}"

    def write(profiler):
        os.makedirs(dir_name, exist_ok=True)
        profiler.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}.pt.trace.json"))

    return write
