from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from ._probs_or_logits import Binary, given_one
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all, lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Binary, Distribution):
    """The number of successes before total_count failures.

    Args:
        total_count (Tensor or float): the failures, at least 0.
        probs (Tensor or float): the probability of success, below 1; either this or logits. Default: None
        logits (Tensor or float): its log-odds. Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.NegativeBinomial(2.0, torch.tensor(0.5))
        >>> m.mean, m.log_prob(torch.tensor(0.0)).exp()
        (tensor(2.), tensor(0.2500))
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: rl.Tensor | int,
        probs: rl.Tensor | float | None = None,
        logits: rl.Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given_one(probs, logits)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
            self.total_count = self.total_count.type_as(self.probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
            self.total_count = self.total_count.type_as(self.logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        names = ("total_count", "probs", "logits")
        made: Self = self._expanded(NegativeBinomial, batch_shape, names, _instance=_instance)
        return made

    @property
    def mean(self) -> rl.Tensor:
        return self.total_count * rl.exp(self.logits)

    @property
    def mode(self) -> rl.Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> rl.Tensor:
        return self.mean / rl.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(concentration=self.total_count, rate=rl.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        with rl.no_grad():
            return rl.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        n, logsigmoid = self.total_count, rl.nn.functional.logsigmoid
        unnormalized = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        normalizer = -rl.lgamma(n + value) + rl.lgamma(1.0 + value) + rl.lgamma(n)
        return unnormalized - normalizer.masked_fill(n + value == 0.0, 0.0)
