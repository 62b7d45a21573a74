"""Adam, and AdamW when weight decay is decoupled from the gradient."""

import math

import rushlight as rl
from rushlight.optim._stepwise import (
    StepwiseOptimizer,
    check,
    check_betas,
    check_fused,
    check_rate,
    column,
    number,
    real_rows,
    run_fused,
    step_counter,
    zeros_like,
)

__all__ = ["Adam", "adam"]


class Adam(StepwiseOptimizer):
    """p -= lr * m_hat / (sqrt(v_hat) + eps), m and v running means of the gradient and of its square.

    amsgrad keeps the largest v seen. decoupled_weight_decay shrinks p itself not through the gradient.
    """

    sparse_message = "Adam does not support sparse gradients, please consider SparseAdam instead"
    added_options = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        if isinstance(lr, rl.Tensor):
            check(
                capturable or not foreach,
                "lr as a Tensor is not supported for capturable=False and foreach=True",
            )
        check_rate(lr)
        check(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        _check_tensor_betas(betas, foreach and not capturable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)

    def _start(self, p, group):
        state = {"step": step_counter(p, group), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(p)
        return state

    def _apply(self, group, params, grads, states):
        beta1, beta2 = group["betas"]
        adam(
            params,
            grads,
            column(states, "exp_avg"),
            column(states, "exp_avg_sq"),
            column(states, "max_exp_avg_sq") if group["amsgrad"] else [],
            column(states, "step"),
            differentiable=group["differentiable"],
            decoupled_weight_decay=group["decoupled_weight_decay"],
            amsgrad=group["amsgrad"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )


def _check_tensor_betas(betas, in_foreach):
    tensors = [isinstance(beta, rl.Tensor) for beta in betas]
    check(tensors[0] == tensors[1], "betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if tensors[i]:
            check(
                not in_foreach,
                f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True",
            )
            check(beta.numel() == 1, f"Tensor betas[{i}] must be 1-element")


def adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    foreach=None,
    capturable=False,
    differentiable=False,
    fused=None,
    grad_scale=None,
    found_inf=None,
    has_complex=False,
    decoupled_weight_decay=False,
    *,
    amsgrad,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    maximize,
):
    """One step of Adam on lists of tensors; the step counters are raised first."""
    if not differentiable:
        lr, beta1, beta2, weight_decay = number(lr), number(beta1), number(beta2), number(weight_decay)
        options = (lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled_weight_decay)
        if run_fused(
            "adam_step", params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *options
        ):
            return
    peaks = max_exp_avg_sqs if amsgrad else [None] * len(params)
    with rl.set_grad_enabled(differentiable):
        rows = real_rows(maximize, params, grads, exp_avgs, exp_avg_sqs, peaks, state_steps)
        for p, grad, m, v, peak, step in rows:
            step += 1
            t = step.item()
            if weight_decay != 0:
                if decoupled_weight_decay:
                    p.mul_(1 - lr * weight_decay)
                else:
                    grad = grad + weight_decay * p
            m.lerp_(grad, 1 - beta1)
            v.mul_(beta2).add_((1 - beta2) * grad * grad)
            if peak is not None:
                peak.copy_(rl.maximum(peak, v))
                v = peak
            # Running means start at zero: divide by the share of the weights they have seen.
            share = 1 - beta2**t
            denom = v.sqrt() / (share.sqrt() if isinstance(share, rl.Tensor) else math.sqrt(share)) + eps
            p.sub_(lr / (1 - beta1**t) * (m / denom))
