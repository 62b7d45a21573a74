"""Adamax: Adam by the infinity norm."""

import rushlight as rl
from rushlight.optim._stepwise import (
    StepwiseOptimizer,
    check,
    check_betas,
    check_rate,
    column,
    number,
    real_rows,
    run_fused,
    step_counter,
    zeros_like,
)

__all__ = ["Adamax", "adamax"]


class Adamax(StepwiseOptimizer):
    """m = mean of gradients; u = max(beta2 * u, |grad| + eps); p -= lr / (1 - beta1^t) * m / u."""

    added_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

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
        check_rate(lr)
        check(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _start(self, p, group):
        return {"step": step_counter(p, group), "exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    def _apply(self, group, params, grads, states):
        beta1, beta2 = group["betas"]
        adamax(
            params,
            grads,
            column(states, "exp_avg"),
            column(states, "exp_inf"),
            column(states, "step"),
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            eps=group["eps"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
        )


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
    if not differentiable:
        lr = number(lr)
        options = (lr, beta1, beta2, eps, weight_decay, maximize)
        if run_fused("adamax_step", params, grads, exp_avgs, exp_infs, state_steps, *options):
            return
    with rl.set_grad_enabled(differentiable):
        for p, grad, m, u, step in real_rows(maximize, params, grads, exp_avgs, exp_infs, state_steps):
            step += 1
            if weight_decay != 0:
                grad = grad + weight_decay * p
            m.lerp_(grad, 1 - beta1)
            u.copy_(rl.maximum(beta2 * u, grad.abs() + eps))
            p.sub_(lr / (1 - beta1 ** step.item()) * (m / u))
