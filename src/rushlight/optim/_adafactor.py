"""Adafactor (Shazeer and Stern): second moments of a matrix kept as one row and one column."""

import math

import rushlight as rl
from rushlight.optim._stepwise import StepwiseOptimizer, check, number, options_for, step_dtype, zeros_like

__all__ = ["Adafactor", "adafactor"]


class Adafactor(StepwiseOptimizer):
    """Rate relative to the parameter's own root mean square; memory of a matrix is O(rows + columns)."""

    layout = ("lr", "beta2_decay", "eps", "d", "weight_decay", "foreach", "maximize")
    not_negative = ()

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        if isinstance(lr, rl.Tensor):
            check(lr.numel() == 1, "Tensor lr must be 1-element")
        check(lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        check(beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}")
        check(eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}")
        check(eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}")
        check(d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}")
        check(weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, locals())

    def _start(self, p, group):
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state = {"step": rl.tensor(0.0, dtype=step_dtype())}
        if p.grad.dim() > 1:
            state["row_var"] = p.grad.new_zeros((*p.grad.shape[:-1], 1))  # (..., R, 1)
            state["col_var"] = p.grad.new_zeros((*p.grad.shape[:-2], 1, p.grad.shape[-1]))  # (..., 1, C)
        else:
            state["variance"] = zeros_like(p.grad)
        return state

    def _apply(self, group, params, grads, states):
        names = ("row_var", "col_var", "variance", "step")  # matrices have the first two, vectors the third
        lists = [[state.get(name) for state in states] for name in names]
        eps1, eps2 = group["eps"]
        adafactor(params, grads, *lists, **options_for(adafactor, group), eps1=eps1, eps2=eps2)


def adafactor(
    params,
    grads,
    row_vars,
    col_vars,
    variances,
    state_steps,
    foreach=None,
    grad_scale=None,
    found_inf=None,
    has_complex=False,
    *,
    d,
    lr,
    beta2_decay,
    weight_decay,
    eps1,
    eps2,
    maximize,
):
    """One step of Adafactor on lists of tensors."""
    lr = number(lr)
    lists = zip(params, grads, row_vars, col_vars, variances, state_steps, strict=True)
    with rl.no_grad():
        for p, grad, row_var, col_var, variance, step in lists:
            if maximize:
                grad = -grad
            step += 1
            t = step.item()
            floor = rl.finfo(p.dtype).eps if eps1 is None else eps1
            fresh = t**beta2_decay  # the weight of the new gradient in the running means
            root = math.sqrt(p.numel())
            scale = max(eps2, p.norm(2).item() / root) * min(lr, 1 / math.sqrt(t)) if root else 0.0
            if weight_decay != 0:
                p.mul_(1 - lr * weight_decay)
            if grad.dim() > 1:
                row_var.lerp_(grad.norm(dim=-1, keepdim=True).square_().div_(grad.size(-1)), fresh)
                col_var.lerp_(grad.norm(dim=-2, keepdim=True).square_().div_(grad.size(-2)), fresh)
                # Rank one: rows times columns, over what both have counted.
                estimate = row_var @ col_var / row_var.mean(dim=-2, keepdim=True).clamp_(min=floor)
            else:
                variance.lerp_(grad * grad, fresh)
                estimate = variance
            update = estimate.clamp(min=floor * floor).rsqrt() * grad
            clip = max(1.0, update.norm(2).item() / (root * d)) if root else 1.0
            p.add_(update, alpha=-scale / clip)
