"""Adafactor (Shazeer and Stern): second moments of a matrix kept as one row and one column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.optim._stepwise import (
    StepwiseOptimizer,
    check,
    number,
    options_for,
    run_fused,
    step_dtype,
    zeros_like,
)

__all__ = ["Adafactor", "adafactor"]


class Adafactor(StepwiseOptimizer):
    """Adafactor: a step relative to the parameter's size; of a matrix, g^2 is averaged by row and by column.

    At step t: v = (1 - t^beta2_decay) v + t^beta2_decay g^2, its matrix estimated by the outer product of row
    and column means; u = g / sqrt(v) is divided by max(1, rms(u) / d), and p -= max(eps2, rms(p)) * min(lr, 1 /
    sqrt(t)) * u. Memory for a matrix is rows + columns instead of rows * columns. Complex parameters are
    refused.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 1e-2
        beta2_decay (float): the exponent, at most 0, by which averaging grows longer. Default: -0.8
        eps (tuple): eps1, whose square is the least v (None: the epsilon of the type), and eps2. Default:
            (None, 1e-3)
        d (float): the root mean square from which an update is scaled down, at least 1. Default: 1.0
        weight_decay (float): multiplies p by 1 - lr * weight_decay. Default: 0.0
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        maximize (bool): climbs along the gradient instead of descending. Default: False

    Example:
        >>> w = torch.ones(4, 8, requires_grad=True)
        >>> optimizer = optim.Adafactor([w], lr=0.1)
        >>> (w**2).sum().backward()
        >>> optimizer.step()
        >>> w[0, 0]
        tensor(0.9000, grad_fn=<SelectBackward0>)
        >>> sum(v.numel() for v in optimizer.state[w].values())  # the step count, a row and a column
        13
    """

    layout = ("lr", "beta2_decay", "eps", "d", "weight_decay", "foreach", "maximize")
    not_negative = ()

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, rl.Tensor):
            check(lr.numel() == 1, "Tensor lr must be 1-element")
        check(lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        check(beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}")
        check(eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}")
        check(eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}")
        check(d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}")
        check(weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, locals())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state = {"step": rl.tensor(0.0, dtype=step_dtype())}
        assert p.grad is not None  # step() takes those with a gradient
        if p.grad.dim() > 1:
            state["row_var"] = p.grad.new_zeros((*p.grad.shape[:-1], 1))  # (..., R, 1)
            state["col_var"] = p.grad.new_zeros((*p.grad.shape[:-2], 1, p.grad.shape[-1]))  # (..., 1, C)
        else:
            state["variance"] = zeros_like(p.grad)
        return state

    def _apply(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        names = ("row_var", "col_var", "variance")  # matrices have the first two, vectors the third
        rows, columns, variances = ([state.get(name) for state in states] for name in names)
        steps = [state["step"] for state in states]
        eps1, eps2 = group["eps"]
        adafactor(
            params,
            grads,
            rows,
            columns,
            variances,
            steps,
            **options_for(adafactor, group),
            eps1=eps1,
            eps2=eps2,
        )


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of Adafactor on lists of tensors; a matrix has entries in row_vars and col_vars, others in variances."""
    firsts = [v if row is None else row for row, v in zip(row_vars, variances, strict=True)]
    seconds = [v if col is None else col for col, v in zip(col_vars, variances, strict=True)]
    floor = -1.0 if eps1 is None else eps1  # negative: the epsilon of each parameter's type
    options = (number(lr), beta2_decay, floor, eps2, d, weight_decay, maximize)
    run_fused("adafactor_step", params, grads, firsts, seconds, state_steps, *options)
