from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """The exponential distribution, with density rate * exp(-rate * x) on x >= 0.

    Args:
        rate (Tensor or float): events in a unit of time, above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Exponential(2.0)
        >>> m.mean, m.log_prob(torch.tensor(0.0)), m.icdf(torch.tensor(0.5))
        (tensor(0.5000), tensor(0.6931), tensor(0.3466))
    """

    rate: rl.Tensor

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: rl.Tensor | float, validate_args: bool | None = None) -> None:
        self._set_parameters(validate_args, rate=rate)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        made: Self = self._expanded(Exponential, batch_shape, ("rate",), _instance=_instance)
        return made

    @property
    def mean(self) -> rl.Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> rl.Tensor:
        return rl.zeros_like(self.rate)

    @property
    def stddev(self) -> rl.Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> rl.Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        return rl.empty(shape, dtype=self.rate.dtype, device=self.rate.device).exponential_() / self.rate

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        return 1 - rl.exp(-self.rate * value)

    def icdf(self, value: rl.Tensor) -> rl.Tensor:
        return -rl.log1p(-value) / self.rate

    def entropy(self) -> rl.Tensor:
        return 1.0 - rl.log(self.rate)

    @property
    def _natural_params(self) -> tuple[rl.Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: rl.Tensor) -> rl.Tensor:
        return -rl.log(-x)
