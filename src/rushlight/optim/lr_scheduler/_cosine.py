"""Rates that follow half a cosine, once or with restarts (SGDR, Loshchilov and Hutter)."""

from __future__ import annotations

import math
from typing import Any

from rushlight._C import Tensor
from rushlight.optim.lr_scheduler._base import (
    LRScheduler,
    _enable_get_lr_call,
    set_value,
    values_of,
)
from rushlight.optim.optimizer import Optimizer


def _on_curve(low: float, high: Any, share: float) -> Any:
    """From high (share 0) to low (share 1) along half a cosine."""
    return low + (high - low) * (1 + math.cos(math.pi * share)) / 2


class CosineAnnealingLR(LRScheduler):
    """Moves the rates along half a cosine: lr = eta_min + (initial lr - eta_min) (1 + cos(pi epoch / T_max)) / 2.

    From T_max epochs on they rise again along the same curve, reaching the initial rate at 2 T_max.

    Args:
        optimizer (Optimizer): whose groups' "lr" is set.
        T_max (int): epochs down to eta_min.
        eta_min (float): the least rate. Default: 0.0
        last_epoch (int): the epoch to resume after; -1 begins anew. Default: -1

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.8536, 0.5, 0.1464, 0.0, 0.1464]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float | Tensor]:
        if self._is_initial:
            return self._unchanged()
        groups = self.optimizer.param_groups
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # At the bottom the ratio below would be 0 / 0: the first rise is added.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                group["lr"] + (base - self.eta_min) * rise
                for base, group in zip(self.base_lrs, groups, strict=True)
            ]
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return [now / before * (group["lr"] - self.eta_min) + self.eta_min for group in groups]

    def _get_closed_form_lr(self) -> list[float | Tensor]:
        return [_on_curve(self.eta_min, base, self.last_epoch / self.T_max) for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Anneals the rates along half a cosine from the initial rate to eta_min, again and again.

    The first run takes T_0 epochs, each further one T_mult times as many as the one before it.

    Args:
        optimizer (Optimizer): whose groups' "lr" is set.
        T_0 (int): epochs of the first run.
        T_mult (int): the factor of the lengths. Default: 1
        eta_min (float): the least rate. Default: 0.0
        last_epoch (int): the epoch to resume after; -1 begins anew. Default: -1

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
        >>> rates = []
        >>> for epoch in range(7):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 1.0, 0.8536, 0.5, 0.1464, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        for value, wanted in ((T_0, "positive integer T_0"), (T_mult, "integer T_mult >= 1")):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"Expected {wanted}, but got {value!r}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got a {type(eta_min).__name__}: {eta_min}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i = T_0  # the length of the present run
        self.T_cur: float = last_epoch  # epochs since it began
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float | Tensor]:
        return [_on_curve(self.eta_min, base, self.T_cur / self.T_i) for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Goes to the next epoch, or to the one given.

        Args:
            epoch (float): may lie within an epoch, as epoch + batch / batches does. Default: None
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._locate(epoch)
        self.last_epoch = math.floor(epoch)
        with _enable_get_lr_call(self):
            for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
                set_value(group, "lr", lr)
        self._last_lr = values_of(self.optimizer, "lr")

    def _locate(self, epoch: float) -> None:
        """T_i and T_cur: the length of the run that an epoch falls in, and the epochs since that run began."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            # n runs of T_0 * T_mult^i epochs are over.
            more = self.T_mult - 1
            n = int(math.log(1 + epoch * more / self.T_0, self.T_mult))
            self.T_i = self.T_mult**n * self.T_0
            self.T_cur = epoch - (self.T_i - self.T_0) / more
