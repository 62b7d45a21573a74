"""The two operations of gradient scaling: unscaling with a look for overflow, and the choice of the next scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight as rl


def _any_overflow(grads: Sequence[rl.Tensor]) -> bool:
    """Whether an element is infinite or not a number: the largest magnitude tells, in one pass over all tensors."""
    largest = rl._C.ops["_optim.total_norm"](grads, math.inf)
    if largest:
        return not bool(largest[0].isfinite())
    return not all(bool(g.isfinite().all()) for g in grads)


def _amp_foreach_non_finite_check_and_unscale_(
    self: Sequence[rl.Tensor], found_inf: rl.Tensor, inv_scale: rl.Tensor
) -> None:
    """Multiplies tensors by inv_scale in place, and sets found_inf to 1 if an element was infinite or not a number."""
    name = "_amp_foreach_non_finite_check_and_unscale_"
    for what, tensor in (("inv_scale", inv_scale), ("found_inf", found_inf)):
        if tensor.numel() != 1:
            raise RuntimeError(f"{name}: {what} must be a 1-element tensor.")
        if tensor.dtype != rl.float32:
            raise RuntimeError(f"{name}: {what} must be a float tensor.")
    if not self:
        raise RuntimeError("Tensor list must have at least one tensor.")
    with rl.no_grad():
        if _any_overflow(self):
            found_inf.fill_(1.0)
        factor = inv_scale.item()
        if factor != 1.0:
            foreach: Any = rl
            foreach._foreach_mul_(self, factor)


def _amp_update_scale_(
    self: rl.Tensor,
    growth_tracker: rl.Tensor,
    found_inf: rl.Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> rl.Tensor:
    """Adapts the scale `self` and the count of steps without overflow, in place; returns the scale."""
    for what, tensor, dtype, kind in (
        ("growth_tracker", growth_tracker, rl.int32, "an int"),
        ("current_scale", self, rl.float32, "a float"),
        ("found_inf", found_inf, rl.float32, "a float"),
    ):
        if tensor.numel() != 1:
            raise RuntimeError(f"{what} must be a 1-element tensor.")
        if tensor.dtype != dtype:
            raise RuntimeError(f"{what} must be {kind} tensor.")
    with rl.no_grad():
        if found_inf.item():
            self.mul_(scale_backoff_factor)
            growth_tracker.zero_()
            return self
        steps = growth_tracker.item() + 1
        if steps == growth_interval:
            steps, grown = 0, self.item() * scale_growth_factor
            if grown <= rl.finfo(rl.float32).max:
                self.fill_(grown)
        growth_tracker.fill_(steps)
    return self
