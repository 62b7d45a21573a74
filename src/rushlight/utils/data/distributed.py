"""DistributedSampler: each process of a group sees its own share of a dataset."""

from __future__ import annotations

from math import ceil
from typing import Any

import rushlight as rl

from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """A share of a dataset for each process: every num_replicas-th index from rank on, of one order all agree on.

    The order is shuffled by seed + epoch: call set_epoch before each epoch. Shares are made equal by repeating
    the first samples, or with drop_last by leaving the last ones out.

    Args:
        dataset (Dataset): whose length counts.
        num_replicas (int): the number of processes; None asks the process group. Default: None
        rank (int): which of them this is; None asks the process group. Default: None
        shuffle (bool): False keeps the order of the dataset. Default: True
        seed (int): of the shuffle, the same in all processes. Default: 0
        drop_last (bool): see above. Default: False

    Example:
        >>> for rank in range(2):
        ...     sampler = torch.utils.data.DistributedSampler(range(5), num_replicas=2, rank=rank, shuffle=False)
        ...     print(list(sampler))
        [0, 2, 4]
        [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from rushlight import distributed as dist

            if not (dist.is_available() or dist.is_initialized()):
                raise RuntimeError("Requires distributed package to be available")
            num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
            rank = dist.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.shuffle, self.seed, self.epoch = dataset, shuffle, seed, 0
        self.rank, self.num_replicas, self.drop_last = rank, num_replicas, drop_last
        whole, rest = divmod(len(dataset), num_replicas)
        self.num_samples = whole + (rest > 0 and not drop_last)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Any:
        n = len(self.dataset)
        if self.shuffle:
            generator = rl.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = rl.randperm(n, generator=generator).tolist()
        else:
            order = list(range(n))
        missing = self.total_size - n
        if self.drop_last or missing <= 0:
            order = order[: self.total_size]
        elif n:
            order += (order * ceil(missing / n))[:missing]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses the shuffle of an epoch; without it every epoch has the same order.

        Args:
            epoch (int): its number.
        """
        self.epoch = epoch
