from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution, with density proportional to (1 + z^2 / df)^(-(df + 1) / 2), z = (x - loc) / scale.

    Args:
        df (Tensor or float): the degrees of freedom, above 0.
        loc (Tensor or float): the centre. Default: 0.0
        scale (Tensor or float): above 0. Default: 1.0
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.StudentT(torch.tensor(4.0))
        >>> m.variance, m.log_prob(torch.tensor(0.0))
        (tensor(2.), tensor(-0.9808))
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: rl.Tensor | float,
        loc: rl.Tensor | float = 0.0,
        scale: rl.Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._expanded(StudentT, batch_shape, ("df", "loc", "scale"), _instance=_instance)
        new._chi2 = self._chi2.expand(batch_shape)
        made: Self = new
        return made

    @property
    def mean(self) -> rl.Tensor:
        return self.loc.masked_fill(self.df <= 1, float("nan"))

    @property
    def mode(self) -> rl.Tensor:
        return self.loc

    @property
    def variance(self) -> rl.Tensor:
        variance = self.scale.pow(2) * self.df / (self.df - 2)
        variance = variance.masked_fill(self.df <= 2, float("inf"))
        return variance.masked_fill(self.df <= 1, float("nan"))

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, self.df.dtype, self.df.device)
        spread = self._chi2.rsample(sample_shape) / self.df
        return self.loc + self.scale * normal * spread.rsqrt()

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        half, more = self.df / 2, (self.df + 1) / 2
        constant = half.lgamma() - more.lgamma() + 0.5 * (math.pi * self.df).log() + self.scale.log()
        return -more * (z * z / self.df).log1p() - constant

    def entropy(self) -> rl.Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = rl.lgamma(half) + math.lgamma(0.5) - rl.lgamma(more)
        return (
            self.scale.log() + more * (rl.digamma(more) - rl.digamma(half)) + 0.5 * self.df.log() + log_beta
        )
