"""What runs inside a worker, process or thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import rushlight as rl

from . import fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

    from rushlight.utils.data._utils.crew import WorkerConfig
    from rushlight.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher


__all__ = ["WorkerInfo", "get_worker_info"]

_local = threading.local()  # worker threads each see their own info
_worker_info = None
PARENT_CHECK_SECONDS = 5.0


class WorkerInfo:
    """id, num_workers, seed and dataset of a worker; `get_worker_info()` returns it inside one."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    _fields: tuple[str, ...]

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)
        self.__dict__["_fields"] = tuple(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in self._fields)})"


def get_worker_info() -> WorkerInfo | None:
    """Tells about the DataLoader worker that this is called in; None in the main process.

    Returns:
        An object with `id`, `num_workers`, `seed` and `dataset` (the worker's copy).

    Example:
        >>> class Share(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         info = torch.utils.data.get_worker_info()
        ...         first, step = (0, 1) if info is None else (info.id, info.num_workers)
        ...         return iter(range(first, 6, step))
        >>> list(Share()), torch.utils.data.get_worker_info()
        ([0, 1, 2, 3, 4, 5], None)
    """
    info: WorkerInfo | None = getattr(_local, "info", _worker_info)
    return info


class Failure:
    """An exception as text, so that it can cross to the loader whatever it holds."""

    def __init__(self, error: BaseException, where: str) -> None:
        import traceback

        self.kind = type(error)
        self.where = where
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))

    def __getstate__(self) -> dict[str, Any]:
        import pickle

        state = dict(self.__dict__)
        try:
            pickle.loads(pickle.dumps(self.kind))
        except Exception:
            state["kind_name"], state["kind"] = self.kind.__name__, RuntimeError
        return state

    def reraise(self) -> NoReturn:
        """Raise the same type with the worker's traceback as its message."""
        name = getattr(self, "kind_name", self.kind.__name__)
        message = f"Caught {name} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            # KeyError shows the repr of its argument: keep the line breaks
            message = _Verbatim(message)
        try:
            error = self.kind(message)
        except Exception:
            error = RuntimeError(message)
        raise error


class _Verbatim(str):
    def __repr__(self) -> str:
        return str(self)


class StreamEnded:
    """A worker's share of an IterableDataset is used up."""

    def __init__(self, worker_id: int) -> None:
        self.worker_id = worker_id


def run_tasks(
    receive: Callable[[], Any],
    send: Callable[[Any], object],
    worker_id: int,
    num_workers: int,
    seed: int,
    loader: WorkerConfig,
    info_setter: Callable[[WorkerInfo], object],
    where: str,
) -> None:
    """Serve tasks until told to stop.

    Tasks: ("fetch", number, index), ("resume", seed) before a new epoch of a persistent worker, None to end.
    Answers: (number, batch | Failure | StreamEnded), and ("resumed", worker_id).
    """

    def start(seed: int) -> _IterableDatasetFetcher | _MapDatasetFetcher:
        info_setter(WorkerInfo(id=worker_id, num_workers=num_workers, seed=seed, dataset=loader.dataset))
        return fetch.create_fetcher(
            loader.iterable, loader.dataset, loader.auto_collation, loader.collate_fn, loader.drop_last
        )

    fetcher: _IterableDatasetFetcher | _MapDatasetFetcher
    broken, ended = None, False
    try:
        info_setter(WorkerInfo(id=worker_id, num_workers=num_workers, seed=seed, dataset=loader.dataset))
        _share(loader.dataset, worker_id, num_workers)
        if loader.worker_init_fn is not None:
            loader.worker_init_fn(worker_id)
        fetcher = start(seed)
    except Exception as error:
        broken = Failure(error, where)
    while True:
        task = receive()
        if task is None:
            return
        if task[0] == "resume":
            ended = False
            if broken is None:
                try:
                    fetcher = start(task[1])
                except Exception as error:
                    broken = Failure(error, where)
            send(("resumed", worker_id))
            continue
        _, number, index = task
        if ended:
            continue
        answer: Any
        if broken is not None:
            answer = broken
        else:
            try:
                answer = fetcher.fetch(index)
            except StopIteration as error:
                if loader.iterable:
                    answer, ended = StreamEnded(worker_id), True
                else:
                    answer = Failure(error, where)
            except Exception as error:
                answer = Failure(error, where)
        try:
            send((number, answer))
        except (BrokenPipeError, ConnectionError):
            return
        except Exception as error:  # the batch cannot be pickled
            send((number, Failure(error, where)))
        del answer, task, index  # free the batch before waiting for the next task


def _share(dataset: Any, worker_id: int, num_workers: int) -> None:
    """Tells the sharding pipes of a data pipe which part this worker reads."""
    import sys

    pipes = sys.modules.get("rushlight.utils.data.datapipes.datapipe")
    if pipes is not None and isinstance(dataset, pipes.IterDataPipe | pipes.MapDataPipe):
        from rushlight.utils.data.graph_settings import apply_sharding

        apply_sharding(dataset, num_workers, worker_id)


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The seed of NumPy's generator in a worker: 4 words."""
    import numpy

    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    state: list[int] = numpy.random.SeedSequence(words).generate_state(4).tolist()
    return state


def _seed_everything(base_seed: int, worker_id: int) -> None:
    import random

    seed = base_seed + worker_id
    random.seed(seed)
    rl.manual_seed(seed)
    try:
        import numpy
    except ImportError:
        return
    numpy.random.seed(_generate_state(base_seed, worker_id))


def process_main(
    sock: socket.socket,
    to_close: Iterable[socket.socket],
    worker_id: int,
    num_workers: int,
    base_seed: int,
    loader: WorkerConfig,
) -> None:
    """Entry point of a worker process."""
    import select
    import signal

    from . import collate, transport

    collate.shared_empty = transport.shared_empty
    for other in to_close:  # the loader's ends, inherited by fork: holding them would hide its death
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the loader ends us
    rl.set_num_threads(1)
    _seed_everything(base_seed, worker_id)
    parent = os.getppid()

    def set_info(info: WorkerInfo) -> None:
        global _worker_info
        _worker_info = info

    def receive() -> Any:
        while not select.select([sock], [], [], PARENT_CHECK_SECONDS)[0]:
            if os.getppid() != parent:
                return None
        try:
            return transport.receive(sock)
        except EOFError:
            return None

    def send(answer: Any) -> None:
        try:
            transport.send(sock, answer)
        finally:
            transport.forget_segments()

    run_tasks(
        receive,
        send,
        worker_id,
        num_workers,
        base_seed + worker_id,
        loader,
        set_info,
        f"in DataLoader worker process {worker_id}",
    )
    sock.close()


def thread_main(
    receive: Callable[[], Any],
    send: Callable[[Any], object],
    worker_id: int,
    num_workers: int,
    base_seed: int,
    loader: WorkerConfig,
) -> None:
    """Entry point of a worker thread."""

    def set_info(info: WorkerInfo) -> None:
        _local.info = info

    run_tasks(
        receive,
        send,
        worker_id,
        num_workers,
        base_seed + worker_id,
        loader,
        set_info,
        f"in DataLoader worker thread {worker_id}",
    )
