"""Samples in batches and groups, and out of them."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rushlight.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, _length, functional_datapipe
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe[Any]):
    """Lists of batch_size samples (functional name: ``batch``).

    Args:
        datapipe: the pipe.
        batch_size: how many.
        drop_last: leaves out the last one if it is smaller. Default: False
        wrapper_class: of the lists. Default: DataChunk

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(3)).batch(2))
        [[0, 1], [2]]
    """

    def __init__(
        self, datapipe: Iterable[Any], batch_size: int, drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = DataChunk,
    ) -> None:  # fmt: skip
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch = []
        for data in self.datapipe:
            batch.append(data)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        whole, rest = divmod(_length(self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """The elements of batches (functional name: ``unbatch``).

    Args:
        datapipe: the pipe.
        unbatch_level: how deep; -1 goes to the elements that are no lists. Default: 1

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([[0, 1], [2]]).unbatch())
        [0, 1, 2]
    """

    def __init__(self, datapipe: Iterable[Any], unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def _elements(self, data: Any, level: int) -> Iterator[Any]:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or (level < 0 and not isinstance(data, list)):
            yield data
            return
        if not isinstance(data, list):
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        for element in data:
            yield from self._elements(element, level - 1 if level > 0 else level)

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield from self._elements(data, self.unbatch_level)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[Any]):
    """Lists of samples with the same key (functional name: ``groupby``).

    Args:
        datapipe: the pipe.
        group_key_fn: from a sample to its key.
        keep_key: gives (key, list). Default: False
        buffer_size: how many samples are held; when there are more, the largest group goes. Default: 10000
        group_size: a group of that size goes at once. Default: None
        guaranteed_group_size: the least that a full buffer gives. Default: None, the group_size
        drop_remaining: smaller groups are left out. Default: False

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(["a.png", "b.png", "a.json"]).groupby(lambda name: name[0]))
        [['a.png', 'a.json'], ['b.png']]
    """

    def __init__(
        self, datapipe: Iterable[Any], group_key_fn: Callable[[Any], Any], *, keep_key: bool = False,
        buffer_size: int = 10000, group_size: int | None = None, guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:  # fmt: skip
        _check_unpickable_fn(group_key_fn)
        if group_size is not None and buffer_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and (
            group_size is None or not 0 < guaranteed_group_size <= group_size
        ):
            raise AssertionError(
                "guaranteed_group_size must be > 0 and <= group_size and group_size must be set"
            )
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size, self.drop_remaining = buffer_size, group_size, drop_remaining
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size
        self.wrapper_class = DataChunk

    def _given(self, key: Any, group: list[Any]) -> Any:
        chunk: Any = self.wrapper_class(group)
        return (key, chunk) if self.keep_key else chunk

    def _largest(self, groups: dict[Any, list[Any]]) -> tuple[Any, list[Any]] | None:
        """The largest group of a full buffer, taken out; None if it is dropped."""
        key = max(groups, key=lambda k: len(groups[k]))
        group = groups.pop(key)
        least = self.guaranteed_group_size
        if least is not None and len(group) < least:
            if not self.drop_remaining:
                raise RuntimeError("Failed to group items", str(group))
            return None
        return key, group

    def __iter__(self) -> Iterator[Any]:
        groups: dict[Any, list[Any]] = defaultdict(list)
        held = 0
        for data in self.datapipe:
            key = self.group_key_fn(data)
            groups[key].append(data)
            held += 1
            if self.group_size is not None and self.group_size == len(groups[key]):
                held -= self.group_size
                yield self._given(key, groups.pop(key))
            if held == self.max_buffer_size:
                before = sum(map(len, groups.values()))
                found = self._largest(groups)
                held -= before - sum(map(len, groups.values()))
                if found is not None:
                    yield self._given(*found)
        for key in list(groups):
            yield self._given(key, groups.pop(key))


def __getattr__(name: str) -> Any:
    if name in ("SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"):
        from rushlight.utils.data.datapipes.iter import sharding

        warnings.warn(
            f"`{name}` from `torch.utils.data.datapipes.iter.grouping` is going to be removed in PyTorch 2.1. Please use "
            f"`{name}` from the `torch.utils.data.datapipes.iter.sharding`",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(sharding, name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
