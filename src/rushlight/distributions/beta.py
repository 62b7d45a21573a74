from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The beta distribution on [0, 1], with density proportional to x^(a - 1) (1 - x)^(b - 1).

    Args:
        concentration1 (Tensor or float): a, above 0.
        concentration0 (Tensor or float): b, above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Beta(2.0, 6.0)
        >>> m.mean, m.log_prob(torch.tensor(0.25))
        (tensor(0.2500), tensor(0.9130))
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
        both = rl.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        made: Self = self._copied(
            Beta, batch_shape, _instance, _dirichlet=self._dirichlet.expand(batch_shape)
        )
        return made

    @property
    def concentration1(self) -> rl.Tensor:
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> rl.Tensor:
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> rl.Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> rl.Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> rl.Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        both = rl.stack((value, 1 - value), dim=-1)
        return self._dirichlet.log_prob(both)

    def entropy(self) -> rl.Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[rl.Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        return rl.lgamma(x) + rl.lgamma(y) - rl.lgamma(x + y)
