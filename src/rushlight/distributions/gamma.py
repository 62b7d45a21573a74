from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Gamma"]


def _standard_gamma(concentration: rl.Tensor) -> rl.Tensor:
    return rl._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    """The gamma distribution, with density proportional to x^(c - 1) exp(-rate * x) on x > 0.

    Args:
        concentration (Tensor or float): c, the shape, above 0.
        rate (Tensor or float): the inverse of the scale, above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Gamma(2.0, 4.0)
        >>> m.mean, m.variance, m.log_prob(torch.tensor(0.5))
        (tensor(0.5000), tensor(0.1250), tensor(0.0794))
    """

    concentration: rl.Tensor
    rate: rl.Tensor

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, concentration: rl.Tensor | float, rate: rl.Tensor | float, validate_args: bool | None = None
    ) -> None:
        self._set_parameters(validate_args, concentration=concentration, rate=rate)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        made: Self = self._expanded(Gamma, batch_shape, ("concentration", "rate"), _instance=_instance)
        return made

    @property
    def mean(self) -> rl.Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> rl.Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> rl.Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate
        value.detach().clamp_(min=rl.finfo(value.dtype).tiny)  # a draw of exactly 0 has no density
        return value

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        value = rl.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        c, rate = self.concentration, self.rate
        normalizer = c.lgamma() - rl.xlogy(c, rate)
        return rl.xlogy(c - 1, value) - rate * value - normalizer

    def cdf(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        return rl.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> rl.Tensor:
        c = self.concentration
        return c - rl.log(self.rate) + rl.lgamma(c) + (1.0 - c) * rl.digamma(c)

    @property
    def _natural_params(self) -> tuple[rl.Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        return rl.lgamma(x + 1) + (x + 1) * rl.log(-y.reciprocal())
