"""The loader's side of its workers: starting them, handing out tasks, collecting answers, noticing deaths."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from socket import SHUT_RDWR, socketpair
from typing import Any, NoReturn

from . import worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    import queue
    import threading
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess
    from socket import socket

JOIN_SECONDS = 5.0
ALIVE_CHECK_SECONDS = 5.0


class WorkerConfig:
    """What a worker needs to know of its loader (picklable, for start methods other than fork)."""

    def __init__(
        self,
        dataset: Any,
        iterable: bool,
        auto_collation: bool,
        collate_fn: Callable[..., Any],
        drop_last: bool,
        worker_init_fn: Callable[..., Any] | None,
    ) -> None:
        self.dataset, self.iterable, self.auto_collation = dataset, iterable, auto_collation
        self.collate_fn, self.drop_last, self.worker_init_fn = collate_fn, drop_last, worker_init_fn


def _cause_of_death(exitcode: int | None) -> str:
    if exitcode is None:
        return "its connection broke"
    if exitcode >= 0:
        return f"exit code {exitcode}"
    import signal

    try:
        name = signal.Signals(-exitcode).name
    except ValueError:
        name = f"signal {-exitcode}"
    hint = " (often the kernel out of memory)" if name == "SIGKILL" else ""
    return f"killed by {name}{hint}, exit code {exitcode}"


class ProcessCrew:
    """Worker processes, each on a socket of its own: one that dies can block neither us nor the others."""

    def __init__(self, context: BaseContext, num_workers: int, base_seed: int, config: WorkerConfig) -> None:
        self._owner_pid = os.getpid()
        self._socks: list[socket] = []
        self._processes: list[BaseProcess] = []
        forking = context.get_start_method() == "fork"
        if forking:  # workers seed NumPy's generator, and would each import it
            with contextlib.suppress(ImportError):
                import numpy  # noqa: F401
        try:
            for i in range(num_workers):
                ours, theirs = socketpair()
                self._socks.append(ours)
                inherited = list(self._socks) if forking else []
                process = context.Process(  # type: ignore[attr-defined]  # every context has its own
                    target=worker.process_main,
                    args=(theirs, inherited, i, num_workers, base_seed, config),
                    daemon=True,
                )
                try:
                    process.start()
                finally:
                    theirs.close()
                self._processes.append(process)
        except BaseException:
            self.shutdown()
            raise

    def workers(self) -> list[BaseProcess]:
        return list(self._processes)

    def send(self, worker_id: int, task: tuple[Any, ...]) -> None:
        from . import transport

        with contextlib.suppress(ConnectionError, BrokenPipeError):  # it died: `wait` finds out and says so
            transport.send(self._socks[worker_id], task)

    def wait(self, worker_ids: set[int], timeout: float | None) -> list[tuple[int, tuple[Any, Any]]]:
        """(worker_id, answer) pairs of these workers, at least one; [] after `timeout` seconds."""
        import select

        deadline = None if timeout is None else time.monotonic() + timeout
        poller = select.poll()
        by_fd = {}
        for i in worker_ids:
            by_fd[self._socks[i].fileno()] = i
            poller.register(self._socks[i], select.POLLIN)
        while True:
            left = ALIVE_CHECK_SECONDS if deadline is None else max(0.0, deadline - time.monotonic())
            events = poller.poll(1000 * min(left, ALIVE_CHECK_SECONDS))
            if events:
                return [(by_fd[fd], self._receive(by_fd[fd])) for fd, _ in events]
            # a grandchild may hold a dead worker's socket open: ask the processes themselves, too
            dead = [i for i in worker_ids if not self._processes[i].is_alive()]
            if dead:
                self._raise_dead(dead)
            if deadline is not None and time.monotonic() >= deadline:
                return []

    def _receive(self, worker_id: int) -> tuple[Any, Any]:
        from . import transport

        try:
            answer: tuple[Any, Any] = transport.receive(self._socks[worker_id])
            return answer
        except EOFError:
            self._raise_dead([worker_id])

    def _raise_dead(self, worker_ids: Iterable[int]) -> NoReturn:
        stories = []
        for i in worker_ids:
            self._processes[i].join(1.0)
            stories.append(f"worker {i}: {_cause_of_death(self._processes[i].exitcode)}")
        pids = ", ".join(str(self._processes[i].pid) for i in worker_ids)
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly ({'; '.join(stories)})")

    def shutdown(self) -> None:
        """End all workers: asked first, forced after JOIN_SECONDS."""
        if os.getpid() != self._owner_pid:
            return  # a forked copy of the loader: not our children
        for sock in self._socks:
            # A waiting worker reads the end of its socket and leaves. Closing alone would not do: workers of
            # other loaders, forked later, hold copies of this descriptor.
            with contextlib.suppress(OSError):
                sock.shutdown(SHUT_RDWR)
            sock.close()
        deadline = time.monotonic() + JOIN_SECONDS
        for process in self._processes:
            process.join(max(0.0, deadline - time.monotonic()))
        for stop in ("terminate", "kill"):
            stubborn = [process for process in self._processes if process.is_alive()]
            for process in stubborn:
                getattr(process, stop)()
            for process in stubborn:
                process.join(1.0)
        self._socks, self._processes = [], []


class ThreadCrew:
    """Worker threads: no copying, no start-up cost; worth it when loading releases the GIL."""

    def __init__(self, num_workers: int, base_seed: int, config: WorkerConfig) -> None:
        import queue
        import threading

        self._answers: queue.SimpleQueue[tuple[int, tuple[Any, Any]]] = queue.SimpleQueue()
        self._tasks: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(num_workers)]
        self._threads = [
            threading.Thread(
                target=worker.thread_main,
                args=(self._tasks[i].get, self._answer_of(i), i, num_workers, base_seed, config),
                name=f"DataLoader worker {i}",
                daemon=True,
            )
            for i in range(num_workers)
        ]
        for thread in self._threads:
            thread.start()

    def workers(self) -> list[threading.Thread]:
        return list(self._threads)

    def _answer_of(self, worker_id: int) -> Callable[..., Any]:
        answers = self._answers
        return lambda value: answers.put((worker_id, value))

    def send(self, worker_id: int, task: tuple[Any, ...]) -> None:
        self._tasks[worker_id].put(task)

    def wait(self, worker_ids: set[int], timeout: float | None) -> list[tuple[int, tuple[Any, Any]]]:
        import queue

        try:
            return [self._answers.get(timeout=timeout)]
        except queue.Empty:
            return []

    def shutdown(self) -> None:
        for tasks in self._tasks:
            tasks.put(None)
        self._tasks = []
