"""Adam for sparse gradients: only the elements that a gradient names are touched."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.optim._stepwise import StepwiseOptimizer, check, number, zeros_like

__all__ = ["SparseAdam"]


class SparseAdam(StepwiseOptimizer):
    """Adam for sparse gradients: means and parameters change only where the gradient has entries.

    The formula is that of optim.Adam; elements that a gradient does not name keep their means as they are,
    undecayed. It is meant for nn.Embedding(sparse=True).

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 1e-3
        betas (tuple of 2 floats): decay rates of m and v. Default: (0.9, 0.999)
        eps (float): keeps the denominator from zero. Default: 1e-8
        maximize (bool): climbs along the gradient instead of descending. Default: False

    Raises:
        RuntimeError: a gradient is dense.

    Example:
        >>> table = nn.Embedding(3, 2, sparse=True)
        >>> before = table.weight.detach().clone()
        >>> optimizer = optim.SparseAdam(table.parameters(), lr=0.1)
        >>> table(torch.tensor([1])).sum().backward()
        >>> optimizer.step()
        >>> table.weight.detach() - before
        tensor([[ 0.0000,  0.0000],
                [-0.1000, -0.1000],
                [ 0.0000,  0.0000]])
    """

    layout = ("lr", "betas", "eps", "maximize")
    refuses_sparse = None
    scalar_state = ()
    lists = ("exp_avg", "exp_avg_sq", "step")
    not_negative = ("lr", "eps")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, locals())
        check(lr > 0.0, f"Invalid learning rate: {lr}")
        check(eps > 0.0, f"Invalid epsilon value: {eps}")
        sparse, complexes = [], []
        for i, group in enumerate(self.param_groups):
            for j, p in enumerate(group["params"]):
                if p.is_sparse:
                    sparse.append([i, j])
                if p.is_complex():
                    complexes.append([i, j])
        check(not sparse, f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        check(
            not complexes,
            f"Complex params at indices {complexes}: SparseAdam does not support complex parameters",
        )

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def _apply(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        if not all(grad.is_sparse for grad in grads):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        for state in states:
            state["step"] += 1
        super()._apply(group, params, grads, states)


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """One step of SparseAdam on lists of tensors; the step counts are scalars, raised by the caller."""
    lr = number(lr)
    with rl.no_grad():
        for p, grad, m, v, t in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True):
            grad = grad.coalesce()  # the formula is not linear: entries of one index are added up first
            values = -grad._values() if maximize else grad._values()
            if values.numel() == 0:
                continue
            where = tuple(grad._indices())
            if not where:  # a 0-dim parameter: the one row of a matrix of one row
                p, m, v, where = p.unsqueeze(0), m.unsqueeze(0), v.unsqueeze(0), (rl.tensor([0]),)
            new_m = m[where].lerp(values, 1 - beta1)
            new_v = v[where].lerp(values * values, 1 - beta2)
            m.index_put_(where, new_m)
            v.index_put_(where, new_v)
            rate = lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)
            p.index_put_(where, -rate * new_m / (new_v.sqrt() + eps), accumulate=True)


SparseAdam.function = sparse_adam
