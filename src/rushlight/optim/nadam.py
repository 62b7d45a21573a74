"""NAdam: Adam with Nesterov momentum."""

import rushlight as rl
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
    """Adam that looks one step ahead; the momentum warms up: mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2)."""

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
    numbers = ("step", "mu_product")
    not_negative = ("lr", "eps", "weight_decay", "momentum_decay")

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
        super().__init__(params, locals())

    def _start(self, p, group):
        step = step_counter(p, group)
        means = {"exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}
        return {"step": step, "mu_product": rl.ones_like(step), **means}


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
