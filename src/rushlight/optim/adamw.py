"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight._C import Tensor
from rushlight.optim.adam import Adam, adam

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """Adam whose weight decay multiplies the parameters by 1 - lr * weight_decay, apart from the gradient."""

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
