"""Samplers: in which order a DataLoader visits a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import rushlight as rl
from rushlight._C import Generator

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


def _check_positive(name: str, value: float) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


_T_co = TypeVar("_T_co", covariant=True)


class Sampler(Generic[_T_co]):
    """The order in which a DataLoader visits a dataset: an iterable of indices; __len__ is optional.

    Args:
        data_source (Dataset): not used; accepted for old subclasses. Default: None

    Example:
        >>> class Reversed(torch.utils.data.Sampler):
        ...     def __init__(self, data):
        ...         self.data = data
        ...     def __iter__(self):
        ...         return iter(range(len(self.data) - 1, -1, -1))
        ...     def __len__(self):
        ...         return len(self.data)
        >>> data = ["a", "b", "c"]
        >>> list(torch.utils.data.DataLoader(data, sampler=Reversed(data), batch_size=None))
        ['c', 'b', 'a']
    """

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """The indices 0, 1, 2, ... in order.

    Args:
        data_source (Dataset): whose length counts, anew in each pass.

    Example:
        >>> list(torch.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order: a fresh permutation in each pass or, with replacement, independent draws.

    Without a generator each pass seeds one of its own from a draw of the default generator, so the order
    follows manual_seed.

    Args:
        data_source (Dataset): whose length counts.
        replacement (bool): draws each index from all of them. Default: False
        num_samples (int): how many are drawn; None means the length of data_source. More than that without
            replacement takes several permutations. Default: None
        generator (Generator): to draw from. Default: None

    Example:
        >>> order = list(torch.utils.data.RandomSampler(range(5)))
        >>> sorted(order)
        [0, 1, 2, 3, 4]
        >>> len(list(torch.utils.data.RandomSampler(range(5), replacement=True, num_samples=8)))
        8
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _check_positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices a pass gives."""
        # the dataset may grow between passes
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Any:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = rl.Generator()
            generator.manual_seed(int(rl.empty((), dtype=rl.int64).random_().item()))
        if self.replacement:
            # in chunks: the number of samples may exceed what is worth holding at once
            for _ in range(self.num_samples // 32):
                yield from rl.randint(high=n, size=(32,), dtype=rl.int64, generator=generator).tolist()
            rest = self.num_samples % 32
            yield from rl.randint(high=n, size=(rest,), dtype=rl.int64, generator=generator).tolist()
        else:
            for _ in range(self.num_samples // n):
                yield from rl.randperm(n, generator=generator).tolist()
            yield from rl.randperm(n, generator=generator).tolist()[: self.num_samples % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices, each once, in a fresh random order in each pass.

    Args:
        indices (sequence of ints): to choose from.
        generator (Generator): to draw from; None takes the default one. Default: None

    Example:
        >>> sorted(torch.utils.data.SubsetRandomSampler([2, 4, 6]))
        [2, 4, 6]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Any:
        for i in rl.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Draws indices with probability weights[i] / sum(weights), for data sets with rare classes.

    Args:
        weights (sequence of floats): one for each index; they need not sum to 1.
        num_samples (int): how many are drawn in a pass.
        replacement (bool): False draws each index at most once. Default: True
        generator (Generator): to draw from; None takes the default one. Default: None

    Example:
        >>> drawn = list(torch.utils.data.WeightedRandomSampler([0.0, 1.0, 3.0], num_samples=1000))
        >>> drawn.count(0), 650 < drawn.count(2) < 850
        (0, True)
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        weights = rl.as_tensor(weights, dtype=rl.double)
        if weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(weights.shape)}"
            )
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Any:
        drawn = rl.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Groups the indices of another sampler into lists of batch_size.

    Args:
        sampler (Sampler or iterable): of indices.
        batch_size (int): the length of the lists.
        drop_last (bool): leaves out a last list that would be shorter.

    Example:
        >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        _check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Any:
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
