from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """The absolute value of a normal variable with mean 0.

    Args:
        scale (Tensor or float): the standard deviation of the normal distribution.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.HalfNormal(2.0)
        >>> m.mean, m.cdf(torch.tensor(2.0))
        (tensor(1.5958), tensor(0.6827))
    """

    base_dist: Normal
    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: rl.Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return super().expand(batch_shape, self._get_checked_instance(HalfNormal, _instance))

    @property
    def scale(self) -> rl.Tensor:
        return self.base_dist.scale

    @property
    def mean(self) -> rl.Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> rl.Tensor:
        return rl.zeros_like(self.scale)

    @property
    def variance(self) -> rl.Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
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
