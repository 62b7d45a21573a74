"""The base of the schedulers: counting steps and writing rates into the groups."""

from __future__ import annotations

import contextlib
import functools
import warnings
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.optim.optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` is deprecated: call `scheduler.step()` once an epoch. With it, the rates "
    "are computed from the initial ones and changes by other schedulers are lost."
)


def check_optimizer(optimizer: object) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """The option `key` of each group; tensors are copied, so that nobody changes them by accident."""
    return [g[key].clone() if isinstance(g[key], rl.Tensor) else g[key] for g in optimizer.param_groups]


def set_value(group: dict[str, Any], key: str, value: float | Tensor) -> None:
    """Sets an option of a group; a rate that is a tensor stays the same tensor."""
    if isinstance(group[key], rl.Tensor):
        group[key].fill_(value.item() if isinstance(value, rl.Tensor) else value)
    else:
        group[key] = value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group, copied from one number or given as a list."""
    groups = optimizer.param_groups
    if isinstance(value, (list, tuple)):
        if len(value) != len(groups):
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. "
                f"{name} has {len(value)} values, param_groups has {len(groups)}."
            )
        values = list(value)
    else:
        values = [value] * len(groups)
    return [v.clone() if isinstance(v, rl.Tensor) else v for v in values]


class LRScheduler:
    """The base of the schedulers: each step() sets the "lr" of the optimizer's groups for the next epoch.

    A subclass defines get_lr(), which returns the rates of the epoch self.last_epoch, from self.base_lrs (the
    initial rates, kept as "initial_lr" in the groups) or from the present ones. Call scheduler.step() after
    optimizer.step().

    Args:
        optimizer (Optimizer): whose groups' "lr" is set.
        last_epoch (int): the epoch to resume after; -1 begins anew. Default: -1

    Example:
        >>> class Halving(optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [base * 0.5**self.last_epoch for base in self.base_lrs]
        >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = Halving(optimizer)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    _get_lr_called_within_step = False
    _is_initial = False
    if TYPE_CHECKING:
        _last_lr: list[float | Tensor]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, rl.Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    f"last_epoch >= 0: load the optimizer's state_dict before making a scheduler with "
                    f"last_epoch={last_epoch}, or leave last_epoch at -1 for a new run"
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps_of(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with _initial_mode(self):
            self.step()

    def state_dict(self) -> dict[str, Any]:
        """The scheduler's attributes as a dict to save: everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the attributes that state_dict() returned.

        Args:
            state_dict (dict): the saved attributes.
        """
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[float | Tensor]:
        """The rates that the last step set."""
        return self._last_lr

    def get_lr(self) -> list[float | Tensor]:
        """The rates of the epoch that step() has just begun; get_last_lr() is what to ask from outside."""
        _warn_get_lr_called_within_step(self)
        return self._rates()

    def _rates(self) -> list[float | Tensor]:
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Sets the rates of the next epoch; call it after optimizer.step().

        Args:
            epoch (int): the epoch to go to. Deprecated: it warns. Default: None
        """
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            complaint = (
                "`optimizer.step()` has been overridden after the scheduler was made, so that the order of calls "
                "cannot be checked: call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            complaint = (
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: call `optimizer.step()` first, else "
                "the first value of the learning rate schedule is skipped. See more details at "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
            )
        else:
            return
        warnings.warn(complaint, UserWarning, stacklevel=3)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True  # as _enable_get_lr_call, which costs more than the rates
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", None)
                values = closed_form() if closed_form else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values_of(self.optimizer, "lr")

    def _scaled(self, factor: float) -> list[float | Tensor]:
        """The present rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _unchanged(self) -> list[float | Tensor]:
        rates: list[float | Tensor] = values_of(self.optimizer, "lr")
        return rates


class _LRScheduler(LRScheduler):
    """The name that LRScheduler had before PyTorch 2.0."""


def _note_steps_of(optimizer: Optimizer) -> None:
    """Makes this optimizer's step() leave a mark, so that a wrong order of calls can be told."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    func = optimizer.step.__func__  # type: ignore[attr-defined]  # a bound method
    owner = weakref.ref(optimizer)  # no cycle: the wrapper lives on the optimizer

    @functools.wraps(func)
    def step(*args: Any, **kwargs: Any) -> Any:
        optimizer = owner()
        assert optimizer is not None  # it is being called
        optimizer._opt_called = True
        return func(optimizer, *args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]  # a mark on the function
    optimizer.step = step  # type: ignore[method-assign]  # of this optimizer alone


def _warn_get_lr_called_within_step(scheduler: LRScheduler) -> None:
    if not scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            UserWarning,
            stacklevel=3,
        )


@contextlib.contextmanager
def _raised(scheduler: LRScheduler, flag: str) -> Iterator[None]:
    setattr(scheduler, flag, True)
    try:
        yield
    finally:
        setattr(scheduler, flag, False)


def _enable_get_lr_call(scheduler: LRScheduler) -> AbstractContextManager[None]:
    """Within the block, get_lr() is called by step()."""
    return _raised(scheduler, "_get_lr_called_within_step")


def _initial_mode(scheduler: LRScheduler) -> AbstractContextManager[None]:
    """Within the block, the step is the one that a new scheduler makes."""
    return _raised(scheduler, "_is_initial")
