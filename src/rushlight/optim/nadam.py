"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

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

__all__ = ["NAdam", "nadam"]


class NAdam(StepwiseOptimizer):
    """NAdam: Adam that looks ahead; the momentum warms up as mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2).

    With v_hat as in optim.Adam and M_t the product of mu_1 ... mu_t, the step is p -= lr * ((1 - mu_t) g / (1 -
    M_t) + mu_(t+1) m / (1 - M_(t+1))) / (sqrt(v_hat) + eps).

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 2e-3
        betas (tuple of 2 floats): decay rates of m and v. Default: (0.9, 0.999)
        eps (float): keeps the denominator from zero. Default: 1e-8
        weight_decay (float): adds weight_decay * p to the gradient. Default: 0
        momentum_decay (float): how fast the momentum warms up. Default: 4e-3
        decoupled_weight_decay (bool): multiplies p by 1 - lr * weight_decay instead of changing its gradient.
            Default: False
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        maximize (bool): climbs along the gradient instead of descending. Default: False
        capturable (bool): keeps the step count on the device of its parameter. Default: False
        differentiable (bool): records the step for autograd, so that gradients pass through it. Default: False

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = optim.NAdam([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.7527, -1.7475], requires_grad=True)
    """

    layout = (
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "momentum_decay",
        "decoupled_weight_decay",
        "maximize",
        "foreach",
        "capturable",
        "differentiable",
    )
    lists = ("exp_avg", "exp_avg_sq", "mu_product", "step")
    scalar_state = ("step", "mu_product")
    not_negative = ("lr", "eps", "weight_decay", "momentum_decay")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        step = step_counter(p, group)
        means = {"exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}
        return {"step": step, "mu_product": rl.ones_like(step), **means}


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step of NAdam on lists of tensors."""
    if not differentiable:
        lr = number(lr)
        options = (lr, beta1, beta2, eps, weight_decay, momentum_decay, maximize, decoupled_weight_decay)
        if run_fused("nadam_step", params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, *options):
            return
    lists = (params, grads, exp_avgs, exp_avg_sqs, state_steps, mu_products)
    with rl.set_grad_enabled(differentiable):
        options = (lr, beta1, beta2, weight_decay, maximize, decoupled_weight_decay)
        for p, grad, m, v, t, mu_product in moments(lists, options):
            mu, mu_next = (beta1 * (1 - 0.5 * 0.96 ** (s * momentum_decay)) for s in (t, t + 1))
            mu_product *= mu
            product = mu_product if differentiable else mu_product.item()
            denom = (v / (1 - beta2**t)).sqrt() + eps
            p.sub_(lr * (1 - mu) / (1 - product) * (grad / denom))
            p.sub_(lr * mu_next / (1 - product * mu_next) * (m / denom))


NAdam.function = nadam
