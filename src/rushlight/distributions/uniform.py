from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .distribution import Distribution
from .utils import like

__all__ = ["Uniform"]


class Uniform(Distribution):
    """The uniform distribution on [low, high), with density 1 / (high - low).

    Args:
        low (Tensor or float): the lower end.
        high (Tensor or float): the upper end, above low.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Uniform(0.0, 4.0)
        >>> m.mean, m.log_prob(torch.tensor(1.0)).exp(), m.cdf(torch.tensor(1.0))
        (tensor(2.), tensor(0.2500), tensor(0.2500))
    """

    high: rl.Tensor
    low: rl.Tensor

    has_rsample = True

    def __init__(
        self, low: rl.Tensor | float, high: rl.Tensor | float, validate_args: bool | None = None
    ) -> None:
        self._set_parameters(validate_args, low=low, high=high)

    @property
    def arg_constraints(self) -> Any:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        made: Self = self._expanded(Uniform, batch_shape, ("low", "high"), _instance=_instance)
        return made

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> rl.Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> rl.Tensor:
        return rl.nan * self.high

    @property
    def stddev(self) -> rl.Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> rl.Tensor:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        return self.low + rl.rand(shape, **like(self.low)) * (self.high - self.low)

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        outside = ~((self.low <= value) & (value < self.high))
        density = (self.high - self.low).log().neg()
        return density.expand(outside.shape).masked_fill(outside, -math.inf)

    def cdf(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: rl.Tensor) -> rl.Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> rl.Tensor:
        return rl.log(self.high - self.low)
