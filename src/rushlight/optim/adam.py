"""Adam, and what its relatives share: running means of the gradient and of its square."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.optim._stepwise import (
    StepwiseOptimizer,
    check,
    number,
    rows,
    run_fused,
    step_counter,
    zeros_like,
)

__all__ = ["Adam", "adam"]


def moments(lists: Any, options: Any) -> Any:
    """Updates the means of each parameter; yields (p, grad, m, v, t, other state), t counting steps from 1.

    lists: params, grads, exp_avgs, exp_avg_sqs, state_steps and further state.
    """
    lr, beta1, beta2, weight_decay, maximize, decoupled = options
    for p, grad, m, v, step, *others in rows(maximize, 0 if decoupled else weight_decay, *lists):
        step += 1
        if decoupled and weight_decay != 0:
            p.mul_(1 - lr * weight_decay)
        m.lerp_(grad, 1 - beta1)
        v.mul_(beta2).add_((1 - beta2) * grad * grad)
        yield p, grad, m, v, step.item(), *others


class Adam(StepwiseOptimizer):
    """Adam: p -= lr * m_hat / (sqrt(v_hat) + eps), from running means m of the gradient g and v of g^2.

    m = beta1 m + (1 - beta1) g and v = beta2 v + (1 - beta2) g^2 start at zero; at step t, m_hat = m / (1 -
    beta1^t) and v_hat = v / (1 - beta2^t) make up for that. One kernel steps all parameters of a group.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 1e-3
        betas (tuple of 2 floats): decay rates of m and v. Default: (0.9, 0.999)
        eps (float): keeps the denominator from zero. Default: 1e-8
        weight_decay (float): adds weight_decay * p to the gradient. Default: 0
        amsgrad (bool): divides by the largest v seen so far instead of the present one. Default: False
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        maximize (bool): climbs along the gradient instead of descending. Default: False
        capturable (bool): keeps the step count on the device of its parameter. Default: False
        differentiable (bool): records the step for autograd, so that gradients pass through it. Default: False
        fused (bool): True insists on floating point parameters; the result is the same. Default: None
        decoupled_weight_decay (bool): multiplies p by 1 - lr * weight_decay instead of changing its gradient.
            Default: False

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = optim.Adam([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.7016, -1.7006], requires_grad=True)
    """

    layout = (
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "amsgrad",
        "maximize",
        "foreach",
        "capturable",
        "differentiable",
        "fused",
        "decoupled_weight_decay",
    )
    refuses_sparse = "{} does not support sparse gradients, please consider SparseAdam instead"
    lists = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        in_foreach = foreach and not capturable
        tensors = {f"betas[{i}]": beta for i, beta in enumerate(betas) if isinstance(beta, rl.Tensor)}
        check(len(tensors) in (0, len(betas)), "betas must be either both floats or both Tensors")
        for name, value in {"lr": lr, **tensors}.items():
            if isinstance(value, rl.Tensor):
                check(
                    not in_foreach,
                    f"{name} as a Tensor is not supported for capturable=False and foreach=True",
                )
                check(value.numel() == 1, f"Tensor {name} must be 1-element")
        super().__init__(params, locals())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        state = {"step": step_counter(p, group), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(p)
        return state


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: Any,
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of Adam on lists of tensors; the step counters are raised first."""
    if not differentiable:
        lr, beta1, beta2, weight_decay = number(lr), number(beta1), number(beta2), number(weight_decay)
        options = (lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled_weight_decay)
        lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps)
        if run_fused("adam_step", *lists, *options):
            return
    peaks = max_exp_avg_sqs if amsgrad else [None] * len(params)
    lists = (params, grads, exp_avgs, exp_avg_sqs, state_steps, peaks)
    with rl.set_grad_enabled(differentiable):
        options = (lr, beta1, beta2, weight_decay, maximize, decoupled_weight_decay)
        for p, _, m, v, t, peak in moments(lists, options):
            if peak is not None:
                peak.copy_(rl.maximum(peak.clone() if differentiable else peak, v))
                v = peak
            # Running means start at zero: divide by the share of the weights they have seen.
            share = 1 - beta2**t
            denom = v.sqrt() / (share.sqrt() if isinstance(share, rl.Tensor) else math.sqrt(share)) + eps
            p.sub_(lr / (1 - beta1**t) * (m / denom))


Adam.function = adam
