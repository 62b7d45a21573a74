from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from ._probs_or_logits import Binary, given_one
from .exp_family import ExponentialFamily
from .utils import broadcast_all, enumerated, like

__all__ = ["Bernoulli"]


class Bernoulli(Binary, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability probs, else 0.

    Args:
        probs (Tensor or float): the probability of 1; either this or logits. Default: None
        logits (Tensor or float): its log-odds, log(p / (1 - p)). Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Bernoulli(torch.tensor([0.25, 0.5]))
        >>> m.sample((3,)).shape, m.mean, m.variance
        (torch.Size([3, 2]), tensor([0.2500, 0.5000]), tensor([0.1875, 0.2500]))
        >>> m.log_prob(torch.tensor([1.0, 0.0])).exp()
        tensor([0.2500, 0.5000])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: rl.Tensor | float | None = None,
        logits: rl.Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        made: Self = self._expanded(Bernoulli, batch_shape, ("probs", "logits"), _instance=_instance)
        return made

    @property
    def mean(self) -> rl.Tensor:
        return self.probs

    @property
    def mode(self) -> rl.Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, float("nan"))

    @property
    def variance(self) -> rl.Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        with rl.no_grad():
            return rl.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -rl.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> rl.Tensor:
        return rl.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> rl.Tensor:
        out: rl.Tensor = enumerated(rl.arange(2, **like(self._param)), self._batch_shape, expand)
        return out

    @property
    def _natural_params(self) -> tuple[rl.Tensor, ...]:
        return (rl.logit(self.probs),)

    def _log_normalizer(self, x: rl.Tensor) -> rl.Tensor:
        return rl.log1p(rl.exp(x))
