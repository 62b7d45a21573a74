"""Averaged stochastic gradient descent (Polyak and Juditsky)."""

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

__all__ = ["ASGD", "asgd"]


class ASGD(StepwiseOptimizer):
    """Averaged SGD: p = (1 - lambd * eta) p - eta * g, with eta = lr / (1 + lambd * lr * t)^alpha.

    `optimizer.state[p]["ax"]` is the mean of the parameter over all steps after t0, and p itself before: what
    to evaluate in the end.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 1e-2
        lambd (float): decay of the parameters, and of the rate. Default: 1e-4
        alpha (float): the power by which the rate falls. Default: 0.75
        t0 (float): the step from which ax averages. Default: 1e6
        weight_decay (float): adds weight_decay * p to the gradient. Default: 0
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        maximize (bool): climbs along the gradient instead of descending. Default: False
        differentiable (bool): records the step for autograd, so that gradients pass through it. Default: False
        capturable (bool): keeps the step count on the device of its parameter. Default: False

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = optim.ASGD([w], lr=0.1, t0=1)
        >>> for _ in range(6):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.2621, -0.5243], requires_grad=True)
        >>> optimizer.state[w]["ax"]
        tensor([ 0.3778, -0.7557])
    """

    layout = (
        "lr",
        "lambd",
        "alpha",
        "t0",
        "weight_decay",
        "foreach",
        "maximize",
        "differentiable",
        "capturable",
    )
    lists = ("ax", "mu", "eta", "step")
    scalar_state = ("step", "eta", "mu")
    not_negative = ("lr", "weight_decay")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        step = step_counter(p, group)
        eta = rl.full_like(step, number(group["lr"]))
        return {"step": step, "eta": eta, "mu": rl.ones_like(step), "ax": zeros_like(p)}


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of ASGD on lists of tensors."""
    lr = number(lr)
    lists = (params, grads, axs, mus, etas, state_steps)
    if not differentiable and run_fused("asgd_step", *lists, lr, lambd, alpha, t0, weight_decay, maximize):
        return
    with rl.set_grad_enabled(differentiable):
        for p, grad, ax, mu, eta, step in rows(maximize, weight_decay, *lists):
            step += 1
            t, rate, share = step.item(), eta.item(), mu.item()
            p.mul_(1 - lambd * rate)
            p.sub_(rate * grad)
            if share == 1:
                ax.copy_(p)
            else:
                ax.add_(share * (p - ax))
            eta.fill_(lr / (1 + lambd * lr * t) ** alpha)
            mu.fill_(1 / max(1, t - t0))


ASGD.function = asgd
