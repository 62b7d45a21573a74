from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .cauchy import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The absolute value of a Cauchy variable with median 0.

    Args:
        scale (Tensor or float): of the Cauchy distribution.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.HalfCauchy(1.0)
        >>> m.cdf(torch.tensor(1.0)), m.log_prob(torch.tensor(0.0)).exp()
        (tensor(0.5000), tensor(0.6366))
    """

    base_dist: Cauchy
    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: rl.Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    @property
    def scale(self) -> rl.Tensor:
        return self.base_dist.scale

    @property
    def mean(self) -> rl.Tensor:
        return rl.full_like(self.scale, math.inf)

    @property
    def mode(self) -> rl.Tensor:
        return rl.zeros_like(self.scale)

    @property
    def variance(self) -> rl.Tensor:
        return self.base_dist.variance

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        value = rl.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return rl.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        whole = self.base_dist
        return whole.cdf(value) * 2 - 1

    def entropy(self) -> rl.Tensor:
        return self.base_dist.entropy() - math.log(2)

    def icdf(self, prob: rl.Tensor) -> rl.Tensor:
        upper_half = 0.5 + prob / 2
        return self.base_dist.icdf(upper_half)
