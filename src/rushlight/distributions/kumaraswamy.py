from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution on [0, 1], near to Beta, with P(x <= t) = 1 - (1 - t^a)^b.

    Args:
        concentration1 (Tensor or float): a, above 0.
        concentration0 (Tensor or float): b, above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Kumaraswamy(torch.tensor(2.0), torch.tensor(3.0))
        >>> m.cdf(torch.tensor(0.5)), m.log_prob(torch.tensor(0.5))
        (tensor(0.5781), tensor(0.5232))
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        concentration1: rl.Tensor | float,
        concentration0: rl.Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        a, b = self.concentration1, self.concentration0
        base = Uniform(rl.zeros_like(a), rl.ones_like(a), validate_args=validate_args)
        # The inverse of the cdf: (1 - u^(1/b))^(1/a)
        steps = [PowerTransform(1 / b), AffineTransform(1.0, -1.0), PowerTransform(1 / a)]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        for name in self.arg_constraints:
            setattr(new, name, getattr(self, name).expand(batch_shape))
        return super().expand(batch_shape, new)

    def _moment(self, n: int) -> rl.Tensor:
        a, b = self.concentration1, self.concentration0
        x = 1 + n / a
        return b * rl.exp(rl.lgamma(x) + rl.lgamma(b) - rl.lgamma(x + b))

    @property
    def mean(self) -> rl.Tensor:
        return self._moment(1)

    @property
    def mode(self) -> rl.Tensor:
        # ((a - 1) / (a b - 1))^(1/a), inside the interval only for a, b >= 1
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return mode.masked_fill((a < 1) | (b < 1), float("nan"))

    @property
    def variance(self) -> rl.Tensor:
        return self._moment(2) - rl.pow(self.mean, 2)

    def entropy(self) -> rl.Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = rl.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - rl.log(a) - rl.log(b)
