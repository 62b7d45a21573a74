from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution, with P(x > t) = exp(-(t / scale)^c) on t >= 0.

    Args:
        scale (Tensor or float): above 0.
        concentration (Tensor or float): c, the shape, above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Weibull(torch.tensor(2.0), torch.tensor(1.0))
        >>> m.mean, m.cdf(torch.tensor(2.0))
        (tensor(2.), tensor(0.6321))
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(
        self, scale: rl.Tensor | float, concentration: rl.Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(rl.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._steps(), validate_args=validate_args)

    def _steps(self) -> list[Any]:
        self.concentration_reciprocal = 1 / self.concentration
        return [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._get_checked_instance(Weibull, _instance)
        for name in self.arg_constraints:
            setattr(new, name, getattr(self, name).expand(batch_shape))
        super(Weibull, new).__init__(self.base_dist.expand(batch_shape), new._steps(), validate_args=False)
        new._validate_args = self._validate_args
        made: Self = new
        return made

    @property
    def mean(self) -> rl.Tensor:
        return self.scale * rl.exp(rl.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> rl.Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> rl.Tensor:
        r = self.concentration_reciprocal
        return self.scale.pow(2) * (rl.exp(rl.lgamma(1 + 2 * r)) - rl.exp(2 * rl.lgamma(1 + r)))

    def entropy(self) -> rl.Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + rl.log(self.scale * r) + 1
