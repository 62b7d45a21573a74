"""Averaged stochastic gradient descent (Polyak and Juditsky)."""

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
    step_dtype,
    zeros_like,
)

__all__ = ["ASGD", "asgd"]


class ASGD(StepwiseOptimizer):
    """SGD whose rate falls as lr / (1 + lambd * lr * t)^alpha; state "ax" averages the parameters from step
    t0 on.
    """

    added_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_rate(lr)
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for saved in self.state.values():
            for name in ("eta", "mu"):
                if isinstance(saved, dict) and isinstance(saved.get(name), (int, float)):
                    saved[name] = rl.tensor(float(saved[name]), dtype=step_dtype())

    def _start(self, p, group):
        step = step_counter(p, group)
        eta = rl.full_like(step, number(group["lr"]))
        return {"step": step, "eta": eta, "mu": rl.ones_like(step), "ax": zeros_like(p)}

    def _apply(self, group, params, grads, states):
        asgd(
            params,
            grads,
            column(states, "ax"),
            column(states, "mu"),
            column(states, "eta"),
            column(states, "step"),
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            lambd=group["lambd"],
            lr=group["lr"],
            t0=group["t0"],
            alpha=group["alpha"],
            weight_decay=group["weight_decay"],
        )


def asgd(
    params,
    grads,
    axs,
    mus,
    etas,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    lambd,
    lr,
    t0,
    alpha,
    weight_decay,
):
    """One step of ASGD on lists of tensors."""
    lr = number(lr)
    options = (lr, lambd, alpha, t0, weight_decay, maximize)
    if not differentiable and run_fused("asgd_step", params, grads, axs, mus, etas, state_steps, *options):
        return
    with rl.set_grad_enabled(differentiable):
        for p, grad, ax, mu, eta, step in real_rows(maximize, params, grads, axs, mus, etas, state_steps):
            step += 1
            t, rate, share = step.item(), eta.item(), mu.item()
            if weight_decay != 0:
                grad = grad + weight_decay * p
            p.mul_(1 - lambd * rate)
            p.sub_(rate * grad)
            if share == 1:
                ax.copy_(p)
            else:
                ax.add_(share * (p - ax))
            eta.fill_(lr / (1 + lambd * lr * t) ** alpha)
            mu.fill_(1 / max(1, t - t0))
