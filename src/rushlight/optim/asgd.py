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
    """SGD whose rate falls as lr / (1 + lambd * lr * t)^alpha; state "ax" averages the parameters from step t0 on."""

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
    numbers = ("step", "eta", "mu")
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
