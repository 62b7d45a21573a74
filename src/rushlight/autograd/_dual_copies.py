"""The forms of dual numbers' primitives that copy: torch._fw_primal_copy and torch._make_dual_copy."""

from __future__ import annotations

from typing import Any

from rushlight._C import Tensor
from rushlight._core.compose import public
from rushlight.autograd import forward_ad


@public
def _fw_primal_copy(input: Any, level: int) -> Any:
    """A copy of the value of a dual number, without its tangent."""
    primal = forward_ad.unpack_dual(input).primal if forward_ad.active() else input
    return primal.clone()


@public
def _make_dual_copy(primal: Any, tangent: Any, level: int) -> Tensor:
    """A dual number of a copy of `primal`; inside of a dual level."""
    return forward_ad.make_dual(primal.clone(), tangent, level=level)
