"""Adamax: Adam by the infinity norm."""

import rushlight as rl
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
    """m = mean of gradients; u = max(beta2 * u, |grad| + eps); p -= lr / (1 - beta1^t) * m / u."""

    layout = ("lr", "betas", "eps", "weight_decay", "foreach", "maximize", "differentiable", "capturable")
    lists = ("exp_avg", "exp_inf", "step")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        super().__init__(params, locals())

    def _start(self, p, group):
        return {"step": step_counter(p, group), "exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}


def adamax(
    params,
    grads,
    exp_avgs,
    exp_infs,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    eps,
    beta1,
    beta2,
    lr,
    weight_decay,
):
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
