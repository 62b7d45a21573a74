"""The DataLoader iterator that has workers: keeps them busy, returns their batches in order."""

from __future__ import annotations

from collections import deque

from ._utils.crew import ProcessCrew, ThreadCrew, WorkerConfig
from ._utils.worker import Failure, StreamEnded
from .dataloader import _BaseDataLoaderIter, _DatasetKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from multiprocessing.process import BaseProcess
    from typing import Any

    from rushlight.utils.data.dataloader import DataLoader


class WorkerIter(_BaseDataLoaderIter):
    _crew: ProcessCrew | ThreadCrew | None = None
    _SHARES = (
        " For multiprocessing data-loading, this comes of workers that each iterate a copy of the dataset: have them "
        "give their share only, by get_worker_info()."
    )

    def __init__(self, loader: DataLoader[Any]) -> None:
        factor = loader.prefetch_factor
        if factor is None or factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        super().__init__(loader)
        self._num_workers = loader.num_workers
        self._ahead = factor * loader.num_workers
        self._timeout = loader.timeout if loader.timeout > 0 else None
        self._in_order, self._persistent = loader.in_order, loader.persistent_workers
        config = WorkerConfig(
            loader.dataset,
            loader._dataset_kind == _DatasetKind.Iterable,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
            loader.worker_init_fn,
        )
        context = loader.multiprocessing_context
        if context == "thread":
            self._crew = ThreadCrew(self._num_workers, self._base_seed, config)
        else:
            if context is None:
                import multiprocessing

                context = multiprocessing.get_context()
            self._crew = ProcessCrew(context, self._num_workers, self._base_seed, config)
        self._start_epoch()

    @property
    def _workers(self) -> Sequence[BaseProcess | threading.Thread]:
        """The processes (or threads) that load, as programs look at them to see whether they live; none are left at the end."""
        return [] if self._crew is None else self._crew.workers()

    def _start_epoch(self) -> None:
        self._streaming = [True] * self._num_workers  # False: this worker's stream is used up
        self._next_worker = 0
        self._next_number = 0
        self._owner: dict[int, int] = {}  # task number -> worker, of all tasks not yet answered
        self._answers: dict[int, Any] = {}  # task number -> answer, received but not yet returned
        self._pending: deque[int] = deque()  # task indices in the order in which to return them
        self._sampler_ended = False
        for _ in range(self._ahead):
            self._assign()

    def _reset(self, loader: DataLoader[Any]) -> None:
        """A new epoch of persistent workers; what they still owe from an abandoned one is thrown away."""
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._num_yielded = 0
        self._sampler_iter = iter(self._index_sampler)
        waiting = set(range(self._num_workers))
        assert self._crew is not None  # a loader whose workers have ended makes a new iterator
        for i in waiting:
            self._crew.send(i, ("resume", self._base_seed + i))
        while waiting:
            for _, answer in self._collect(waiting):
                if answer[0] == "resumed":
                    waiting.discard(answer[1])
        self._start_epoch()

    def _assign(self) -> None:
        """Give the next index to the next worker in turn that still has something to load."""
        if self._sampler_ended or not any(self._streaming):
            return
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            self._sampler_ended = True
            return
        while not self._streaming[self._next_worker]:
            self._next_worker = (self._next_worker + 1) % self._num_workers
        worker = self._next_worker
        self._next_worker = (worker + 1) % self._num_workers
        number = self._next_number
        self._next_number += 1
        self._owner[number] = worker
        self._pending.append(number)
        assert self._crew is not None
        self._crew.send(worker, ("fetch", number, index))

    def _collect(self, workers: set[int]) -> list[tuple[int, tuple[Any, Any]]]:
        assert self._crew is not None
        try:
            received = self._crew.wait(workers, self._timeout)
        except BaseException:
            self._shutdown()
            raise
        if not received:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        return received

    def _next_data(self) -> Any:
        if self._crew is None:
            raise StopIteration
        while self._pending:
            number = self._pick()
            if number is None:
                for worker, (answered, answer) in self._collect(set(self._owner.values())):
                    if self._owner.get(answered) == worker:
                        del self._owner[answered]
                        self._answers[answered] = answer
                continue
            self._pending.remove(number)
            answer = self._answers.pop(number)
            if isinstance(answer, StreamEnded):
                self._end_stream(answer.worker_id)
                continue
            self._assign()
            if isinstance(answer, Failure):
                answer.reraise()
            return answer
        if not self._persistent:
            self._shutdown()
        raise StopIteration

    def _pick(self) -> int | None:
        """The task whose answer to return now, or None to wait."""
        if self._in_order:
            return self._pending[0] if self._pending[0] in self._answers else None
        return next((number for number in self._pending if number in self._answers), None)

    def _end_stream(self, worker: int) -> None:
        # Acted upon in the order of tasks, not of arrival: which worker gets which task stays reproducible.
        self._streaming[worker] = False
        for number in [n for n, owner in self._owner.items() if owner == worker]:
            del self._owner[number]
            self._pending.remove(number)
        self._assign()

    def _shutdown(self) -> None:
        crew, self._crew = self._crew, None
        if crew is not None:
            self._pending, self._owner, self._answers = deque(), {}, {}
            crew.shutdown()

    def __del__(self) -> None:
        try:  # noqa: SIM105  (so late, contextlib may be gone)
            self._shutdown()
        except Exception:  # at interpreter exit modules may be half gone; daemons end with us anyway
            pass
