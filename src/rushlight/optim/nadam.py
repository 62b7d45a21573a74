"""NAdam: Adam with Nesterov momentum."""

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
    step_dtype,
    zeros_like,
)

__all__ = ["NAdam", "nadam"]


class NAdam(StepwiseOptimizer):
    """Adam that looks one step ahead, its momentum warmed up as mu_t = beta1 * (1 - 0.96^(t *
    momentum_decay) / 2).
    """

    added_options = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
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
        check(momentum_decay >= 0.0, f"Invalid momentum_decay value: {momentum_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for saved in self.state.values():
            if isinstance(saved, dict) and isinstance(saved.get("mu_product"), (int, float)):
                saved["mu_product"] = rl.tensor(float(saved["mu_product"]), dtype=step_dtype())

    def _start(self, p, group):
        step = step_counter(p, group)
        return {
            "step": step,
            "mu_product": rl.ones_like(step),
            "exp_avg": zeros_like(p),
            "exp_avg_sq": zeros_like(p),
        }

    def _apply(self, group, params, grads, states):
        beta1, beta2 = group["betas"]
        nadam(
            params,
            grads,
            column(states, "exp_avg"),
            column(states, "exp_avg_sq"),
            column(states, "mu_product"),
            column(states, "step"),
            decoupled_weight_decay=group["decoupled_weight_decay"],
            differentiable=group["differentiable"],
            maximize=group["maximize"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            momentum_decay=group["momentum_decay"],
            eps=group["eps"],
        )


def nadam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    mu_products,
    state_steps,
    decoupled_weight_decay=False,
    foreach=None,
    capturable=False,
    differentiable=False,
    has_complex=False,
    maximize=False,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    momentum_decay,
    eps,
):
    """One step of NAdam on lists of tensors."""
    if not differentiable:
        lr = number(lr)
        options = (lr, beta1, beta2, eps, weight_decay, momentum_decay, maximize, decoupled_weight_decay)
        if run_fused("nadam_step", params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, *options):
            return
    with rl.set_grad_enabled(differentiable):
        rows = real_rows(maximize, params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps)
        for p, grad, m, v, mu_product, step in rows:
            step += 1
            t = step.item()
            if weight_decay != 0:
                if decoupled_weight_decay:
                    p.mul_(1 - lr * weight_decay)
                else:
                    grad = grad + weight_decay * p
            mu, mu_next = (beta1 * (1 - 0.5 * 0.96 ** (s * momentum_decay)) for s in (t, t + 1))
            mu_product *= mu
            product = mu_product.item()
            m.lerp_(grad, 1 - beta1)
            v.mul_(beta2).add_((1 - beta2) * grad * grad)
            denom = (v / (1 - beta2**t)).sqrt() + eps
            p.sub_(lr * (1 - mu) / (1 - product) * (grad / denom))
            p.sub_(lr * mu_next / (1 - product * mu_next) * (m / denom))
