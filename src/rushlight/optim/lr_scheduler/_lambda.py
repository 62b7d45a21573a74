"""Rates given by functions of the epoch."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from rushlight._C import Tensor
from rushlight.optim.lr_scheduler._base import LRScheduler
from rushlight.optim.optimizer import Optimizer


class _FunctionScheduler(LRScheduler):
    """Holds one function for each group; plain functions are not saved, callable objects are (by their
    __dict__).
    """

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [
            None if isinstance(fn, types.FunctionType) else fn.__dict__.copy() for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        saved = state_dict["lr_lambdas"]
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for fn, attributes in zip(self.lr_lambdas, saved, strict=False):
            if attributes is not None:
                fn.__dict__.update(attributes)


class LambdaLR(_FunctionScheduler):
    """Sets each rate to a function of the epoch: lr = initial lr * lr_lambda(epoch).

    state_dict() holds functions only if they are objects with attributes of their own; plain functions and
    lambdas are left out.

    Args:
        optimizer (Optimizer): whose groups' "lr" is set.
        lr_lambda (callable or list): the function, or one for each group.
        last_epoch (int): the epoch to resume after; -1 begins anew. Default: -1

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.3333, 0.25]
    """

    def _rates(self) -> list[float | Tensor]:
        return [base * fn(self.last_epoch) for base, fn in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_FunctionScheduler):
    """Multiplies the present rates by a function of the epoch: lr = lr * lr_lambda(epoch).

    Args:
        optimizer (Optimizer): whose groups' "lr" is set.
        lr_lambda (callable or list): the function, or one for each group.
        last_epoch (int): the epoch to resume after; -1 begins anew. Default: -1

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.9)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.9, 0.81, 0.729]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        for fn in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(fn):
                raise TypeError(f"lr_lambda should be a function, but got {type(fn).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def _rates(self) -> list[float | Tensor]:
        if self._is_initial:
            return self._unchanged()
        groups = self.optimizer.param_groups
        return [group["lr"] * fn(self.last_epoch) for group, fn in zip(groups, self.lr_lambdas, strict=True)]
