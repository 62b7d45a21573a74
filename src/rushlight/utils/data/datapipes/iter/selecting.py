"""Some of the samples, and in another order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Self

import rushlight as rl
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, _length, _T_co, functional_datapipe
from rushlight.utils.data.datapipes.utils.common import (
    StreamWrapper,
    _check_unpickable_fn,
    validate_input_col,
)
from rushlight.utils.data.sampler import SequentialSampler


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[_T_co]):
    """The samples for which a function is true (functional name: ``filter``).

    Args:
        datapipe: the pipe.
        filter_fn: gives a bool for a sample, or for some of its columns.
        input_col: these columns. Default: None, the sample

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).filter(lambda n: n % 2 == 0))
        [0, 2, 4]
    """

    def __init__(
        self, datapipe: Iterable[_T_co], filter_fn: Callable[..., object], input_col: Any = None
    ) -> None:
        _check_unpickable_fn(filter_fn)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col
        if input_col is not None:
            validate_input_col(filter_fn, input_col)

    def _keeps(self, data: Any) -> bool:
        if self.input_col is None:
            found = self.filter_fn(data)
        elif isinstance(self.input_col, list | tuple):
            found = self.filter_fn(*(data[c] for c in self.input_col))
        else:
            found = self.filter_fn(data[self.input_col])
        if not isinstance(found, bool | rl.Tensor) and type(found).__name__ not in ("bool_", "bool"):
            raise ValueError(
                f"Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(found)}"
            )
        return bool(found)

    def __iter__(self) -> Iterator[_T_co]:
        for data in self.datapipe:
            if self._keeps(data):
                yield data
            else:
                StreamWrapper.close_streams(data)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe[Any]):
    """The samples in random order, drawn from a buffer (functional name: ``shuffle``).

    Args:
        datapipe: the pipe.
        buffer_size: how many samples are held. Default: 10000
        unbatch_level: takes batches apart first. Default: 0

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> sorted(IterableWrapper(range(4)).shuffle().set_seed(0))
        [0, 1, 2, 3]
    """

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size, self._enabled = buffer_size, True
        self._seed: int | None = None
        self._buffer: list[Any] = []
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Self:
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """The seed of the next reading."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        for data in self.datapipe:
            if len(self._buffer) < self.buffer_size:
                self._buffer.append(data)
                continue
            at = self._rng.randint(0, len(self._buffer) - 1)
            chosen, self._buffer[at] = self._buffer[at], data
            yield chosen
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def reset(self) -> None:
        self._buffer = []
        if not self._enabled:
            return
        if self._seed is None:
            self._seed = int(rl.empty((), dtype=rl.int64).random_().item())
        self._rng.seed(self._seed)
        self._seed = None

    def __len__(self) -> int:
        return _length(self.datapipe)

    def __getstate__(self) -> Any:
        state = {**self.__dict__, "_rng": self._rng.getstate()}
        return state if IterDataPipe.getstate_hook is None else IterDataPipe.getstate_hook(state)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self._rng = random.Random()
        self._rng.setstate(state["_rng"])


class SamplerIterDataPipe(IterDataPipe[Any]):
    """The samples that a Sampler draws of a pipe that knows its length.

    Args:
        datapipe: the pipe.
        sampler: the class of samplers. Default: SequentialSampler
        sampler_args: its arguments after the pipe. Default: None
        sampler_kwargs: those by name. Default: None

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper, Sampler
        >>> list(Sampler(IterableWrapper([5, 6])))
        [0, 1]
    """

    def __init__(
        self,
        datapipe: Any,
        sampler: Any = SequentialSampler,
        sampler_args: Any = None,
        sampler_kwargs: Any = None,
    ) -> None:
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe, self.sampler_args, self.sampler_kwargs = (
            datapipe,
            sampler_args or (),
            sampler_kwargs or {},
        )
        self.sampler = sampler(*self.sampler_args, data_source=datapipe, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        if isinstance(self.sampler, Sized):
            return len(self.sampler)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
