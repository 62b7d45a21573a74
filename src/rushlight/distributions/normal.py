from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .exp_family import ExponentialFamily
from .utils import _standard_normal

__all__ = ["Normal"]

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


class Normal(ExponentialFamily):
    """The normal distribution, with density exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi)).

    rsample() draws loc + scale * z, so gradients reach both parameters.

    Args:
        loc (Tensor or float): the mean.
        scale (Tensor or float): the standard deviation, above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Normal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
        >>> m.sample((3,)).shape, m.log_prob(torch.tensor(0.0)), m.cdf(torch.tensor(1.0))
        (torch.Size([3, 2]), tensor([-0.9189, -1.7371]), tensor([0.8413, 0.5000]))
        >>> mean = torch.zeros(2, requires_grad=True)
        >>> torch.distributions.Normal(mean, 1.0).rsample().sum().backward()
        >>> mean.grad
        tensor([1., 1.])
    """

    loc: rl.Tensor
    scale: rl.Tensor

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, loc: rl.Tensor | float, scale: rl.Tensor | float, validate_args: bool | None = None
    ) -> None:
        self._set_parameters(validate_args, loc=loc, scale=scale)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        made: Self = self._expanded(Normal, batch_shape, ("loc", "scale"), _instance=_instance)
        return made

    @property
    def mean(self) -> rl.Tensor:
        return self.loc

    @property
    def mode(self) -> rl.Tensor:
        return self.loc

    @property
    def stddev(self) -> rl.Tensor:
        return self.scale

    @property
    def variance(self) -> rl.Tensor:
        return self.stddev.pow(2)

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        with rl.no_grad():
            return rl.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + _standard_normal(shape, self.loc.dtype, self.loc.device) * self.scale

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return -0.5 * z * z - self.scale.log() - _LOG_ROOT_2PI

    def cdf(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return 0.5 * (1 + (z / math.sqrt(2)).erf())

    def icdf(self, value: rl.Tensor) -> rl.Tensor:
        z = math.sqrt(2) * (2 * value - 1).erfinv()
        return self.loc + self.scale * z

    def entropy(self) -> rl.Tensor:
        return self.scale.log() + (0.5 + _LOG_ROOT_2PI)

    @property
    def _natural_params(self) -> tuple[rl.Tensor, ...]:
        precision = 1 / (self.scale * self.scale)
        return precision * self.loc, -precision / 2

    def _log_normalizer(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        return 0.5 * (rl.log(-math.pi / y) - x * x / (2 * y))
