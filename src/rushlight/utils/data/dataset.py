"""Datasets: what a DataLoader draws samples from, and ways to combine and split them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import rushlight as rl
from rushlight._C import Generator, Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """A collection of samples by key: subclasses define __getitem__, and __len__ where samplers need it.

    A subclass may define __getitems__(indices) too, which loads the samples of a batch at once. `a + b` is a
    ConcatDataset of both.

    Example:
        >>> class Squares(torch.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 5
        ...     def __getitem__(self, index):
        ...         return index, index**2
        >>> for batch in torch.utils.data.DataLoader(Squares(), batch_size=3):
        ...     print(batch)
        [tensor([0, 1, 2]), tensor([0, 1, 4])]
        [tensor([3, 4]), tensor([ 9, 16])]
    """

    def __getitem__(self, index: Any) -> _T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[_T_co]) -> ConcatDataset[_T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co]):
    """A stream of samples: subclasses define __iter__.

    It has no indices, so a DataLoader can neither shuffle nor sample it. With several workers each iterates its
    own copy: ask get_worker_info() which share is one's own. `a + b` is a ChainDataset of both.

    Example:
        >>> class Count(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(5))
        >>> [batch.tolist() for batch in torch.utils.data.DataLoader(Count(), batch_size=2)]
        [[0, 1], [2, 3], [4]]
    """

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[_T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[rl.Tensor, ...]]):
    """A dataset of tensors: sample i is the tuple of each tensor's row i.

    Args:
        *tensors (Tensor): all of one length.

    Example:
        >>> data = torch.utils.data.TensorDataset(torch.arange(6).reshape(3, 2), torch.tensor([0, 1, 0]))
        >>> len(data), data[1]
        (3, (tensor([2, 3]), tensor(1)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(len(t) != len(tensors[0]) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> Any:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset[Any]):
    """Datasets side by side: sample i is the tuple (or, from keyword arguments, the dict) of each dataset's sample i.

    Args:
        *args (Dataset): datasets of one length.
        **kwargs (Dataset): the same, by name; either form, not both.

    Example:
        >>> images, labels = ["a", "b"], [0, 1]
        >>> torch.utils.data.StackDataset(images, labels)[1]
        ('b', 1)
        >>> torch.utils.data.StackDataset(image=images, label=labels)[1]
        {'image': 'b', 'label': 1}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, "
                "but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        parts = self._parts()
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueError("Size mismatch between datasets")

    def _parts(self) -> list[Any]:
        return list(self.datasets.values()) if isinstance(self.datasets, dict) else list(self.datasets)

    def _pack(self, values: Sequence[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, values, strict=True))
        return tuple(values)

    def __getitem__(self, index: Any) -> Any:
        return self._pack([part[index] for part in self._parts()])

    def __getitems__(self, indices: list[Any]) -> Any:
        columns = []
        for part in self._parts():
            batched = getattr(part, "__getitems__", None)
            column = batched(indices) if callable(batched) else [part[i] for i in indices]
            if len(column) != len(indices):
                raise ValueError(
                    f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(column)}"
                )
            columns.append(column)
        return [self._pack(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[_T_co]):
    """Datasets one after another, as one dataset.

    Args:
        datasets (iterable of Dataset): with lengths; an IterableDataset is refused (see ChainDataset).

    Example:
        >>> data = torch.utils.data.ConcatDataset([["a", "b"], ["c"]])
        >>> len(data), data[2], data[-3]
        (3, 'c', 'a')
    """

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The index after the last one of each dataset.

        Args:
            sequence (iterable): of datasets.
        """
        return list(accumulate(len(part) for part in sequence))

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        part = bisect_right(self.cumulative_sizes, index)
        if part == len(self.datasets):
            raise IndexError(f"list index out of range: sample {index} of a ConcatDataset of {len(self)}")
        return self.datasets[part][index - (self.cumulative_sizes[part - 1] if part else 0)]

    @property
    def cummulative_sizes(self) -> list[int]:
        """The old spelling of `cumulative_sizes`."""
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one after another, as one stream.

    Args:
        datasets (iterable of IterableDataset): in their order.

    Example:
        >>> class Count(torch.utils.data.IterableDataset):
        ...     def __init__(self, end):
        ...         self.end = end
        ...     def __iter__(self):
        ...         return iter(range(self.end))
        >>> list(torch.utils.data.ChainDataset([Count(3), Count(2)]))
        [0, 1, 2, 0, 1]
    """

    def __init__(self, datasets: Any) -> None:
        self.datasets = datasets

    def _checked(self) -> Any:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield part

    def __iter__(self) -> Any:
        for part in self._checked():
            yield from part

    def __len__(self) -> int:
        return sum(len(part) for part in self._checked())


class Subset(Dataset[_T_co]):
    """Some samples of a dataset: sample i is dataset[indices[i]].

    Args:
        dataset (Dataset): the whole.
        indices (sequence of ints): which samples, in which order.

    Example:
        >>> part = torch.utils.data.Subset(["a", "b", "c", "d"], [3, 0])
        >>> len(part), part[0]
        (2, 'd')
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> Any:
        chosen = [self.indices[i] for i in indices]
        batched = getattr(self.dataset, "__getitems__", None)
        return batched(chosen) if callable(batched) else [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def _fractions_to_lengths(fractions: list[float], total: int) -> list[int]:
    """Integers that sum to `total`: each rounded down, the remainder dealt out one by one."""
    for i, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    lengths = [int(total * fraction) for fraction in fractions]
    for i in range(total - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            import warnings

            warnings.warn(
                f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3
            )
    return lengths


def random_split(
    dataset: Dataset[_T], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[_T]]:
    """Splits a dataset at random into parts of given sizes.

    Args:
        dataset (Dataset): with a length.
        lengths (sequence): the sizes, which sum to len(dataset); or fractions, which sum to 1: each part gets
            the fraction rounded down, and what is left over goes one by one to the first parts.
        generator (Generator): for the permutation; None takes the default one. Default: None

    Returns:
        A list of Subset.

    Example:
        >>> train, test = torch.utils.data.random_split(range(10), [0.8, 0.2])
        >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
        (8, 2, True)
    """
    lengths = list(lengths)
    if 1 - 1e-9 <= sum(lengths) <= 1:
        lengths = _fractions_to_lengths(lengths, len(dataset))  # type: ignore[arg-type]
    if sum(lengths) != len(dataset):  # type: ignore[arg-type]
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = rl.randperm(sum(lengths), generator=generator).tolist()  # type: ignore[arg-type]
    return [
        Subset(dataset, order[end - length : end])
        for end, length in zip(accumulate(lengths), lengths, strict=True)
    ]
