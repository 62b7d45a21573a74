"""RAdam: Adam that waits until the variance of its second moment can be trusted."""

import math

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

__all__ = ["RAdam", "radam"]


class RAdam(StepwiseOptimizer):
    """Adam with a rectified step: plain momentum while rho_t <= 5, then Adam scaled by the rectification
    r_t.
    """

    added_options = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, p, group):
        return {"step": step_counter(p, group), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def _apply(self, group, params, grads, states):
        beta1, beta2 = group["betas"]
        radam(
            params,
            grads,
            column(states, "exp_avg"),
            column(states, "exp_avg_sq"),
            column(states, "step"),
            decoupled_weight_decay=group["decoupled_weight_decay"],
            differentiable=group["differentiable"],
            maximize=group["maximize"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
        )


def radam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    state_steps,
    decoupled_weight_decay=False,
    foreach=None,
    differentiable=False,
    capturable=False,
    has_complex=False,
    maximize=False,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
):
    """One step of RAdam on lists of tensors."""
    if not differentiable:
        lr = number(lr)
        options = (lr, beta1, beta2, eps, weight_decay, maximize, decoupled_weight_decay)
        if run_fused("radam_step", params, grads, exp_avgs, exp_avg_sqs, state_steps, *options):
            return
    with rl.set_grad_enabled(differentiable):
        for p, grad, m, v, step in real_rows(maximize, params, grads, exp_avgs, exp_avg_sqs, state_steps):
            step += 1
            t = step.item()
            if weight_decay != 0:
                if decoupled_weight_decay:
                    p.mul_(1 - lr * weight_decay)
                else:
                    grad = grad + weight_decay * p
            m.lerp_(grad, 1 - beta1)
            v.mul_(beta2).add_((1 - beta2) * grad * grad)
            update = m / (1 - beta1**t)
            # rho: the length of the simple moving average that v amounts to.
            share = 1 - beta2**t
            rho_inf = 2 / (1 - beta2) - 1
            rho = rho_inf - 2 * t * beta2**t / share
            if rho > 5.0:
                rectify = (rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)
                update = update * (math.sqrt(rectify) * math.sqrt(share)) / (v.sqrt() + eps)
            p.sub_(lr * update)
