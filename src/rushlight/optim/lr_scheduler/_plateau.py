"""Rates that fall when a measured quantity stops improving."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal

from rushlight.optim.lr_scheduler._base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    check_optimizer,
    set_value,
    values_of,
)
from rushlight.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rates by factor when a measured quantity has not improved for more than patience epochs.

    step(metric) is called once an epoch. A metric improves if it is below best * (1 - threshold), or best -
    threshold with threshold_mode "abs"; in mode "max", above best * (1 + threshold) or best + threshold.

    Args:
        optimizer (Optimizer): whose groups' "lr" is set.
        mode (str): "min" for a quantity that should fall, "max" for one that should rise. Default: "min"
        factor (float): the factor, below 1. Default: 0.1
        patience (int): epochs without improvement that are let pass. Default: 10
        threshold (float): what counts as an improvement. Default: 1e-4
        threshold_mode (str): "rel" or "abs", see above. Default: "rel"
        cooldown (int): epochs after a reduction that do not count. Default: 0
        min_lr (float or list): the least rate, or one for each group. Default: 0
        eps (float): a reduction by less is left out. Default: 1e-8

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0, 1.0):
        ...     scheduler.step(loss)
        ...     print(scheduler.get_last_lr())
        [1.0]
        [1.0]
        [1.0]
        [0.1]
        [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        self.factor = factor
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = values_of(optimizer, "lr")
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes the metric of an epoch, and reduces the rates if it is time.

        Args:
            metrics (float or Tensor): the measured quantity.
            epoch (int): the number of the epoch. Deprecated: it warns. Default: None
        """
        reached = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        better = self._is_better(reached, self.best)
        if better:
            self.best = reached
        if better or self.in_cooldown:  # epochs after a reduction do not count against it
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
        elif self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = values_of(self.optimizer, "lr")

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` is now {len(groups)}, but min_lr was given for "
                    f"{len(self.min_lrs)}: set scheduler.min_lrs to a list of {len(groups)} values"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, floor in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, floor)
            if old - new > self.eps:
                set_value(group, "lr", new)

    @property
    def in_cooldown(self) -> Any:
        """Whether the last reduction was less than cooldown epochs ago."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        relative = self.threshold_mode == "rel"
        if self.mode == "min":
            return a < (best * (1.0 - self.threshold) if relative else best - self.threshold)
        return a > (best * (1.0 + self.threshold) if relative else best + self.threshold)

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the attributes that state_dict() returned.

        Args:
            state_dict (dict): the saved attributes.
        """
        self.__dict__.update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
