"""profile, record_function and schedules."""

from __future__ import annotations

import contextlib
import enum
import os
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal, Self

from rushlight import _C

from ._events import EventList as EventList
from ._events import FunctionEvent as FunctionEvent
from ._events import FunctionEventAvg as FunctionEventAvg
from ._events import from_rows


class ProfilerActivity(enum.Enum):
    """What a profile may record: the kinds of devices. Here, CPU is the only one that there is.

    Example:
        >>> torch.profiler.ProfilerActivity.CPU.name
        'CPU'
    """

    CPU = 0
    CUDA = 1
    XPU = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a profile does at a step: nothing, warm up, record, or record and hand over.

    Example:
        >>> torch.profiler.schedule(active=1)(0).name
        'RECORD_AND_SAVE'
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[Any]:
    """The set of activities that a profile can record.

    Example:
        >>> torch.profiler.ProfilerActivity.CPU in torch.profiler.supported_activities()
        True
    """
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int = 0,
    warmup: int = 0,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """A function of the step number for profile(schedule=...): skip, then wait, warm up and record in turns.

    Args:
        wait (int): steps of a cycle that are left alone. Default: 0
        warmup (int): steps before recording whose times are thrown away. Default: 0
        active (int): steps that are recorded.
        repeat (int): how many cycles; 0 goes on for ever. Default: 0
        skip_first (int): steps before the first cycle. Default: 0
        skip_first_wait (int): other than 0, the first cycle does not wait. Default: 0

    Example:
        >>> action = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
        >>> [action(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(f"Invalid profiler schedule arguments: {wait}, {warmup}, {active}, {repeat}")
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        if repeat and step >= repeat * cycle:
            return ProfilerAction.NONE
        position = step % cycle
        if position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if position == cycle - 1 else ProfilerAction.RECORD

    return action


def _default_schedule_fn(_: int) -> ProfilerAction:
    """Records every step."""
    return ProfilerAction.RECORD


_begin, _end = _C.ops["_profile_begin"], _C.ops["_profile_end"]


class record_function(contextlib.ContextDecorator):
    """Names a region, as a context or decorator, for the profile that is running, if any.

    Args:
        name (str): of the region.
        args (str): accepted. Default: None

    Example:
        >>> with torch.profiler.profile() as p:
        ...     with torch.profiler.record_function("double"):
        ...         _ = torch.ones(2) * 2
        >>> "double" in [row.key for row in p.key_averages()]
        True
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._open: list[Any] = []

    def __enter__(self) -> Self:
        self._open.append(_begin(self.name))
        return self

    def __exit__(self, *exc: Any) -> Literal[False]:
        _end(self._open.pop())
        return False


def _record_function_enter(name: str, args: Any = None) -> Any:
    """Begins a region; what it gives is for _record_function_exit."""
    return record_function(name, args).__enter__()


def _record_function_exit(region: Any) -> None:
    region.__exit__(None, None, None)


# torch.ops.profiler
OPERATORS = {
    "_record_function_enter": _record_function_enter,
    "_record_function_enter_new": _record_function_enter,
    "_record_function_exit": _record_function_exit,
}

_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
_running = None  # the profile that is recording: there is one clock for the process


class profile:
    """Times every op, every backward node and the regions that record_function names, within a block.

    key_averages() sums by op, by_line() by line of source, by_module() by module, forward and backward
    together; each has table(sort_by=...). One profile records at a time.

    Args:
        enabled (bool): False makes the block do nothing. Default: True
        activities (iterable): of ProfilerActivity; None means all. Default: None
        schedule (callable): from the number of the step, which step() counts, to a ProfilerAction. None records
            always. Default: None
        on_trace_ready (callable): called with the profile when a record is finished. Default: None
        record_shapes (bool): keeps the shapes of inputs. Default: False
        profile_memory (bool): shows how much memory each op left allocated. Default: False
        with_stack (bool): keeps all lines that led to a call, not only the innermost. Default: False
        with_flops, with_modules, acc_events (bool): accepted. Default: False
        experimental_config, execution_trace_observer, custom_trace_id_callback (object): accepted. Default:
            None
        use_cuda, use_device, use_kineto, use_cpu (object): accepted, as old programs have them.

    Example:
        >>> layer = nn.Linear(4, 4)
        >>> with torch.profiler.profile() as p:
        ...     layer(torch.ones(2, 4)).sum().backward()
        >>> {"aten::linear", "aten::sum"} <= {row.key for row in p.key_averages()}
        True
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        use_device: Any = None,
        use_kineto: bool = False,
        use_cpu: bool = True,
        custom_trace_id_callback: Callable[[], str] | None = None,
    ) -> None:
        self.activities = set(activities) if activities else supported_activities()
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.step_num = 0
        self.metadata: dict[str, str] = {}
        self._enabled = enabled
        self._events = EventList()
        self._step: Any = None

    @property
    def current_action(self) -> ProfilerAction:
        """What the schedule says for this step."""
        return self.schedule(self.step_num) if self.schedule else ProfilerAction.RECORD

    @property
    def profiler(self) -> profile:
        """The profile itself, as PyTorch's has an inner one."""
        return self

    def _begin(self) -> None:
        global _running
        if not self._enabled or self.current_action not in _RECORDING or _running is self:
            return
        if _running is not None:
            raise RuntimeError("Profiler is already enabled: another profile is recording")
        _running = self
        _C.ops["_profile_start"](bool(self.record_shapes), bool(self.with_stack))

    def _finish(self) -> None:
        """Ends the recording, if there is one; what it found is handed to on_trace_ready."""
        global _running
        if _running is not self:
            return
        _running = None
        columns = ("memory",) if self.profile_memory else ()
        self._events = EventList(from_rows(_C.ops["_profile_stop"]()), columns)
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _open_step(self) -> None:
        if self.schedule:
            self._step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _close_step(self) -> None:
        if self._step:
            self._step.__exit__(None, None, None)
            self._step = None

    def start(self) -> None:
        """Begins recording, as the beginning of the block does."""
        self._begin()
        self._open_step()

    def stop(self) -> None:
        """Ends recording, as the end of the block does."""
        self._close_step()
        self._finish()

    def step(self) -> None:
        """Ends one step of the schedule and begins the next."""
        self._close_step()
        before = self.current_action
        self.step_num += 1
        if before is ProfilerAction.RECORD_AND_SAVE or self.current_action not in _RECORDING:
            self._finish()
        self._begin()
        self._open_step()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: Any) -> Literal[False]:
        self.stop()
        return False

    def events(self) -> Any:
        """All events, in the order of their beginning."""
        return self._events

    @property
    def function_events(self) -> EventList:
        """The same as events()."""
        return self._events

    @property
    def self_cpu_time_total(self) -> int:
        """The sum of the times that ops took themselves, in microseconds."""
        return self._events.self_cpu_time_total

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> Any:
        """One row per op, with the number of its calls and the sum of their times.

        Args:
            group_by_input_shape (bool): tells shapes of inputs apart; needs record_shapes. Default: False
            group_by_stack_n (int): tells the innermost n lines that called apart; needs with_stack. Default: 0
            group_by_overload_name (bool): accepted. Default: False
        """
        return self._events.key_averages(group_by_input_shape, group_by_stack_n)

    def by_line(self) -> EventList:
        """One row per line of source: the time of its ops and of their backward."""
        return self._events.by_line()

    def by_module(self) -> EventList:
        """One row per module: the time of the ops that its own forward ran, and of their backward."""
        return self._events.by_module()

    def total_average(self) -> FunctionEventAvg:
        """All events as one row."""
        return self._events.total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """A table of all events, as text."""
        return self._events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Writes a file for chrome://tracing or ui.perfetto.dev."""
        self._events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes folded stacks for flame graphs; profile with with_stack=True."""
        self._events.export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Keeps a note with the profile."""
        self.metadata[key] = value

    add_metadata_json = add_metadata

    def __str__(self) -> str:
        return str(self._events)


class _Accepted(contextlib.ContextDecorator):
    """A context for tools of other devices: accepted, and without effect here."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: Any) -> Literal[False]:
        return False


class emit_nvtx(_Accepted):
    """Marks for NVIDIA's profiler: there is no such device."""


class emit_itt(_Accepted):
    """Marks for Intel's profiler: not written."""


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """An on_trace_ready that writes a trace file into a folder, for TensorBoard or chrome://tracing.

    Args:
        dir_name (str): the folder, which is made.
        worker_name (str): begins the names of the files; None takes the host and the process. Default: None
        use_gzip (bool): compresses the file. Default: False

    Example:
        >>> import os
        >>> handler = torch.profiler.tensorboard_trace_handler("traces", worker_name="w")
        >>> with torch.profiler.profile(on_trace_ready=handler):
        ...     _ = torch.ones(2) * 2
        >>> [name.split(".")[0] for name in os.listdir("traces")]
        ['w']
    """
    name = worker_name or f"{os.uname().nodename}_{os.getpid()}"

    def write(profiler: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        ending = ".gz" if use_gzip else ""
        profiler.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}.pt.trace.json{ending}"))

    return write
