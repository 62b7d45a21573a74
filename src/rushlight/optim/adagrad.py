"""Adagrad: each element's rate falls with the sum of its squared gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.optim._stepwise import StepwiseOptimizer, number, rows, run_fused, step_dtype

__all__ = ["Adagrad", "adagrad"]


class Adagrad(StepwiseOptimizer):
    """Adagrad: s += g^2; p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps).

    Each element's rate falls with the sum of its own squared gradients, so rare features keep a high one.
    Sparse gradients change their own rows only.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 1e-2
        lr_decay (float): how fast lr falls with the number of steps t. Default: 0
        weight_decay (float): adds weight_decay * p to the gradient. Default: 0
        initial_accumulator_value (float): what s starts from. Default: 0
        eps (float): keeps the denominator from zero. Default: 1e-10
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        maximize (bool): climbs along the gradient instead of descending. Default: False
        differentiable (bool): records the step for autograd, so that gradients pass through it. Default: False
        fused (bool): True insists on floating point parameters; the result is the same. Default: None

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = optim.Adagrad([w], lr=0.5)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.1564, -0.9836], requires_grad=True)
    """

    layout = (
        "lr",
        "lr_decay",
        "eps",
        "weight_decay",
        "initial_accumulator_value",
        "foreach",
        "maximize",
        "differentiable",
        "fused",
    )
    refuses_sparse = None
    lists = ("sum", "step")
    not_negative = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self._start(p, group))

    def share_memory(self) -> None:
        """Moves the state to memory shared between processes (Hogwild training)."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        value = group["initial_accumulator_value"]
        if p.is_complex():
            value = complex(value, value)
        return {
            "step": rl.tensor(0.0, dtype=step_dtype(group["fused"])),
            "sum": rl.full_like(p, value, memory_format=rl.preserve_format),
        }


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of Adagrad on lists of tensors; a sparse gradient changes its own rows only."""
    lists = (params, grads, state_sums, state_steps)
    sparse = has_sparse_grad or any(g.is_sparse for g in grads)
    if sparse and weight_decay != 0:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    if not differentiable:
        lr = number(lr)
        if not sparse and run_fused("adagrad_step", *lists, lr, lr_decay, eps, weight_decay, maximize):
            return
    with rl.set_grad_enabled(differentiable):
        for p, grad, total, step in rows(maximize, weight_decay, *lists):
            step += 1
            rate = lr / (1 + (step.item() - 1) * lr_decay)
            if grad.is_sparse:
                _sparse_row_step(p, grad.coalesce(), total, rate, eps)
                continue
            total.add_(grad * grad)
            p.sub_(rate * (grad / (total.sqrt() + eps)))


Adagrad.function = adagrad


def _sparse_row_step(p: Tensor, grad: Tensor, total: Tensor, rate: float, eps: float) -> None:
    indices, values = grad._indices(), grad._values()
    if values.numel() == 0:
        return
    where = tuple(indices)
    if not where:  # a 0-dim parameter: the one row of a matrix of one row
        p, total, where = p.unsqueeze(0), total.unsqueeze(0), (rl.tensor([0]),)
    total.index_put_(where, values * values, accumulate=True)
    p.index_put_(where, -rate * values / (total[where].sqrt() + eps), accumulate=True)


def _make_sparse(grad: Tensor, grad_indices: Tensor, values: Tensor) -> Tensor:
    return rl.sparse_coo_tensor(grad_indices, values, grad.size())
