"""Adagrad: each element's rate falls with the sum of its squared gradients."""

import rushlight as rl
from rushlight.optim._stepwise import (
    StepwiseOptimizer,
    check,
    check_fused,
    check_rate,
    column,
    number,
    real_rows,
    run_fused,
    step_dtype,
)

__all__ = ["Adagrad", "adagrad"]


class Adagrad(StepwiseOptimizer):
    """sum += grad^2; p -= lr / (1 + (t - 1) * lr_decay) * grad / (sqrt(sum) + eps)."""

    sparse_message = None
    added_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": False}

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        check_rate(lr)
        check(lr_decay >= 0.0, f"Invalid lr_decay value: {lr_decay}")
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        check(
            initial_accumulator_value >= 0.0,
            f"Invalid initial_accumulator_value value: {initial_accumulator_value}",
        )
        check(eps >= 0.0, f"Invalid epsilon value: {eps}")
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self._start(p, group))

    def share_memory(self):
        """Moves the state to memory shared between processes (Hogwild training)."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _start(self, p, group):
        value = group["initial_accumulator_value"]
        if p.is_complex():
            value = complex(value, value)
        return {
            "step": rl.tensor(0.0, dtype=step_dtype(group["fused"])),
            "sum": rl.full_like(p, value, memory_format=rl.preserve_format),
        }

    def _apply(self, group, params, grads, states):
        adagrad(
            params,
            grads,
            column(states, "sum"),
            column(states, "step"),
            has_sparse_grad=any(g.is_sparse for g in grads),
            differentiable=group["differentiable"],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            lr_decay=group["lr_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )


def adagrad(
    params,
    grads,
    state_sums,
    state_steps,
    fused=None,
    grad_scale=None,
    found_inf=None,
    has_sparse_grad=False,
    foreach=None,
    differentiable=False,
    has_complex=False,
    *,
    lr,
    weight_decay,
    lr_decay,
    eps,
    maximize,
):
    """One step of Adagrad on lists of tensors; a sparse gradient changes its own rows only."""
    if not differentiable:
        lr = number(lr)
        options = (lr, lr_decay, eps, weight_decay, maximize)
        if not has_sparse_grad and run_fused(
            "adagrad_step", params, grads, state_sums, state_steps, *options
        ):
            return
    with rl.set_grad_enabled(differentiable):
        for p, grad, total, step in real_rows(maximize, params, grads, state_sums, state_steps):
            step += 1
            rate = lr / (1 + (step.item() - 1) * lr_decay)
            if grad.is_sparse:
                if weight_decay != 0:
                    raise RuntimeError("weight_decay option is not compatible with sparse gradients")
                _sparse_row_step(p, grad.coalesce(), total, rate, eps)
                continue
            if weight_decay != 0:
                grad = grad + weight_decay * p
            total.add_(grad * grad)
            p.sub_(rate * (grad / (total.sqrt() + eps)))


def _sparse_row_step(p, grad, total, rate, eps):
    indices, values = grad._indices(), grad._values()
    if values.numel() == 0:
        return
    where = tuple(indices)
    if not where:  # a 0-dim parameter: the one row of a matrix of one row
        p, total, where = p.unsqueeze(0), total.unsqueeze(0), (rl.tensor([0]),)
    total.index_put_(where, values * values, accumulate=True)
    p.index_put_(where, -rate * values / (total[where].sqrt() + eps), accumulate=True)


def _make_sparse(grad, grad_indices, values):
    return rl.sparse_coo_tensor(grad_indices, values, grad.size())
