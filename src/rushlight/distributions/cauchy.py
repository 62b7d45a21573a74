from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .distribution import Distribution

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The Cauchy distribution, with density 1 / (pi s (1 + ((x - loc) / s)^2)); it has no mean.

    Args:
        loc (Tensor or float): the median.
        scale (Tensor or float): s, half the width at half of the maximum.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Cauchy(0.0, 1.0)
        >>> m.log_prob(torch.tensor(0.0)), m.cdf(torch.tensor(1.0)), m.mean
        (tensor(-1.1447), tensor(0.7500), tensor(nan))
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
        made: Self = self._expanded(Cauchy, batch_shape, ("loc", "scale"), _instance=_instance)
        return made

    @property
    def mean(self) -> rl.Tensor:
        return rl.full_like(self.loc, float("nan"))

    @property
    def mode(self) -> rl.Tensor:
        return self.loc

    @property
    def variance(self) -> rl.Tensor:
        return rl.full_like(self.loc, float("inf"))

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + rl.empty(shape, dtype=self.loc.dtype, device=self.loc.device).cauchy_() * self.scale

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return -(math.pi * self.scale).log() - (z * z).log1p()

    def cdf(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        return 0.5 + ((value - self.loc) / self.scale).atan() / math.pi

    def icdf(self, value: rl.Tensor) -> rl.Tensor:
        return self.loc + self.scale * ((value - 0.5) * math.pi).tan()

    def entropy(self) -> rl.Tensor:
        return (self.scale * (4 * math.pi)).log()
