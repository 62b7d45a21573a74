"""Adadelta: rates from the ratio of past updates to past gradients."""

import rushlight as rl
from rushlight.optim._stepwise import (
    StepwiseOptimizer,
    check,
    check_rate,
    column,
    number,
    real_rows,
    run_fused,
    step_counter,
    zeros_like,
)

__all__ = ["Adadelta", "adadelta"]


class Adadelta(StepwiseOptimizer):
    """delta = grad * sqrt(acc + eps) / sqrt(v + eps), v and acc running means of grad^2 and delta^2; p -= lr
    * delta.
    """

    added_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        check_rate(lr)
        check(0.0 <= rho <= 1.0, f"Invalid rho value: {rho}")
        check(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, p, group):
        return {"step": step_counter(p, group), "square_avg": zeros_like(p), "acc_delta": zeros_like(p)}

    def _apply(self, group, params, grads, states):
        adadelta(
            params,
            grads,
            column(states, "square_avg"),
            column(states, "acc_delta"),
            column(states, "step"),
            differentiable=group["differentiable"],
            lr=group["lr"],
            rho=group["rho"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )


def adadelta(
    params,
    grads,
    square_avgs,
    acc_deltas,
    state_steps,
    capturable=False,
    foreach=None,
    differentiable=False,
    has_complex=False,
    *,
    lr,
    rho,
    eps,
    weight_decay,
    maximize,
):
    """One step of Adadelta on lists of tensors."""
    if not differentiable:
        lr = number(lr)
        options = (lr, rho, eps, weight_decay, maximize)
        if run_fused("adadelta_step", params, grads, square_avgs, acc_deltas, state_steps, *options):
            return
    with rl.set_grad_enabled(differentiable):
        for p, grad, v, acc, step in real_rows(maximize, params, grads, square_avgs, acc_deltas, state_steps):
            step += 1
            if weight_decay != 0:
                grad = grad + weight_decay * p
            v.mul_(rho).add_((1 - rho) * grad * grad)
            delta = (acc + eps).sqrt() / (v + eps).sqrt() * grad
            acc.mul_(rho).add_((1 - rho) * delta * delta)
            p.sub_(lr * delta)
