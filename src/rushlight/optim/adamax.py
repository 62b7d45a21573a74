"""Adamax: Adam by the infinity norm."""

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

__all__ = ["Adamax", "adamax"]


class Adamax(StepwiseOptimizer):
    """Adamax: p -= lr / (1 - beta1^t) * m / u, with m = beta1 m + (1 - beta1) g and u = max(beta2 * u, |g| + eps).

    Adam with the infinity norm of past gradients in place of their root mean square.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 2e-3
        betas (tuple of 2 floats): decay rates of m and u. Default: (0.9, 0.999)
        eps (float): added to |g|, so that u is never zero. Default: 1e-8
        weight_decay (float): adds weight_decay * p to the gradient. Default: 0
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        maximize (bool): climbs along the gradient instead of descending. Default: False
        differentiable (bool): records the step for autograd, so that gradients pass through it. Default: False
        capturable (bool): keeps the step count on the device of its parameter. Default: False

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = optim.Adamax([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.7155, -1.7076], requires_grad=True)
    """

    layout = ("lr", "betas", "eps", "weight_decay", "foreach", "maximize", "differentiable", "capturable")
    lists = ("exp_avg", "exp_inf", "step")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {"step": step_counter(p, group), "exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """One step of Adamax on lists of tensors."""
    lists = (params, grads, exp_avgs, exp_infs, state_steps)
    if not differentiable:
        lr = number(lr)
        if run_fused("adamax_step", *lists, lr, beta1, beta2, eps, weight_decay, maximize):
            return
    with rl.set_grad_enabled(differentiable):
        for p, grad, m, u, step in rows(maximize, weight_decay, *lists):
            step += 1
            m.lerp_(grad, 1 - beta1)
            u.copy_(rl.maximum(beta2 * u, grad.abs() + eps))
            p.sub_(lr / (1 - beta1 ** step.item()) * (m / u))


Adamax.function = adamax
