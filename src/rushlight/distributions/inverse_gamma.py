from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The inverse of a gamma variable, with density proportional to x^(-c - 1) exp(-rate / x).

    Args:
        concentration (Tensor or float): c, above 0.
        rate (Tensor or float): above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.InverseGamma(torch.tensor(3.0), torch.tensor(4.0))
        >>> m.mean, m.log_prob(torch.tensor(1.0))
        (tensor(2.), tensor(-0.5343))
    """

    base_dist: Gamma
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(
        self, concentration: rl.Tensor | float, rate: rl.Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return super().expand(batch_shape, self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self) -> rl.Tensor:
        return self.base_dist.concentration

    @property
    def rate(self) -> rl.Tensor:
        return self.base_dist.rate

    @property
    def mean(self) -> rl.Tensor:
        result = self.rate / (self.concentration - 1)
        return rl.where(self.concentration > 1, result, rl.inf)

    @property
    def mode(self) -> rl.Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> rl.Tensor:
        c = self.concentration
        result = self.rate.square() / ((c - 1).square() * (c - 2))
        return rl.where(c > 2, result, rl.inf)

    def entropy(self) -> rl.Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()
