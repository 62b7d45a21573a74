"""Cyclical rates (Smith), and the one-cycle policy (Smith and Topin), with momentum moving the other way."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from rushlight._C import Tensor
from rushlight.optim.lr_scheduler._base import (
    LRScheduler,
    check_optimizer,
    per_group,
    set_value,
)
from rushlight.optim.optimizer import Optimizer


class _MomentumCycler(LRScheduler):
    """Moves momentum (or beta1) against the rate."""

    def _start_momentum(
        self, base_momentum: float | list[float], max_momentum: float | list[float], last_epoch: int
    ) -> tuple[list[float], list[float]]:
        """Reads the limits of each group: (base, max) lists."""
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        bases = per_group("base_momentum", optimizer, base_momentum)
        tops = per_group("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for group, base, top in zip(optimizer.param_groups, bases, tops, strict=True):
                self._set_momentum(group, top)
                group["max_momentum"] = top
                group["base_momentum"] = base
        return bases, tops

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


def _triangular(x: float) -> float:
    return 1.0


def _triangular2(x: float) -> float:
    return float(1 / (2.0 ** (x - 1)))


def _exp_range(gamma: float, x: float) -> float:
    return float(gamma**x)


_SCALES = {"triangular": _triangular, "triangular2": _triangular2, "exp_range": _exp_range}


class CyclicLR(_MomentumCycler):
    """Moves the rates from base_lr to max_lr and back, over step_size_up + step_size_down steps; call step() each batch.

    Momentum (or the first of betas) moves the other way, unless cycle_momentum is False.

    Args:
        optimizer (Optimizer): whose groups' "lr" is set.
        base_lr (float or list): the least rate, or one for each group.
        max_lr (float or list): the largest rate.
        step_size_up (int): steps from base_lr to max_lr. Default: 2000
        step_size_down (int): steps back; None means as many. Default: None
        mode (str): how high a cycle reaches: "triangular", always max_lr; "triangular2", half as high each
            cycle; "exp_range", gamma^step as high. Default: "triangular"
        gamma (float): the factor of "exp_range". Default: 1.0
        scale_fn (callable): says how high instead of mode, as a share of max_lr - base_lr. Default: None
        scale_mode (str): whether scale_fn gets the number of the "cycle" or the "iterations". Default: "cycle"
        cycle_momentum (bool): whether momentum moves, too. Default: True
        base_momentum (float or list): the momentum at max_lr. Default: 0.8
        max_momentum (float or list): the momentum at base_lr. Default: 0.9
        last_epoch (int): the epoch to resume after; -1 begins anew. Default: -1

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, step_size_up=2, cycle_momentum=False)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.1, 0.3, 0.5, 0.3, 0.1, 0.3]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs, strict=True):
                set_value(group, "lr", lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self._init_scale_fn()
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momentum(
                base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """How high cycle (or step) x reaches, as a share of max_lr - base_lr."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return _triangular2(x) if self.mode == "triangular2" else _exp_range(self.gamma, x)

    def _rates(self) -> list[float | Tensor]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        phase = 1.0 + self.last_epoch / self.total_size - cycle
        up = self.step_ratio
        height = phase / up if phase <= up else (phase - 1) / (up - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            limits = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, base, top in limits:
                self._set_momentum(group, top - (top - base) * height)
        return [base + (top - base) * height for base, top in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """The scheduler's attributes as a dict to save; of a scale_fn, the attributes of an object."""
        state = super().state_dict()
        state.pop("_scale_fn_ref")
        fn = state["_scale_fn_custom"]
        # A plain function cannot be saved; of a callable object, its attributes are.
        keep = fn is not None and not isinstance(fn, types.FunctionType)
        state["_scale_fn_custom"] = fn.__dict__.copy() if keep else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the attributes that state_dict() returned.

        Args:
            state_dict (dict): the saved attributes.
        """
        attributes = state_dict.get("_scale_fn_custom")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        self._init_scale_fn()

    def _init_scale_fn(self) -> None:
        """The function of the mode, under the name that packages know it by; None beside one of the user's."""
        self._scale_fn_ref = None if self._scale_fn_custom is not None else _SCALES[self.mode]

    _triangular_scale_fn = staticmethod(_triangular)
    _triangular2_scale_fn = staticmethod(_triangular2)
    _exp_range_scale_fn = staticmethod(_exp_range)


class OneCycleLR(_MomentumCycler):
    """Moves the rates once from max_lr / div_factor up to max_lr, then far down; call step() after each batch.

    The last rate is the first one / final_div_factor. The number of steps is total_steps or epochs *
    steps_per_epoch. Momentum (or the first of betas) moves the other way, unless cycle_momentum is False.

    Args:
        optimizer (Optimizer): whose groups' "lr" is set.
        max_lr (float or list): the largest rate, or one for each group.
        total_steps (int): how many steps the cycle takes. Default: None
        epochs (int): used where total_steps is None. Default: None
        steps_per_epoch (int): likewise. Default: None
        pct_start (float): the share of the steps that go up. Default: 0.3
        anneal_strategy (str): "cos" for half cosines, "linear" for lines. Default: "cos"
        cycle_momentum (bool): whether momentum moves, too. Default: True
        base_momentum (float or list): the momentum at max_lr. Default: 0.85
        max_momentum (float or list): the momentum at both ends. Default: 0.95
        div_factor (float): max_lr over the first rate. Default: 25.0
        final_div_factor (float): the first rate over the last one. Default: 1e4
        three_phase (bool): goes down as steeply as up first, and then to the last rate. Default: False
        last_epoch (int): the epoch to resume after; -1 begins anew. Default: -1

    Raises:
        ValueError: step() is called more often than total_steps.

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=6, cycle_momentum=False)
        >>> rates = []
        >>> for epoch in range(6):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [0.04, 0.9944, 0.8117, 0.4626, 0.1335, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, max_lrs, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _annealing_cos(start: float, end: float, pct: float) -> float:
        """From start to end along half a cosine."""
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start: float, end: float, pct: float) -> float:
        """From start to end along a line."""
        return (end - start) * pct + start

    if TYPE_CHECKING:
        anneal_func: Callable[[float, float, float], float]  # of a state saved before there was a type

    def _anneal_func(self, start: float, end: float, pct: float) -> float:
        if hasattr(self, "_anneal_func_type"):
            kind = self._anneal_func_type
            return (self._annealing_linear if kind == "linear" else self._annealing_cos)(start, end, pct)
        return self.anneal_func(start, end, pct)

    def _rates(self) -> list[float | Tensor]:
        at = self.last_epoch
        if at > self.total_steps:
            raise ValueError(
                f"Tried to step {at} times. The specified number of total steps is {self.total_steps}"
            )
        begin = 0.0
        for phase in self._schedule_phases:
            if at <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        share = (at - begin) / (phase["end_step"] - begin)
        rates: list[float | Tensor] = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal_func(*ends, share))
        return rates


def _count_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        given = {"total_steps": total_steps}
    elif epochs is not None and steps_per_epoch is not None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    else:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(total_steps: int, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
    """The last step of each phase, and the names of the options it goes between."""
    up = pct_start * total_steps
    rows = [(float(up) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
    if three_phase:
        rows.append((float(2 * up) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
        rows.append((total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
    else:
        rows.append((total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    return [dict(zip(names, row, strict=True)) for row in rows]
