"""DataLoader: batches of a dataset, loaded here or by worker processes or threads."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Self, TypeVar

import rushlight as rl
from rushlight._C import Generator

from ._utils import collate as _collate
from ._utils import fetch as _fetch
from ._utils.collate import default_collate, default_convert
from ._utils.worker import get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.utils.data._worker_iter import WorkerIter


_collate_fn_t = _worker_init_fn_t = object  # for annotations

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

default_collate_fn_map = _collate.default_collate_fn_map


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: Any, dataset: Any, auto_collation: Any, collate_fn: Any, drop_last: Any) -> Any:
        """An object whose `fetch(index)` returns the collated batch at an index (or list of indices)."""
        return _fetch.create_fetcher(
            kind == _DatasetKind.Iterable, dataset, auto_collation, collate_fn, drop_last
        )


class _InfiniteConstantSampler(Sampler[None]):
    """None for ever: the 'indices' of an iterable dataset."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _check_sampling(
    iterable: bool,
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Sampler[Any] | Iterable[Any] | None,
    batch_sampler: Sampler[Any] | Iterable[Any] | None,
    drop_last: bool,
) -> None:
    if iterable:
        for name, value, unset in (
            ("shuffle", shuffle, shuffle in (None, False)),
            ("sampler", sampler, sampler is None),
            ("batch_sampler", batch_sampler, batch_sampler is None),
        ):
            if not unset:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, "
                    f"but got {name}={value}"
                )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
        )
    if batch_sampler is None and batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


_T_co = TypeVar("_T_co", covariant=True)


class DataLoader(Generic[_T_co]):
    """Iterates over a dataset in batches, loaded here or by workers.

    Args:
        dataset (Dataset): samples by index, or an IterableDataset.
        batch_size (int): samples in a batch; None gives single samples. Default: 1
        shuffle (bool): visits the samples in a fresh random order each time. Default: None
        sampler (iterable): the order of the indices instead of shuffle. Default: None
        batch_sampler (iterable): lists of indices, instead of batch_size, shuffle, sampler and drop_last.
            Default: None
        num_workers (int): how many workers load batches ahead; 0 loads them here. Default: 0
        collate_fn (callable): makes a batch of a list of samples; None means default_collate. Default: None
        pin_memory (bool): kept; there is no device to copy to. Default: False
        drop_last (bool): leaves out a last batch that would be smaller. Default: False
        timeout (float): seconds to wait for a worker before an error; 0 waits for ever. Default: 0
        worker_init_fn (callable): called in each worker with its number. Default: None
        multiprocessing_context (str or context): how workers start: "fork", "spawn" or "forkserver" for
            processes, or "thread" for threads of this process, which share its random generator. Default: None
        generator (Generator): for the order and the workers' seeds; None takes the default one. Default: None
        prefetch_factor (int): batches that each worker loads ahead; None means 2. Default: None
        persistent_workers (bool): keeps the workers from one pass to the next. Default: False
        pin_memory_device (str): kept. Default: ""
        in_order (bool): False gives batches as they arrive from the workers. Default: True

    Example:
        >>> data = torch.utils.data.TensorDataset(torch.arange(5.0), torch.arange(5) % 2)
        >>> for x, y in torch.utils.data.DataLoader(data, batch_size=2):
        ...     print(x, y)
        tensor([0., 1.]) tensor([0, 1])
        tensor([2., 3.]) tensor([0, 1])
        tensor([4.]) tensor([0])
        >>> len(torch.utils.data.DataLoader(data, batch_size=2, shuffle=True, drop_last=True))
        2
    """

    _FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    __initialized = False
    __multiprocessing_context = None

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[_T_co]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        iterable = isinstance(dataset, IterableDataset)
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_sampling(iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None and iterable:
            sampler = _InfiniteConstantSampler()
        elif sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.dataset = dataset
        self.batch_size, self.sampler, self.batch_sampler = batch_size, sampler, batch_sampler
        self.drop_last, self.collate_fn, self.generator = drop_last, collate_fn, generator
        self.num_workers, self.prefetch_factor = num_workers, prefetch_factor
        self.persistent_workers, self.in_order = persistent_workers, in_order
        self.timeout, self.worker_init_fn = timeout, worker_init_fn
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.multiprocessing_context = multiprocessing_context
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        self._IterableDataset_len_called: int | None = None
        self._iterator: WorkerIter | None = None
        self.__initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in self._FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        """How workers start: a context of multiprocessing, "thread", or None for the default."""
        if context is not None:
            context = self._checked_context(context)
        self.__multiprocessing_context = context

    def _checked_context(self, context: Any) -> Any:
        if self.num_workers == 0:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                f"but got num_workers={self.num_workers}"
            )
        if context == "thread":
            return context
        import multiprocessing

        if isinstance(context, str):
            methods = multiprocessing.get_all_start_methods()
            if context not in methods:
                raise ValueError(
                    f"multiprocessing_context option should specify a valid start method in {methods!r} "
                    f"(or 'thread'), but got multiprocessing_context={context!r}"
                )
            return multiprocessing.get_context(context)
        if not isinstance(context, multiprocessing.context.BaseContext):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string specifying "
                f"the start method, but got multiprocessing_context={context}"
            )
        return context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> WorkerIter | _SingleProcessDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        from ._worker_iter import WorkerIter

        return WorkerIter(self)

    def __iter__(self) -> Iterator[Any]:
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            from ._worker_iter import WorkerIter

            self._iterator = WorkerIter(self)
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is not None:
            whole, rest = divmod(length, self.batch_size)
            length = whole + (rest > 0 and not self.drop_last)
        return length

    def check_worker_number_rationality(self) -> None:
        """Warns when there are more worker processes than processors to run them."""
        if not self.num_workers or self.multiprocessing_context == "thread":
            return
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if processors is not None and self.num_workers > processors:
            import warnings

            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested "
                f"max number of worker in current system is {processors}, which is smaller than what this DataLoader "
                "is going to create. Please be aware that excessive worker creation might get DataLoader running slow "
                "or even freeze, lower the worker number to avoid it.",
                stacklevel=3,
            )


class _BaseDataLoaderIter:
    _SHARES = ""  # what a wrong length may come from

    def __init__(self, loader: Any) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._index_sampler = loader._index_sampler
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._num_yielded = 0
        self._sampler_iter = iter(self._index_sampler)
        # always drawn, workers or not: the same program keeps its random numbers when workers are added
        self._base_seed = rl.empty((), dtype=rl.int64).random_(generator=loader.generator).item()

    def __iter__(self) -> Self:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        if (
            self._IterableDataset_len_called is not None
            and self._num_yielded > self._IterableDataset_len_called
        ):
            import warnings

            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {self._IterableDataset_len_called} "
                f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched."
                + self._SHARES,
                stacklevel=2,
            )
        return data

    def _next_data(self) -> Any:
        raise NotImplementedError


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0: nobody is waited for")
        self._fetcher = _DatasetKind.create_fetcher(
            loader._dataset_kind,
            loader.dataset,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )

    def _next_data(self) -> Any:
        return self._fetcher.fetch(next(self._sampler_iter))


def __getattr__(name: str) -> Any:
    # the iterator with workers is loaded when a loader first uses some
    if name == "_MultiProcessingDataLoaderIter":
        from ._worker_iter import WorkerIter

        return WorkerIter
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
