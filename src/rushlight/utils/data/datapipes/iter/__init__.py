"""Pipes of streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, IO, Self


import copy
import fnmatch
import os
import random

import rushlight as rl
from rushlight.utils.data._utils.collate import default_collate
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, _length, _T_co, functional_datapipe


class IterableWrapperIterDataPipe(IterDataPipe[_T_co]):
    """The elements of an iterable, a copy of which is made for each reading unless `deepcopy` is False."""

    def __init__(self, iterable: Iterable[_T_co], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[_T_co]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:  # a generator and its like
                source = self.iterable
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]  # TypeError where it has no length


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[Any]):
    """fn of each sample; of some columns of it if `input_col` names them, put back in place or at `output_col`."""

    def __init__(
        self, datapipe: Iterable[Any], fn: Callable[..., Any], input_col: Any = None, output_col: Any = None
    ) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def _apply(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        several = isinstance(self.input_col, list | tuple)
        columns = list(self.input_col) if several else [self.input_col]
        result = self.fn(*(data[c] for c in columns))
        is_tuple = isinstance(data, tuple)
        data = list(data) if is_tuple else copy.copy(data)
        target = self.output_col
        if target is None:
            data[columns[0]] = result
            for c in sorted(columns[1:], reverse=True):
                del data[c]
        elif target == -1:
            data.append(result)
        else:
            data[target[0] if isinstance(target, list | tuple) else target] = result
        return tuple(data) if is_tuple else data

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply(data)

    def __len__(self) -> int:
        return _length(self.datapipe)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[_T_co]):
    """The samples for which filter_fn, of them or of a column, is true."""

    def __init__(
        self, datapipe: Iterable[_T_co], filter_fn: Callable[..., object], input_col: Any = None
    ) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[_T_co]:
        data: Any
        for data in self.datapipe:
            if self.filter_fn(data if self.input_col is None else data[self.input_col]):
                yield data


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe[Any]):
    """Lists of batch_size samples."""

    def __init__(
        self,
        datapipe: Iterable[Any],
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = list,
    ) -> None:
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
    """The elements of batches; of nested ones down to `unbatch_level`, -1 meaning all levels."""

    def __init__(self, datapipe: Iterable[Any], unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def _elements(self, data: Any, level: int) -> Iterator[Any]:
        if level == 0 or (level < 0 and not isinstance(data, list)):
            yield data
            return
        for element in data:
            yield from self._elements(element, level - 1 if level > 0 else level)

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield from self._elements(data, self.unbatch_level)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches as tensors."""

    def __init__(
        self,
        datapipe: Iterable[Any],
        conversion: Callable[[Any], Any] | None = None,
        collate_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(datapipe, collate_fn or conversion or default_collate)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe[Any]):
    """The samples in random order, drawn from a buffer of the next `buffer_size`."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size, self._enabled = buffer_size, True
        self._seed: int | None = None

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
        seed = self._seed
        if seed is None:
            seed = int(rl.empty((), dtype=rl.int64).random_().item())
        self._seed = None
        draw = random.Random(seed)
        buffer: list[Any] = []
        for data in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(data)
                continue
            at = draw.randint(0, len(buffer) - 1)
            chosen, buffer[at] = buffer[at], data
            yield chosen
        while buffer:
            yield buffer.pop(draw.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return _length(self.datapipe)


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe[Any]):
    """The samples of several pipes one after another."""

    def __init__(self, *datapipes: Iterable[Any]) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(map(_length, self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe[Any]):
    """Tuples of one sample of each pipe."""

    def __init__(self, *datapipes: Iterable[Any]) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(map(_length, self.datapipes))


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe[_T_co]):
    """Each of several readers takes every n-th sample."""

    def __init__(self, source_datapipe: Iterable[_T_co], sharding_group_filter: Any = None) -> None:
        self.source_datapipe, self.num_of_instances, self.instance_id = source_datapipe, 1, 0

    def is_shardable(self) -> bool:
        return True

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})"
            )
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator[_T_co]:
        for i, data in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield data

    def __len__(self) -> int:
        whole, rest = divmod(_length(self.source_datapipe), self.num_of_instances)
        return whole + (self.instance_id < rest)


class FileListerIterDataPipe(IterDataPipe[str]):
    """Names of the files in folders that fit the masks."""

    def __init__(
        self,
        root: str | Iterable[str] = ".",
        masks: str | Iterable[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        self.datapipe = [root] if isinstance(root, str) else root
        self.masks = [masks] if isinstance(masks, str) else list(masks)
        self.recursive, self.abspath = recursive, abspath

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            for folder, inner, files in os.walk(root):
                inner.sort()
                if not self.recursive:
                    inner.clear()
                for name in sorted(files):
                    if any(not mask or fnmatch.fnmatch(name, mask) for mask in self.masks):
                        path = os.path.join(folder, name)
                        yield os.path.abspath(path) if self.abspath else path


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe[tuple[str, IO[Any]]]):
    """(name, open file) of each name."""

    def __init__(
        self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1
    ) -> None:
        self.datapipe, self.mode, self.encoding = datapipe, mode, encoding

    def __iter__(self) -> Iterator[tuple[str, IO[Any]]]:
        for name in self.datapipe:
            yield name, open(name, self.mode, encoding=self.encoding)  # noqa: SIM115  (the reader closes it)


(Batcher, Collator, Concater, FileLister, FileOpener, Filter, IterableWrapper, Mapper, ShardingFilter, Shuffler,
 UnBatcher, Zipper) = (
    BatcherIterDataPipe, CollatorIterDataPipe, ConcaterIterDataPipe, FileListerIterDataPipe, FileOpenerIterDataPipe,
    FilterIterDataPipe, IterableWrapperIterDataPipe, MapperIterDataPipe, ShardingFilterIterDataPipe,
    ShufflerIterDataPipe, UnBatcherIterDataPipe, ZipperIterDataPipe,
)  # fmt: skip
