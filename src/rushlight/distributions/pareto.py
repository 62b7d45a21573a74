from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from rushlight import Tensor

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """The Pareto distribution, with density proportional to x^-(alpha + 1) from scale on.

    Args:
        scale (Tensor or float): the least value, above 0.
        alpha (Tensor or float): the exponent, above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Pareto(torch.tensor(1.0), torch.tensor(3.0))
        >>> m.mean, m.cdf(torch.tensor(2.0))
        (tensor(1.5000), tensor(0.8750))
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(
        self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._get_checked_instance(Pareto, _instance)
        new.scale, new.alpha = self.scale.expand(batch_shape), self.alpha.expand(batch_shape)
        return super().expand(batch_shape, new)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # infinite up to there
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)  # infinite up to there
        return a / (a - 2) * (self.scale / (a - 1)) ** 2

    def entropy(self) -> Tensor:
        return self.scale.log() - self.alpha.log() + 1 / self.alpha + 1

    support = constraints.dependent_property(
        lambda self: constraints.greater_than_eq(self.scale), is_discrete=False, event_dim=0
    )
