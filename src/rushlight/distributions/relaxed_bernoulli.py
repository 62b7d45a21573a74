from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from ._probs_or_logits import Binary, given_one
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(Binary, Distribution):
    """The logits of a RelaxedBernoulli: logistic noise around the logits, over the temperature."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: rl.Tensor,
        probs: rl.Tensor | float | None = None,
        logits: rl.Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        given_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._expanded(LogitRelaxedBernoulli, batch_shape, ("probs", "logits"), _instance=_instance)
        new.temperature = self.temperature
        made: Self = new
        return made

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniforms = clamp_probs(rl.rand(shape, dtype=probs.dtype, device=probs.device))
        noise = uniforms.log() - (-uniforms).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        z = logits - self.temperature * value
        return z + self.temperature.log() - 2 * rl.log1p(rl.exp(z))


class RelaxedBernoulli(TransformedDistribution):
    """A differentiable stand-in for Bernoulli on (0, 1): the lower the temperature, the nearer to 0 and 1.

    Args:
        temperature (Tensor): above 0.
        probs (Tensor or float): the probability of values near 1; either this or logits. Default: None
        logits (Tensor or float): its log-odds. Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> logits = torch.zeros(2, requires_grad=True)
        >>> y = torch.distributions.RelaxedBernoulli(torch.tensor(0.5), logits=logits).rsample()
        >>> y.sum().backward()
        >>> bool(((y > 0) & (y < 1)).all()), logits.grad.shape
        (True, torch.Size([2]))
    """

    base_dist: LogitRelaxedBernoulli
    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: rl.Tensor,
        probs: rl.Tensor | float | None = None,
        logits: rl.Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return super().expand(batch_shape, self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self) -> rl.Tensor:
        return self.base_dist.temperature

    @property
    def logits(self) -> rl.Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> rl.Tensor:
        return self.base_dist.probs
