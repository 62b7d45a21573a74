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
    """A function for AveragedModel's avg_fn: decay * average + (1 - decay) * new, an exponential moving average.

    Args:
        decay (float): how much of the average is kept, from 0 to 1. Default: 0.999

    Example:
        >>> average = optim.swa_utils.get_ema_avg_fn(0.75)
        >>> average(torch.tensor(1.0), torch.tensor(5.0), torch.tensor(3))
        tensor(2.)
    """
    _check_decay(decay)

    def average(ema_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        with rl.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return average


def get_swa_avg_fn() -> Any:
    """A function for AveragedModel's avg_fn: average + (new - average) / (count + 1), the mean of all so far.

    Example:
        >>> average = optim.swa_utils.get_swa_avg_fn()
        >>> average(torch.tensor(1.0), torch.tensor(5.0), torch.tensor(3))
        tensor(2.)
    """

    def average(averaged_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        with rl.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> Any:
    """A function for AveragedModel's multi_avg_fn: the moving average of get_ema_avg_fn on lists, in place.

    Args:
        decay (float): how much of the averages is kept, from 0 to 1. Default: 0.999

    Example:
        >>> averages = [torch.tensor([1.0])]
        >>> optim.swa_utils.get_ema_multi_avg_fn(0.75)(averages, [torch.tensor([5.0])], 3)
        >>> averages
        [tensor([2.])]
    """
    _check_decay(decay)

    def average(ema_params: list[Tensor], current_params: list[Tensor], num_averaged: Tensor | int) -> None:
        _move_towards(ema_params, current_params, 1 - decay)

    return average


def get_swa_multi_avg_fn() -> Any:
    """A function for AveragedModel's multi_avg_fn: the mean of get_swa_avg_fn on lists, in place.

    Example:
        >>> averages = [torch.tensor([1.0])]
        >>> optim.swa_utils.get_swa_multi_avg_fn()(averages, [torch.tensor([5.0])], 3)
        >>> averages
        [tensor([2.])]
    """

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
    """A copy of a model whose parameters are averages of the model's over training.

    update_parameters(model) takes the present values in; calling the copy uses the averages. Run update_bn
    afterwards if the model has batch norms.

    Args:
        model (nn.Module): the model, which is copied.
        device (device): where the copy is kept. Default: None
        avg_fn (callable): avg_fn(average, new, count) gives the next average. Default: None, the mean of all
        multi_avg_fn (callable): multi_avg_fn(averages, news, count) changes the averages in place. Default:
            None
        use_buffers (bool): averages buffers too; False copies them. Default: False

    Example:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> averaged = optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 2.0, 6.0):
        ...     _ = nn.init.constant_(model.weight, value)
        ...     averaged.update_parameters(model)
        >>> averaged.module.weight.item(), averaged.n_averaged.item()
        (3.0, 3)
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
        """Runs the averaged copy."""
        result: Tensor = self.module(*args, **kwargs)
        return result

    def _averaged_tensors(self, model: Module) -> list[Tensor]:
        tensors = [*model.parameters(), *(model.buffers() if self.use_buffers else ())]
        return [t.detach() for t in tensors]

    def update_parameters(self, model: Module) -> None:
        """Takes one more value of each parameter of the model into the averages.

        Args:
            model (nn.Module): the model in training.
        """
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
    """Computes the running statistics of a model's batch norms afresh, by one pass over the loader.

    Statistics are plain means over all batches; the model is in training mode meanwhile, and no gradients are
    kept.

    Args:
        loader (iterable): batches; of a tuple or list, its first item is the input.
        model (nn.Module): changed in place; one without batch norms is left alone.
        device (device): where inputs are moved to. Default: None

    Example:
        >>> model = nn.BatchNorm1d(1)
        >>> optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]]), torch.tensor([[5.0], [7.0]])], model)
        >>> model.running_mean
        tensor([4.])
    """
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
    """Moves the rates from the present ones to swa_lr within anneal_epochs, where they stay.

    Args:
        optimizer (Optimizer): whose groups' "lr" is set.
        swa_lr (float or list): the last rate, or one for each group.
        anneal_epochs (int): how many epochs it takes. Default: 10
        anneal_strategy (str): "cos" for half a cosine, "linear" for a line. Default: "cos"
        last_epoch (int): the epoch to resume after; -1 begins anew. Default: -1

    Example:
        >>> optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = optim.swa_utils.SWALR(optimizer, swa_lr=0.2, anneal_epochs=2, anneal_strategy="linear")
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates.append(round(scheduler.get_last_lr()[0], 4))
        ...     optimizer.step()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.6, 0.2, 0.2]
    """

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
        """The share of the annealing done at a step, 0 to 1."""
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
            # Where it began, told from where it is: the rate may have been changed by others.
            start = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
