"""Schedulers made of schedulers: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from rushlight.optim.lr_scheduler._base import LRScheduler, set_value, values_of
from rushlight.optim.lr_scheduler._plateau import ReduceLROnPlateau
from rushlight.optim.optimizer import Optimizer


class _Compound(LRScheduler):
    """Holds schedulers of one optimizer; their states are saved within its own."""

    def _take(self, schedulers: list[LRScheduler], optimizer: Optimizer) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` (index {i}): its step() needs a metric"
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but {type(scheduler).__name__} at "
                    f"index {i} steps another {type(scheduler.optimizer).__name__}"
                )
        self._schedulers = schedulers
        self.optimizer = optimizer

    def state_dict(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            scheduler.load_state_dict(saved)


class SequentialLR(_Compound):
    """Runs one scheduler after the other; milestones[i] is the epoch at which schedulers[i + 1] takes over.

    Each scheduler counts its epochs from when it takes over.

    Args:
        optimizer (Optimizer): whose groups' "lr" is set.
        schedulers (list of LRScheduler): of this optimizer; ReduceLROnPlateau is not accepted.
        milestones (list of ints): increasing epochs, one fewer than schedulers.
        last_epoch (int): the epoch to resume after; -1 begins anew. Default: -1

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> warm_up = optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> decay = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler = optim.lr_scheduler.SequentialLR(optimizer, [warm_up, decay], milestones=[2])
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates.append(scheduler.get_last_lr()[0])
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.5, 0.75, 1.0, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Any, milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        self._take(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR expects one milestone between any two schedulers: {len(schedulers)} schedulers need "
                f"{len(schedulers) - 1} milestones, got {len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        # Every scheduler made its first step when it was created: take them back, and let only the first
        # begin.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Takes back the first step of a scheduler and of those inside it, which each made when it was created."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for inner in sched._schedulers:
                self.recursive_undo(inner)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Steps the scheduler whose turn it is, or starts the next one at its milestone."""
        self.last_epoch += 1
        which = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[which]
        if which > 0 and self._milestones[which - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Compound):
    """Steps several schedulers at once, each changing the rates that the one before it left.

    Args:
        schedulers (list of LRScheduler): of one optimizer; ReduceLROnPlateau is not accepted.
        optimizer (Optimizer): theirs; None takes it from the first. Default: None

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> warm_up = optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2)
        >>> decay = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
        >>> scheduler = optim.lr_scheduler.ChainedScheduler([warm_up, decay])
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.1, 0.09, 0.81, 0.729]
    """

    def __init__(self, schedulers: Any, optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        self._take(schedulers, optimizer or schedulers[0].optimizer)
        self._last_lr = values_of(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Steps all schedulers in their order."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = values_of(self.optimizer, "lr")
