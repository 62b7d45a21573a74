from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .distribution import Distribution

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution, with density exp(-|x - loc| / scale) / (2 scale).

    Args:
        loc (Tensor or float): the mean.
        scale (Tensor or float): above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Laplace(0.0, 1.0)
        >>> m.variance, m.log_prob(torch.tensor(0.0)).exp(), m.cdf(torch.tensor(0.0))
        (tensor(2.), tensor(0.5000), tensor(0.5000))
    """

    loc: rl.Tensor
    scale: rl.Tensor

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, loc: rl.Tensor | float, scale: rl.Tensor | float, validate_args: bool | None = None
    ) -> None:
        self._set_parameters(validate_args, loc=loc, scale=scale)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        made: Self = self._expanded(Laplace, batch_shape, ("loc", "scale"), _instance=_instance)
        return made

    @property
    def mean(self) -> rl.Tensor:
        return self.loc

    @property
    def mode(self) -> rl.Tensor:
        return self.loc

    @property
    def variance(self) -> rl.Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> rl.Tensor:
        return (2**0.5) * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        u = self.loc.new_empty(shape).uniform_(rl.finfo(self.loc.dtype).eps - 1, 1)
        distance = rl.log1p(-u.abs()).neg()
        return self.loc + self.scale * (u.sign() * distance)

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        distance = (value - self.loc).abs() / self.scale
        return -(2 * self.scale).log() - distance

    def cdf(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return 0.5 - rl.expm1(-z.abs()) * z.sign() / 2

    def icdf(self, value: rl.Tensor) -> rl.Tensor:
        side = 2 * value - 1  # -1 ... 1
        return self.loc - self.scale * side.sign() * rl.log1p(-side.abs())

    def entropy(self) -> rl.Tensor:
        return 1 + rl.log(2 * self.scale)
