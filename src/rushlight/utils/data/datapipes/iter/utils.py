"""A pipe of any iterable."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, _T_co


class IterableWrapperIterDataPipe(IterDataPipe[_T_co]):
    """The elements of an iterable.

    Args:
        iterable: anything that can be iterated.
        deepcopy: each reading goes over a copy. Default: True

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(3)))
        [0, 1, 2]
    """

    def __init__(self, iterable: Iterable[_T_co], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[_T_co]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:  # a generator and its like
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification would affect source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        if not hasattr(self.iterable, "__len__"):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return len(self.iterable)  # type: ignore[arg-type]
