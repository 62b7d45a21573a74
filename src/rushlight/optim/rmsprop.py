"""RMSprop: gradients divided by the running root of their mean square."""

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

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(StepwiseOptimizer):
    """p -= lr * grad / (sqrt(v) + eps), v a running mean of grad^2 (centered: of the variance); optional
    momentum.
    """

    added_options = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_rate(lr)
        check(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        check(alpha >= 0.0, f"Invalid alpha value: {alpha}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, p, group):
        state = {"step": step_counter(p, group), "square_avg": zeros_like(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = zeros_like(p)
        return state

    def _apply(self, group, params, grads, states):
        rmsprop(
            params,
            grads,
            column(states, "square_avg"),
            column(states, "grad_avg") if group["centered"] else [],
            column(states, "momentum_buffer") if group["momentum"] > 0 else [],
            column(states, "step"),
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            lr=group["lr"],
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            centered=group["centered"],
        )


def rmsprop(
    params,
    grads,
    square_avgs,
    grad_avgs,
    momentum_buffer_list,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    lr,
    alpha,
    eps,
    weight_decay,
    momentum,
    centered,
):
    """One step of RMSprop on lists of tensors."""
    if not differentiable:
        lr = number(lr)
        lists = (params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps)
        if run_fused("rmsprop_step", *lists, lr, alpha, eps, weight_decay, momentum, centered, maximize):
            return
    nothing = [None] * len(params)
    means, buffers = grad_avgs or nothing, momentum_buffer_list or nothing
    with rl.set_grad_enabled(differentiable):
        rows = real_rows(maximize, params, grads, square_avgs, means, buffers, state_steps)
        for p, grad, v, mean, buf, step in rows:
            step += 1
            if weight_decay != 0:
                grad = grad + weight_decay * p
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
