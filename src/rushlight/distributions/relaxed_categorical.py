from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from ._probs_or_logits import Delegating
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs, like

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Delegating, Distribution):
    """The logarithm of a RelaxedOneHotCategorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: rl.Tensor,
        probs: rl.Tensor | None = None,
        logits: rl.Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(
            self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args
        )

    @property
    def _base_params(self) -> Any:
        return self._categorical

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        attributes = {"temperature": self.temperature, "_categorical": self._categorical.expand(batch_shape)}
        made: Self = self._copied(ExpRelaxedCategorical, batch_shape, _instance, **attributes)
        return made

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        u = clamp_probs(rl.rand(self._extended_shape(sample_shape), **like(self.logits)))
        noise = -rl.log(-rl.log(u))  # Gumbel's
        return ((noise + self.logits) / self.temperature).log_softmax(-1)

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        # (k - 1)! t^(k-1) prod_i p_i e^(-t v_i) / sum_j p_j e^(-t v_j)
        k, t = self.event_shape[0], self.temperature
        constant = math.lgamma(k) + (k - 1) * t.log()
        return constant + (logits - t * value).log_softmax(-1).sum(-1)


class RelaxedOneHotCategorical(TransformedDistribution):
    """A differentiable stand-in for OneHotCategorical inside the simplex, also known as Gumbel-softmax.

    Args:
        temperature (Tensor): above 0; the lower, the nearer to one-hot vectors.
        probs (Tensor or float): (..., K), divided by their sum; either this or logits. Default: None
        logits (Tensor or float): (..., K) log-probabilities, up to a constant. Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.RelaxedOneHotCategorical(torch.tensor(0.5), torch.tensor([0.25, 0.75]))
        >>> y = m.rsample()
        >>> y.shape, torch.allclose(y.sum(), torch.tensor(1.0))
        (torch.Size([2]), True)
    """

    base_dist: ExpRelaxedCategorical
    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: rl.Tensor,
        probs: rl.Tensor | None = None,
        logits: rl.Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return super().expand(batch_shape, self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    @property
    def temperature(self) -> rl.Tensor:
        return self.base_dist.temperature

    @property
    def logits(self) -> rl.Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> rl.Tensor:
        return self.base_dist.probs
