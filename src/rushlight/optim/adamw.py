"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight._C import Tensor
from rushlight.optim.adam import Adam, adam

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """Adam whose weight decay acts on the parameters themselves: p *= 1 - lr * weight_decay before each step.

    The decay is not divided by sqrt(v_hat), so it is the same for all parameters; see optim.Adam for the step.

    Args:
        params (iterable): parameters, (name, parameter) pairs, or dicts of a group's "params" and its own
            options.
        lr (float or Tensor): the learning rate. Default: 1e-3
        betas (tuple of 2 floats): decay rates of m and v. Default: (0.9, 0.999)
        eps (float): keeps the denominator from zero. Default: 1e-8
        weight_decay (float): the share that each step takes off, times lr. Default: 1e-2
        amsgrad (bool): divides by the largest v seen so far instead of the present one. Default: False
        maximize (bool): climbs along the gradient instead of descending. Default: False
        foreach (bool): accepted for PyTorch's sake; all tensors are always stepped together. Default: None
        capturable (bool): keeps the step count on the device of its parameter. Default: False
        differentiable (bool): records the step for autograd, so that gradients pass through it. Default: False
        fused (bool): True insists on floating point parameters; the result is the same. Default: None

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = optim.AdamW([w], lr=0.1, weight_decay=0.5)
        >>> for _ in range(3):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.5750, -1.4310], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        options = locals()
        options = {name: options[name] for name in self.layout if name in options}
        super().__init__(params, **options, decoupled_weight_decay=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Files written before the option existed were written by AdamW all the same.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def adamw(*args: Any, **kwargs: Any) -> Any:
    """One step of AdamW on lists of tensors, arguments as for `adam`."""
    return adam(*args, **kwargs, decoupled_weight_decay=True)  # type: ignore[misc]
