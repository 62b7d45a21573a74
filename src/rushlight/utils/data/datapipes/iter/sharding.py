"""Each of several readers takes its part of the samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, _length, functional_datapipe


class SHARDING_PRIORITIES(IntEnum):
    """Who divides the samples: processes of a group first, then the workers of each."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe[Any]):
    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any) -> None:
        raise NotImplementedError


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe):
    """Each of several readers takes every n-th sample (functional name: ``sharding_filter``).

    Args:
        source_datapipe: the pipe.
        sharding_group_filter: the group that it divides among; None is all. Default: None

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> from rushlight.utils.data.graph_settings import apply_sharding
        >>> list(apply_sharding(IterableWrapper(range(5)).sharding_filter(), 2, 1))
        [1, 3]
    """

    def __init__(self, source_datapipe: Iterable[Any], sharding_group_filter: Any = None) -> None:
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances, self.instance_id = 1, 0

    def is_shardable(self) -> bool:
        return True

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: Any = SHARDING_PRIORITIES.DEFAULT
    ) -> None:
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})"
            )
        default = SHARDING_PRIORITIES.DEFAULT
        if (sharding_group == default and any(g != default for g in self.groups)) or (
            sharding_group != default and default in self.groups
        ):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter is None or group == self.sharding_group_filter:
                count, number = self.groups[group]
                self.instance_id += self.num_of_instances * number
                self.num_of_instances *= count

    def __iter__(self) -> Iterator[Any]:
        for i, data in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield data

    def __len__(self) -> int:
        whole, rest = divmod(_length(self.source_datapipe), self.num_of_instances)
        return whole + (self.instance_id < rest)
