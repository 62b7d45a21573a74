"""RAdam: Adam that waits until the variance of its second moment can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.optim._stepwise import (
    StepwiseOptimizer,
    number,
    run_fused,
    step_counter,
    zeros_like,
)
from rushlight.optim.adam import moments

__all__ = ["RAdam", "radam"]


class RAdam(StepwiseOptimizer):
    """RAdam: p -= lr * m_hat while the variance of v is unknown, then Adam's step times a rectification r_t.

    rho_t = rho - 2 t beta2^t / (1 - beta2^t), with rho = 2 / (1 - beta2) - 1, is how many gradients v stands
    for. From rho_t > 5 on, r_t = sqrt((rho_t - 4) (rho_t - 2) rho / ((rho - 4) (rho - 2) rho_t)); before, the
    step is momentum alone. So no warm-up of the rate is needed.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 1e-3
        betas (tuple of 2 floats): decay rates of m and v. Default: (0.9, 0.999)
        eps (float): keeps the denominator from zero. Default: 1e-8
        weight_decay (float): adds weight_decay * p to the gradient. Default: 0
        decoupled_weight_decay (bool): multiplies p by 1 - lr * weight_decay instead of changing its gradient.
            Default: False
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        maximize (bool): climbs along the gradient instead of descending. Default: False
        capturable (bool): keeps the step count on the device of its parameter. Default: False
        differentiable (bool): records the step for autograd, so that gradients pass through it. Default: False

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = optim.RAdam([w], lr=0.1)
        >>> for _ in range(8):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.1941, -0.3957], requires_grad=True)
    """

    layout = (
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "maximize",
        "foreach",
        "capturable",
        "decoupled_weight_decay",
        "differentiable",
    )
    lists = ("exp_avg", "exp_avg_sq", "step")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {"step": step_counter(p, group), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """One step of RAdam on lists of tensors."""
    lists = (params, grads, exp_avgs, exp_avg_sqs, state_steps)
    if not differentiable:
        lr = number(lr)
        options = (lr, beta1, beta2, eps, weight_decay, maximize, decoupled_weight_decay)
        if run_fused("radam_step", *lists, *options):
            return
    with rl.set_grad_enabled(differentiable):
        options = (lr, beta1, beta2, weight_decay, maximize, decoupled_weight_decay)
        for p, _, m, v, t in moments(lists, options):
            update = m / (1 - beta1**t)
            # rho: the length of the simple moving average that v amounts to.
            share = 1 - beta2**t
            longest = 2 / (1 - beta2) - 1
            rho = longest - 2 * t * beta2**t / share
            if rho > 5.0:
                rectify = (rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho)
                update = update * (math.sqrt(rectify) * math.sqrt(share)) / (v.sqrt() + eps)
            p.sub_(lr * update)


RAdam.function = radam
