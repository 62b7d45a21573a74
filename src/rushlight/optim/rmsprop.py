"""RMSprop: gradients divided by the running root of their mean square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.optim._stepwise import (
    StepwiseOptimizer,
    number,
    rows,
    run_fused,
    step_counter,
    zeros_like,
)

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(StepwiseOptimizer):
    """RMSprop: p -= lr * g / (sqrt(v) + eps), v = alpha * v + (1 - alpha) * g^2.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 1e-2
        alpha (float): the decay rate of the means. Default: 0.99
        eps (float): keeps the denominator from zero. Default: 1e-8
        weight_decay (float): adds weight_decay * p to the gradient. Default: 0
        momentum (float): steps along buf = momentum * buf + g / (sqrt(v) + eps) instead. Default: 0
        centered (bool): divides by the standard deviation: v less the square of the mean gradient. Default:
            False
        capturable (bool): keeps the step count on the device of its parameter. Default: False
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        maximize (bool): climbs along the gradient instead of descending. Default: False
        differentiable (bool): records the step for autograd, so that gradients pass through it. Default: False

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = optim.RMSprop([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 3.0331e-12, -3.0969e-01], requires_grad=True)
    """

    layout = (
        "lr",
        "momentum",
        "alpha",
        "eps",
        "centered",
        "weight_decay",
        "capturable",
        "foreach",
        "maximize",
        "differentiable",
    )
    lists = ("square_avg", "grad_avg", "momentum_buffer", "step")
    not_negative = ("lr", "eps", "momentum", "weight_decay", "alpha")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        state = {"step": step_counter(p, group), "square_avg": zeros_like(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = zeros_like(p)
        return state


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step of RMSprop on lists of tensors."""
    if not differentiable:
        lr = number(lr)
        lists = (params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps)
        if run_fused("rmsprop_step", *lists, lr, alpha, eps, weight_decay, momentum, centered, maximize):
            return
    nothing = [None] * len(params)
    lists = (params, grads, square_avgs, grad_avgs or nothing, momentum_buffer_list or nothing, state_steps)
    with rl.set_grad_enabled(differentiable):
        for p, grad, v, mean, buf, step in rows(maximize, weight_decay, *lists):
            step += 1
            v.mul_(alpha).add_((1 - alpha) * grad * grad)
            spread = v
            if centered:
                mean.lerp_(grad, 1 - alpha)
                spread = v - mean * mean
            update = grad / (spread.sqrt() + eps)
            if momentum > 0:
                buf.mul_(momentum).add_(update)
                update = buf
            p.sub_(lr * update)


RMSprop.function = rmsprop
