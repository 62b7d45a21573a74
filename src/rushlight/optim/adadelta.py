"""Adadelta: rates from the ratio of past updates to past gradients."""

from __future__ import annotations

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

__all__ = ["Adadelta", "adadelta"]


class Adadelta(StepwiseOptimizer):
    """p -= lr * delta, delta = grad * sqrt(acc + eps) / sqrt(v + eps); v, acc: running means of grad^2 and delta^2."""

    layout = ("lr", "rho", "eps", "weight_decay", "maximize", "capturable", "foreach", "differentiable")
    lists = ("square_avg", "acc_delta", "step")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(0.0 <= rho <= 1.0, f"Invalid rho value: {rho}")
        super().__init__(params, locals())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {"step": step_counter(p, group), "square_avg": zeros_like(p), "acc_delta": zeros_like(p)}


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step of Adadelta on lists of tensors."""
    lists = (params, grads, square_avgs, acc_deltas, state_steps)
    if not differentiable:
        lr = number(lr)
        if run_fused("adadelta_step", *lists, lr, rho, eps, weight_decay, maximize):
            return
    with rl.set_grad_enabled(differentiable):
        for p, grad, v, acc, step in rows(maximize, weight_decay, *lists):
            step += 1
            v.mul_(rho).add_((1 - rho) * grad * grad)
            delta = (acc + eps).sqrt() / (v + eps).sqrt() * grad
            acc.mul_(rho).add_((1 - rho) * delta * delta)
            p.sub_(lr * delta)


Adadelta.function = adadelta
