from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """The Poisson distribution: P(k) = rate^k exp(-rate) / k!, for k = 0, 1, 2, ...

    Args:
        rate (Tensor or float): the mean, at least 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Poisson(torch.tensor(2.0))
        >>> m.variance, m.log_prob(torch.tensor(0.0))
        (tensor(2.), tensor(-2.))
    """

    rate: rl.Tensor

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: rl.Tensor | float, validate_args: bool | None = None) -> None:
        self._set_parameters(validate_args, rate=rate)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        made: Self = self._expanded(Poisson, batch_shape, ("rate",), _instance=_instance)
        return made

    @property
    def mean(self) -> rl.Tensor:
        return self.rate

    @property
    def mode(self) -> rl.Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> rl.Tensor:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        with rl.no_grad():
            return rl.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return rl.xlogy(value, rate) - (rate + rl.lgamma(1 + value))

    @property
    def _natural_params(self) -> tuple[rl.Tensor, ...]:
        return (rl.log(self.rate),)

    def _log_normalizer(self, x: rl.Tensor) -> rl.Tensor:
        return rl.exp(x)
