from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from ._probs_or_logits import Binary, given_one
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(Binary, Distribution):
    """The number of failures before the first success: P(k) = (1 - p)^k p, for k = 0, 1, 2, ...

    Args:
        probs (Tensor or float): p, the probability of success; either this or logits. Default: None
        logits (Tensor or float): its log-odds. Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Geometric(torch.tensor(0.25))
        >>> m.mean, m.log_prob(torch.tensor(1.0)).exp()
        (tensor(3.), tensor(0.1875))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

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
        if self._validate_args and probs is not None:
            value = self.probs
            if not bool((value > 0).all()):
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of "
                    f"distribution {self!r} to be positive but found invalid values:\n{value[~(value > 0)]}"
                )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        made: Self = self._expanded(Geometric, batch_shape, ("probs", "logits"), _instance=_instance)
        return made

    @property
    def mean(self) -> rl.Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> rl.Tensor:
        return rl.zeros_like(self.probs)

    @property
    def variance(self) -> rl.Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        with rl.no_grad():
            u = rl.empty(shape, dtype=self.probs.dtype, device=self.probs.device)
            u.uniform_(rl.finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)  # 0 * log(0) is 0 here
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> rl.Tensor:
        cross_entropy = rl.nn.functional.binary_cross_entropy_with_logits
        return cross_entropy(self.logits, self.probs, reduction="none") / self.probs
