"""Averages of a model's weights over training: stochastic weight averaging and exponential moving
averages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Literal

import rushlight as rl
from rushlight import nn
from rushlight._C import Tensor, device
from rushlight.nn.modules.module import Module
from rushlight.optim.lr_scheduler._base import LRScheduler, per_group
from rushlight.optim.optimizer import Optimizer

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided: it must be in [0, 1]")


def get_ema_avg_fn(decay: float = 0.999) -> Any:
    """average, new, count -> decay * average + (1 - decay) * new."""
    _check_decay(decay)

    def average(ema_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        with rl.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return average


def get_swa_avg_fn() -> Any:
    """average, new, count -> the mean of all so far."""

    def average(averaged_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        with rl.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> Any:
    """The same as get_ema_avg_fn on lists, in place."""
    _check_decay(decay)

    def average(ema_params: list[Tensor], current_params: list[Tensor], num_averaged: Tensor | int) -> None:
        _move_towards(ema_params, current_params, 1 - decay)

    return average


def get_swa_multi_avg_fn() -> Any:
    """The same as get_swa_avg_fn on lists, in place."""

    def average(
        averaged_params: list[Tensor], current_params: list[Tensor], num_averaged: Tensor | int
    ) -> None:
        count = num_averaged.item() if isinstance(num_averaged, rl.Tensor) else num_averaged
        _move_towards(averaged_params, current_params, 1 / (count + 1))

    return average


def _move_towards(averages: list[Tensor], values: list[Tensor], weight: float) -> None:
    with rl.no_grad():
        for average, value in zip(averages, values, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(value.detach().to(average.device, average.dtype), weight)
            else:
                average.copy_(average + (value.to(average.device) - average) * weight)


class AveragedModel(nn.Module):
    """A copy of a model whose parameters are averages of the model's; call update_parameters(model) to add
    to them.

    avg_fn(average, new, count) or multi_avg_fn(averages, news, count) say how; the default is the mean.
    use_buffers averages buffers too; otherwise they are copied.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: device | str | int | None = None,
        avg_fn: Callable[[Tensor, Tensor, Tensor | int], Tensor] | None = None,
        multi_avg_fn: Any = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn can say how to average")
        copy = deepcopy(model)
        self.module = copy if device is None else copy.to(device)
        self.register_buffer("n_averaged", rl.zeros((), dtype=rl.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        result: Tensor = self.module(*args, **kwargs)
        return result

    def _averaged_tensors(self, model: Module) -> list[Tensor]:
        tensors = [*model.parameters(), *(model.buffers() if self.use_buffers else ())]
        return [t.detach() for t in tensors]

    def update_parameters(self, model: Module) -> None:
        """Takes one more value of each parameter of the model into the averages."""
        averages, news = self._averaged_tensors(self.module), self._averaged_tensors(model)
        with rl.no_grad():
            if self.n_averaged == 0:
                for average, new in zip(averages, news, strict=True):
                    average.copy_(new)
            elif self.avg_fn is not None:
                count = self.n_averaged
                for average, new in zip(averages, news, strict=True):
                    average.copy_(self.avg_fn(average, new.to(average.device), count.to(average.device)))
            else:
                (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, news, self.n_averaged)
            if not self.use_buffers:
                for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                    mine.detach().copy_(theirs.detach())
            self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: device | str | int | None = None) -> None:
    """Computes the running statistics of a model's batch norms afresh, by one pass over the loader."""
    with rl.no_grad():
        norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        if not norms:
            return
        momenta = [m.momentum for m in norms]
        was_training = model.training
        model.train()
        for m in norms:
            m.reset_running_stats()
            m.momentum = None  # a plain mean over all batches
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            model(batch if device is None else batch.to(device))
        for m, momentum in zip(norms, momenta, strict=True):
            m.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Goes from the present rates to swa_lr in anneal_epochs, along a cosine or a line, and stays there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        for group, lr in zip(optimizer.param_groups, per_group("swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', got {anneal_strategy!r}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"anneal_epochs must be equal or greater than 0 and an int, got {anneal_epochs!r}"
            )
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _done(self, step: int) -> float:
        """The share of the way gone at a step, 0 to 1."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def _rates(self) -> list[float | Tensor]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._done(step - 1), self._done(step)
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            # Where the way began, told from where it is: the rate may have been changed by others.
            start = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
