from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from ._probs_or_logits import Binary, given_one
from .distribution import Distribution
from .utils import broadcast_all, enumerated, like

__all__ = ["Binomial"]


class Binomial(Binary, Distribution):
    """The number of successes in total_count independent trials.

    Args:
        total_count (Tensor or int): the number of trials. Default: 1
        probs (Tensor or float): the probability of success; either this or logits. Default: None
        logits (Tensor or float): its log-odds. Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Binomial(4, torch.tensor(0.5))
        >>> m.mean, m.log_prob(torch.tensor(2.0)).exp()
        (tensor(2.), tensor(0.3750))
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: rl.Tensor | int = 1,
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
        made: Self = self._expanded(
            Binomial, batch_shape, ("total_count", "probs", "logits"), _instance=_instance
        )
        return made

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> rl.Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> rl.Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> rl.Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        with rl.no_grad():
            return rl.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        n, logits = self.total_count, self.logits
        # n log(1 + e^logits), without overflow; the positive part is written so that its derivative at 0 is 1/2
        positive = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2
        normalizer = n * positive + n * rl.log1p(rl.exp(-rl.abs(logits))) - rl.lgamma(n + 1)
        return value * logits - rl.lgamma(value + 1) - rl.lgamma(n - value + 1) - normalizer

    def _single_count(self, what: Any) -> int:
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count

    def entropy(self) -> rl.Tensor:
        self._single_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(rl.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> rl.Tensor:
        count = self._single_count("enumerate_support")
        out: rl.Tensor = enumerated(rl.arange(1 + count, **like(self._param)), self._batch_shape, expand)
        return out
