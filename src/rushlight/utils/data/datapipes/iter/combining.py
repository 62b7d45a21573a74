"""Several pipes as one, and one as several."""

from __future__ import annotations

import copy as copying
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._hook_iterator import _SnapshotState
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, _length, functional_datapipe
from rushlight.utils.data.datapipes.utils.common import StreamWrapper, _check_unpickable_fn


def _check_pipes(pipes: tuple[Any, ...], what: str = "inputs") -> None:
    if not all(isinstance(pipe, IterDataPipe) for pipe in pipes):
        raise TypeError(f"Expected all {what} to be `IterDataPipe`")


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe[Any]):
    """The samples of several pipes one after another (functional name: ``concat``).

    Args:
        *datapipes: the pipes.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1, 2]).concat(IterableWrapper([3])))
        [1, 2, 3]
    """

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(map(_length, self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe[Any]):
    """Tuples of one sample of each pipe (functional name: ``zip``).

    Args:
        *datapipes: the pipes.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1, 2]).zip(IterableWrapper("ab")))
        [(1, 'a'), (2, 'b')]
    """

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield from zip(*[iter(pipe) for pipe in self.datapipes], strict=False)

    def __len__(self) -> int:
        return min(map(_length, self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe[Any]):
    """One sample of each pipe in turn, until the first of them ends (functional name: ``mux``).

    Args:
        *datapipes: the pipes.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([1, 2]).mux(IterableWrapper([10, 20])))
        [1, 10, 2, 20]
    """

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes, self.buffer = datapipes, list[Any]()

    def __iter__(self) -> Iterator[Any]:
        readers = [iter(pipe) for pipe in self.datapipes]
        while readers:
            for reader in readers:
                try:
                    self.buffer.append(next(reader))
                except StopIteration:
                    self.buffer.clear()
                    return
            yield from self.buffer
            self.buffer.clear()

    def __len__(self) -> int:
        return min(map(_length, self.datapipes)) * len(self.datapipes)

    def reset(self) -> None:
        self.buffer = []


class _Divided(IterDataPipe[Any]):
    """A pipe that several children read, each at its own pace."""

    _stream: Iterator[Any] | None = None

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int, name: str) -> None:
        self.main_datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        if buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{name}`, please be aware of OutOfMemory problem",
                stacklevel=4,
            )
        self._clear()

    def _clear(self) -> None:
        self._stream, self._ended = None, False
        self._stopped = [True] * self.num_instances

    def is_every_instance_exhausted(self) -> bool:
        return self._ended and all(self._stopped)

    def reset(self) -> None:
        self._clear()

    def _begin(self) -> None:
        if self._stream is None and not self._ended:
            self._stream = iter(self.main_datapipe)
            self._snapshot_state = _SnapshotState.Iterating

    def _following(self, number: int) -> Any:
        """The next sample of a child; StopIteration after the last."""
        raise NotImplementedError

    def get_next_element_by_instance(self, number: int) -> Iterator[Any]:
        self._begin()
        self._stopped[number] = False
        try:
            while True:
                try:
                    sample = self._following(number)
                except StopIteration:
                    return
                yield sample
        finally:
            self._stopped[number] = True
            if all(self._stopped):
                self._stream = None

    def get_length_by_instance(self, number: int) -> int:
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")

    def __getstate__(self) -> Any:
        kept = {k: v for k, v in self.__dict__.items() if k in self._kept()}
        return kept if IterDataPipe.getstate_hook is None else IterDataPipe.getstate_hook(kept)

    def _kept(self) -> tuple[str, ...]:
        return (
            "main_datapipe",
            "num_instances",
            "buffer_size",
            "_valid_iterator_id",
            "_number_of_samples_yielded",
        )

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self._clear()


class _ForkerIterDataPipe(_Divided):
    def __init__(
        self, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: str | None = None
    ) -> None:
        copies: dict[str | None, Any] = {None: _same, "shallow": copying.copy, "deep": copying.deepcopy}
        if copy not in copies:
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
            )
        self.copy_fn = copies[copy]
        super().__init__(datapipe, num_instances, buffer_size, "fork")

    def _kept(self) -> tuple[str, ...]:
        return (*super()._kept(), "copy_fn")

    def _clear(self) -> None:
        super()._clear()
        self._buffer: deque[Any] = deque()
        self._first = 0  # the position in the stream of the buffer's first sample
        self._positions = [0] * self.num_instances

    def _following(self, number: int) -> Any:
        at = self._positions[number]
        if at - self._first < len(self._buffer):
            sample = self._buffer[at - self._first]
        else:
            if self._ended or self._stream is None:
                raise StopIteration
            try:
                sample = next(self._stream)
            except StopIteration:
                self._ended = True
                raise
            self._buffer.append(sample)
        self._positions[number] = at + 1
        slowest = min(self._positions)
        while self._first < slowest:
            self._buffer.popleft()
            self._first += 1
        if 0 <= self.buffer_size < len(self._buffer):
            raise BufferError(
                f"ForkerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
            )
        return self.copy_fn(sample)

    def get_length_by_instance(self, number: int) -> int:
        return len(self.main_datapipe)


def _same(sample: Any) -> Any:
    return sample


class _DemultiplexerIterDataPipe(_Divided):
    def __init__(
        self,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool,
        buffer_size: int,
    ) -> None:
        self.classifier_fn, self.drop_none = classifier_fn, drop_none
        super().__init__(datapipe, num_instances, buffer_size, "demux")

    def _kept(self) -> tuple[str, ...]:
        return (*super()._kept(), "classifier_fn", "drop_none")

    def _clear(self) -> None:
        super()._clear()
        self._buffers: list[deque[Any]] = [deque() for _ in range(self.num_instances)]

    def _following(self, number: int) -> Any:
        if self._buffers[number]:
            return self._buffers[number].popleft()
        while True:
            if self._ended or self._stream is None:
                raise StopIteration
            try:
                sample = next(self._stream)
            except StopIteration:
                self._ended = True
                raise
            kind = self.classifier_fn(sample)
            if kind is None and self.drop_none:
                StreamWrapper.close_streams(sample)
                continue
            if kind is None or not 0 <= kind < self.num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {kind} is returned."
                )
            if kind == number:
                return sample
            self._buffers[kind].append(sample)
            if 0 <= self.buffer_size < sum(map(len, self._buffers)):
                raise BufferError(
                    f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
                )


class _ChildDataPipe(IterDataPipe[Any]):
    """One of the pipes that fork or demux give."""

    _is_child_datapipe = True

    def __init__(self, main_datapipe: Any, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator[Any]:
        samples: Iterator[Any] = self.main_datapipe.get_next_element_by_instance(self.instance_id)
        return samples

    def __len__(self) -> int:
        return int(self.main_datapipe.get_length_by_instance(self.instance_id))

    def _set_main_datapipe_valid_iterator_id(self) -> int:
        """A child that has an iterator of this round begins a new round, of all."""
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif self._valid_iterator_id == main._valid_iterator_id:
            main._valid_iterator_id += 1
            if not main.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and each "
                    "child DataPipe will read from the start again.",
                    stacklevel=4,
                )
            main.reset()
        self._valid_iterator_id = main._valid_iterator_id
        return self._valid_iterator_id

    def _check_valid_iterator_id(self, iterator_id: int) -> bool:
        return bool(iterator_id == self._valid_iterator_id == self.main_datapipe._valid_iterator_id)


def _children(main: Any) -> list[Any]:
    return [_ChildDataPipe(main, i) for i in range(main.num_instances)]


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """Several pipes with the samples of one (functional name: ``fork``).

    Args:
        datapipe: the pipe.
        num_instances: how many.
        buffer_size: how far one of them may be ahead; -1 knows no limit. Default: 1000
        copy: what each gets of a sample: itself (None), a "shallow" or a "deep" copy. Default: None

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> first, second = IterableWrapper(range(3)).fork(num_instances=2)
        >>> list(first), list(second)
        ([0, 1, 2], [0, 1, 2])
    """

    def __new__(
        cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: str | None = None
    ) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        if num_instances == 1:
            return datapipe
        return _children(_ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy))


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Several pipes, each with the samples that a function gives its number for (functional name: ``demux``).

    Args:
        datapipe: the pipe.
        num_instances: how many.
        classifier_fn: from a sample to the number of its pipe.
        drop_none: leaves out samples for which that is None. Default: False
        buffer_size: how many samples may wait for the others; -1 knows no limit. Default: 1000

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> even, odd = IterableWrapper(range(5)).demux(num_instances=2, classifier_fn=lambda x: x % 2)
        >>> list(even), list(odd)
        ([0, 2, 4], [1, 3])
    """

    def __new__(
        cls, datapipe: Any, num_instances: int, classifier_fn: Callable[[Any], int | None], drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:  # fmt: skip
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        _check_unpickable_fn(classifier_fn)
        return _children(
            _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        )
