from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from ._probs_or_logits import Delegating
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Delegating, Distribution):
    """How often each of K categories comes up in total_count draws.

    Args:
        total_count (int): the number of draws. Default: 1
        probs (Tensor or float): (..., K), divided by their sum; either this or logits. Default: None
        logits (Tensor or float): (..., K) log-probabilities, up to a constant. Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Multinomial(4, torch.tensor([1.0, 1.0, 2.0]))
        >>> m.mean, m.log_prob(torch.tensor([1.0, 1.0, 2.0])).exp(), m.sample().sum()
        (tensor([1., 1., 2.]), tensor(0.1875), tensor(4.))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        total_count: rl.Tensor | int = 1,
        probs: rl.Tensor | None = None,
        logits: rl.Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"inhomogeneous total_count is not supported: give one int, not {total_count}"
            )
        self._categorical = Categorical(probs, logits)
        self.total_count, self._binomial = total_count, Binomial(total_count, self._categorical.probs)
        super().__init__(
            self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args
        )

    @property
    def _base_params(self) -> Any:
        return self._categorical

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._get_checked_instance(Multinomial, _instance)
        batch_shape = rl.Size(batch_shape)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = Binomial(total_count=self.total_count, probs=new.probs, validate_args=False)
        super(Multinomial, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        made: Self = new
        return made

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> rl.Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> rl.Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        sample_shape = rl.Size(sample_shape)
        drawn = self._categorical.sample(rl.Size((self.total_count,)) + sample_shape)
        drawn = drawn.permute(*range(1, drawn.dim()), 0)  # (…, total_count)
        counts = rl.zeros(self._extended_shape(sample_shape), dtype=drawn.dtype, device=drawn.device)
        counts.scatter_add_(-1, drawn, rl.ones_like(drawn))
        return counts.type_as(self.probs)

    def entropy(self) -> rl.Tensor:
        n = rl.tensor(self.total_count, dtype=self.probs.dtype, device=self.probs.device)
        support = self._binomial.enumerate_support(expand=False)[1:]
        probs = rl.exp(self._binomial.log_prob(support))
        weights = rl.lgamma(support + 1)
        return n * self._categorical.entropy() - rl.lgamma(n + 1) + (probs * weights).sum([0, -1])

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -rl.inf), 0)
        log_powers = (logits * value).sum(-1)
        return rl.lgamma(value.sum(-1) + 1) - rl.lgamma(value + 1).sum(-1) + log_powers
