"""Pipes of maps."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sized
from typing import Any

import rushlight as rl
from rushlight.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn


class SequenceWrapperMapDataPipe(MapDataPipe[Any]):
    """The items of a sequence or mapping, of which a copy is made unless `deepcopy` is False."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


def default_fn(data: Any) -> Any:
    """The sample itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe[Any]):
    """fn of each sample (functional name: ``map``).

    Args:
        datapipe: the pipe.
        fn: the function. Default: the sample itself

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> list(SequenceWrapper(range(3)).map(lambda x: x + 1))
        [1, 2, 3]
    """

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any] = default_fn) -> None:
        self.datapipe, self.fn = datapipe, fn
        _check_unpickable_fn(fn)

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe[Any]):
    """Lists of batch_size samples (functional name: ``batch``).

    Args:
        datapipe: the pipe.
        batch_size: how many.
        drop_last: leaves out the last one if it is smaller. Default: False
        wrapper_class: of the lists. Default: DataChunk

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> list(SequenceWrapper(range(3)).batch(batch_size=2))
        [[0, 1], [2]]
    """

    def __init__(
        self,
        datapipe: Any,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        begin = index * self.batch_size
        end = min(begin + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(begin, end)])

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe[Any]):
    """The samples of several pipes one after another (functional name: ``concat``).

    Args:
        *datapipes: the pipes.

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> list(SequenceWrapper(range(2)).concat(SequenceWrapper(range(2))))
        [0, 1, 0, 1]
    """

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        offset = index
        for pipe in self.datapipes:
            if offset < len(pipe):
                return pipe[offset]
            offset -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe[Any]):
    """Tuples of one sample of each pipe (functional name: ``zip``).

    Args:
        *datapipes: the pipes.

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> list(SequenceWrapper(range(2)).zip(SequenceWrapper(range(5, 9))))
        [(0, 5), (1, 6)]
    """

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        found = []
        for pipe in self.datapipes:
            try:
                found.append(pipe[index])
            except IndexError as error:
                raise IndexError(
                    f"Index {index} is out of range for one of the input MapDataPipes {pipe}."
                ) from error
        return tuple(found)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


def _check_pipes(pipes: tuple[Any, ...]) -> None:
    if not pipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in pipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(isinstance(pipe, Sized) for pipe in pipes):
        raise TypeError("Expected all inputs to be `Sized`")


class ShufflerIterDataPipe(IterDataPipe[Any]):
    """The samples of a map in random order, as a stream (functional name: ``shuffle``).

    Args:
        datapipe: the pipe.
        indices: its keys. Default: 0, 1, 2 ...

    Example:
        >>> from rushlight.utils.data.datapipes.map import SequenceWrapper
        >>> sorted(SequenceWrapper(range(4)).shuffle().set_seed(0))
        [0, 1, 2, 3]
    """

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        self.datapipe, self.indices = datapipe, list(range(len(datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None
        self._rng, self._shuffled_indices = random.Random(), list(self.indices)

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The seed of the next reading."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            for i in self.indices:
                yield self.datapipe[i]
            return
        while self._shuffled_indices:
            yield self.datapipe[self._shuffled_indices.pop()]

    def reset(self) -> None:
        if not self._enabled:
            return
        if self._seed is None:
            self._seed = int(rl.empty((), dtype=rl.int64).random_().item())
        self._rng.seed(self._seed)
        self._seed = None
        self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getstate__(self) -> Any:
        state = {**self.__dict__, "_rng": self._rng.getstate()}
        return state if IterDataPipe.getstate_hook is None else IterDataPipe.getstate_hook(state)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self._rng = random.Random()
        self._rng.setstate(state["_rng"])


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
Batcher, Concater, Mapper, SequenceWrapper, Shuffler, Zipper = (
    BatcherMapDataPipe, ConcaterMapDataPipe, MapperMapDataPipe, SequenceWrapperMapDataPipe, ShufflerIterDataPipe,
    ZipperMapDataPipe,
)  # fmt: skip
