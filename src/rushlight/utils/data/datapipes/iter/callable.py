"""Functions of samples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rushlight.utils.data._utils.collate import default_collate
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, _length, functional_datapipe
from rushlight.utils.data.datapipes.utils.common import _check_unpickable_fn, validate_input_col


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[Any]):
    """fn of each sample, or of some of its columns (functional name: ``map``).

    Args:
        datapipe: the pipe.
        fn: the function.
        input_col: the columns that it gets: indices or keys, one or several. Default: None, the sample
        output_col: where its result goes; -1 appends it. Default: None, the first of the columns, the others go
    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([(1, 2), (3, 4)]).map(lambda a, b: a + b, input_col=[0, 1], output_col=-1))
        [(1, 2, 3), (3, 4, 7)]
    """

    def __init__(
        self, datapipe: Iterable[Any], fn: Callable[..., Any], input_col: Any = None, output_col: Any = None
    ) -> None:
        _check_unpickable_fn(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, list | tuple):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col
        if input_col is not None:
            validate_input_col(fn, input_col)

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
            data[target] = result
        return tuple(data) if is_tuple else data

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply(data)

    def __len__(self) -> int:
        return _length(self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches as tensors (functional name: ``collate``).

    Args:
        datapipe: the pipe.
        conversion: the function. Default: None
        collate_fn: the function by its older name. Default: default_collate

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper([[1, 2]]).collate())
        [tensor([1, 2])]
    """

    def __init__(
        self, datapipe: Iterable[Any], conversion: Callable[[Any], Any] | None = None,
        collate_fn: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(datapipe, collate_fn or conversion or default_collate)
