from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from rushlight import Tensor

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """A point of the simplex: normal variables sent there by StickBreakingTransform.

    Args:
        loc (Tensor or float): (..., K), the means; the points have K + 1 elements.
        scale (Tensor or float): (..., K), the standard deviations.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.LogisticNormal(torch.zeros(2), torch.ones(2))
        >>> m.sample().sum(), m.log_prob(torch.full((3,), 1 / 3))
        (tensor(1.), tensor(1.4580))
    """

    base_dist: Any
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self) -> Tensor:
        out: Tensor = self.base_dist.base_dist.loc
        return out

    @property
    def scale(self) -> Tensor:
        out: Tensor = self.base_dist.base_dist.scale
        return out
