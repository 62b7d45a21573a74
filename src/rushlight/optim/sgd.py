"""Stochastic gradient descent, with momentum (Sutskever's form: the rate multiplies the velocity)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.optim._stepwise import StepwiseOptimizer, check, number, options_for, run_fused, zeros_like

__all__ = ["SGD", "sgd"]


class SGD(StepwiseOptimizer):
    """Stochastic gradient descent: p -= lr * g, with momentum p -= lr * buf, buf = momentum * buf + (1 - dampening) * g.

    The first step takes the gradient itself as buf, undamped. With nesterov the step is along g + momentum *
    buf. Sparse gradients are accepted.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 1e-3
        momentum (float): how much of buf each step keeps. Default: 0
        dampening (float): how much of the gradient is left out of buf. Default: 0
        weight_decay (float): adds weight_decay * p to the gradient. Default: 0
        nesterov (bool): looks ahead along buf; needs a momentum and no dampening. Default: False
        maximize (bool): climbs along the gradient instead of descending. Default: False
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        differentiable (bool): records the step for autograd, so that gradients pass through it. Default: False
        fused (bool): True insists on floating point parameters; the result is the same. Default: None

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = optim.SGD([w], lr=0.1, momentum=0.9)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.0620, -0.1240], requires_grad=True)
    """

    layout = (
        "lr",
        "momentum",
        "dampening",
        "weight_decay",
        "nesterov",
        "maximize",
        "foreach",
        "differentiable",
        "fused",
    )
    refuses_sparse = None
    scalar_state = ()
    not_negative = ("lr", "momentum", "weight_decay")

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check(
            not nesterov or (momentum > 0 and dampening == 0),
            "Nesterov momentum requires a momentum and zero dampening",
        )
        super().__init__(params, locals())

    def _start(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _remembers(self, group: dict[str, Any]) -> bool:
        return bool(group["momentum"] != 0)

    def _apply(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        buffers = [state.get("momentum_buffer") for state in states]
        options = options_for(sgd, group)
        sgd(params, grads, buffers, **options, _differentiable=group["differentiable"])
        for state, buffer in zip(states, buffers, strict=False):
            state["momentum_buffer"] = buffer


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    _differentiable: bool = False,
) -> None:
    """One step of SGD on lists of tensors; a buffer that is None starts as the first gradient, undamped."""
    fresh = [int(buffer is None) for buffer in momentum_buffer_list]
    if 1 in fresh:
        for i, new in enumerate(fresh):
            if new:
                momentum_buffer_list[i] = zeros_like(params[i])
    if not _differentiable:
        lr, weight_decay = number(lr), number(weight_decay)
        options = (lr, momentum, dampening, weight_decay, nesterov, maximize)
        if run_fused("sgd_step", params, d_p_list, momentum_buffer_list, fresh, *options):
            return
    with rl.set_grad_enabled(_differentiable):
        for i, (p, grad) in enumerate(zip(params, d_p_list, strict=True)):
            if maximize:
                grad = -grad
            if isinstance(weight_decay, rl.Tensor) or weight_decay != 0:
                grad = grad + weight_decay * p
            if momentum != 0:
                buf = momentum_buffer_list[i]
                assert buf is not None  # made above
                if fresh[i]:
                    buf.add_(grad)
                else:
                    buf.mul_(momentum).add_(grad, alpha=1 - dampening)
                grad = grad + momentum * buf if nesterov else buf
            if isinstance(lr, rl.Tensor):
                p.sub_(lr * grad)
            else:
                p.add_(grad, alpha=-lr)
