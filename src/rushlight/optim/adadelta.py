"""Adadelta: rates from the ratio of past updates to past gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.optim._stepwise import (
    StepwiseOptimizer,
    check,
    number,
    rows,
    run_fused,
    step_counter,
    zeros_like,
)

__all__ = ["Adadelta", "adadelta"]


class Adadelta(StepwiseOptimizer):
    """Adadelta: p -= lr * delta, delta = g * sqrt(u + eps) / sqrt(v + eps), v and u running means of g^2 and delta^2.

    The ratio of the two means gives each element a rate in the units of the parameter, so lr can stay 1.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 1.0
        rho (float): the decay rate of both means, from 0 to 1. Default: 0.9
        eps (float): added under both roots; it sets the size of the first steps. Default: 1e-6
        weight_decay (float): adds weight_decay * p to the gradient. Default: 0
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        capturable (bool): keeps the step count on the device of its parameter. Default: False
        maximize (bool): climbs along the gradient instead of descending. Default: False
        differentiable (bool): records the step for autograd, so that gradients pass through it. Default: False

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = optim.Adadelta([w])
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.9903, -1.9903], requires_grad=True)
    """

    layout = ("lr", "rho", "eps", "weight_decay", "maximize", "capturable", "foreach", "differentiable")
    lists = ("square_avg", "acc_delta", "step")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(0.0 <= rho <= 1.0, f"Invalid rho value: {rho}")
        super().__init__(params, locals())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {"step": step_counter(p, group), "square_avg": zeros_like(p), "acc_delta": zeros_like(p)}


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step of Adadelta on lists of tensors."""
    lists = (params, grads, square_avgs, acc_deltas, state_steps)
    if not differentiable:
        lr = number(lr)
        if run_fused("adadelta_step", *lists, lr, rho, eps, weight_decay, maximize):
            return
    with rl.set_grad_enabled(differentiable):
        for p, grad, v, acc, step in rows(maximize, weight_decay, *lists):
            step += 1
            v.mul_(rho).add_((1 - rho) * grad * grad)
            delta = (acc + eps).sqrt() / (v + eps).sqrt() * grad
            acc.mul_(rho).add_((1 - rho) * delta * delta)
            p.sub_(lr * delta)


Adadelta.function = adadelta
