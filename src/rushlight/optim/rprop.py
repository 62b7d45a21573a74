"""Rprop: step sizes of their own for each element, led by the signs of successive gradients."""

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

__all__ = ["Rprop", "rprop"]


class Rprop(StepwiseOptimizer):
    """Rprop: each element moves by its own step size against the sign of its gradient, whatever the gradient's size.

    While the sign stays the same the step size grows by etas[1]; when it changes, it falls by etas[0] and the
    element waits for one step. Meant for gradients of the whole data set, not of batches.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the first step size of every element. Default: 1e-2
        etas (tuple of 2 floats): the factors after a change of sign, and without. Default: (0.5, 1.2)
        step_sizes (tuple of 2 floats): the least and the largest step size. Default: (1e-6, 50)
        capturable (bool): keeps the step count on the device of its parameter. Default: False
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        maximize (bool): climbs along the gradient instead of descending. Default: False
        differentiable (bool): records the step for autograd, so that gradients pass through it. Default: False

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = optim.Rprop([w], lr=0.1)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.6360, -1.6360], requires_grad=True)
    """

    layout = ("lr", "etas", "step_sizes", "foreach", "maximize", "differentiable", "capturable")
    lists = ("prev", "step_size", "step")
    limits = ("etaminus", "etaplus", "step_size_min", "step_size_max")
    not_negative = ("lr",)

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(0.0 < etas[0] < 1.0 < etas[1], f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, locals())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        lr = number(group["lr"])
        size = rl.full_like(p, complex(lr, lr) if p.is_complex() else lr, memory_format=rl.preserve_format)
        return {"step": step_counter(p, group), "prev": zeros_like(p), "step_size": size}

    def _apply(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        limits = dict(zip(self.limits, (*group["etas"], *group["step_sizes"]), strict=True))
        flags = {name: group[name] for name in ("maximize", "differentiable")}
        super()._apply({**flags, **limits}, params, grads, states)


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of Rprop on lists of tensors."""
    lists = (params, grads, prevs, step_sizes, state_steps)
    options = (etaminus, etaplus, step_size_min, step_size_max, maximize)
    if not differentiable and run_fused("rprop_step", *lists, *options):
        return
    with rl.set_grad_enabled(differentiable):
        for p, grad, prev, size, step in rows(maximize, 0, *lists):
            step += 1
            agree = grad * prev
            flipped = agree < 0
            factor = rl.ones_like(size).masked_fill(agree > 0, etaplus).masked_fill(flipped, etaminus)
            size.copy_((size * factor).clamp(step_size_min, step_size_max))
            grad = rl.where(flipped, rl.zeros_like(grad), grad)
            p.sub_(grad.sign() * size)
            prev.copy_(grad)


Rprop.function = rprop
