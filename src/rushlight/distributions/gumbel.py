from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution of maxima, with P(x <= t) = exp(-exp(-(t - loc) / scale)).

    Args:
        loc (Tensor or float): the mode.
        scale (Tensor or float): above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Gumbel(torch.tensor(0.0), torch.tensor(1.0))
        >>> m.mean, m.cdf(torch.tensor(0.0))
        (tensor(0.5772), tensor(0.3679))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(
        self, loc: rl.Tensor | float, scale: rl.Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = rl.finfo(self.loc.dtype)
        base = Uniform(
            rl.full_like(self.loc, info.tiny),
            rl.full_like(self.loc, 1 - info.eps),
            validate_args=validate_args,
        )
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-rl.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return super().expand(batch_shape, new)

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        return -(z + (-z).exp() + self.scale.log())

    @property
    def mean(self) -> rl.Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> rl.Tensor:
        return self.loc

    @property
    def stddev(self) -> rl.Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> rl.Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> rl.Tensor:
        return self.scale.log() + (1 + euler_constant)
