from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .distribution import Distribution

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution: P(x > t) = (1 + c (t - loc) / scale)^(-1 / c) from loc on.

    Args:
        loc (Tensor or float): the threshold.
        scale (Tensor or float): above 0.
        concentration (Tensor or float): c; 0 is an exponential tail, below 0 the support ends at loc - scale /
            c.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.GeneralizedPareto(torch.tensor(1.0), torch.tensor(2.0), torch.tensor(0.25))
        >>> m.mean, m.cdf(torch.tensor(3.0))
        (tensor(3.6667), tensor(0.5904))
    """

    loc: rl.Tensor
    scale: rl.Tensor
    concentration: rl.Tensor

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self,
        loc: rl.Tensor | float,
        scale: rl.Tensor | float,
        concentration: rl.Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self._set_parameters(validate_args, loc=loc, scale=scale, concentration=concentration)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        names = ("loc", "scale", "concentration")
        made: Self = self._expanded(GeneralizedPareto, batch_shape, names, _instance=_instance)
        return made

    def _z(self, x: rl.Tensor) -> rl.Tensor:
        return (x - self.loc) / self.scale

    def _split(self) -> tuple[rl.Tensor, rl.Tensor]:
        """(is exponential, concentration with ones there)."""
        zero = rl.isclose(self.concentration, rl.zeros_like(self.concentration))
        return zero, rl.where(zero, rl.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rl.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        z = self._z(value)
        zero, c = self._split()
        bent = -(1 / c + 1) * rl.log1p(c * z)
        return -self.scale.log() + rl.where(zero, -z, bent)

    def log_survival_function(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        z = self._z(value)
        zero, c = self._split()
        return rl.where(zero, -z, -rl.log1p(c * z) / c)

    def log_cdf(self, value: rl.Tensor) -> rl.Tensor:
        return rl.log1p(-rl.exp(self.log_survival_function(value)))

    def cdf(self, value: rl.Tensor) -> rl.Tensor:
        return rl.exp(self.log_cdf(value))

    def icdf(self, value: rl.Tensor) -> rl.Tensor:
        zero, c = self._split()
        log_rest = rl.log1p(-value)
        return self.loc + self.scale * rl.where(zero, -log_rest, rl.expm1(-c * log_rest) / c)

    @property
    def mean(self) -> rl.Tensor:
        valid = self.concentration < 1
        c = rl.where(valid, self.concentration, 0.5)
        return rl.where(valid, self.loc + self.scale / (1 - c), math.inf)

    @property
    def variance(self) -> rl.Tensor:
        valid = self.concentration < 0.5
        c = rl.where(valid, self.concentration, 0.25)
        return rl.where(valid, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.inf)

    def entropy(self) -> rl.Tensor:
        return rl.log(self.scale) + self.concentration + 1

    @property
    def mode(self) -> rl.Tensor:
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        bounded = self.concentration < 0
        c = rl.where(bounded, self.concentration, -1.0)
        upper = rl.where(bounded, self.loc - self.scale / c, math.inf)
        return constraints.interval(self.loc, upper)
