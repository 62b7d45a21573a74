from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from ._probs_or_logits import Binary, given_one
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


def _log_odds(probs: rl.Tensor) -> rl.Tensor:
    return probs.log() - (-probs).log1p()


class ContinuousBernoulli(Binary, ExponentialFamily):
    """The continuous Bernoulli distribution on [0, 1], with density proportional to p^x (1 - p)^(1 - x).

    Args:
        probs (Tensor or float): p, from 0 to 1; either this or logits. Default: None
        logits (Tensor or float): its log-odds. Default: None
        lims (tuple of 2 floats): the range of probs around 1/2 in which formulas that cancel there are replaced
            by their Taylor expansions. Default: (0.499, 0.501)
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.ContinuousBernoulli(torch.tensor(0.5))
        >>> m.mean, m.log_prob(torch.tensor(0.3))
        (tensor(0.5000), tensor(0.))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: rl.Tensor | float | None = None,
        logits: rl.Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        given_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            if validate_args is not None and not bool(self.arg_constraints["probs"].check(self.probs).all()):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    @lazy_property
    def probs(self) -> rl.Tensor:
        # Not quite 0 or 1, where the formulas are infinite.
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._expanded(ContinuousBernoulli, batch_shape, ("probs", "logits"), _instance=_instance)
        new._lims = self._lims
        made: Self = new
        return made

    def _outside_unstable_region(self) -> rl.Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> rl.Tensor:
        """The probabilities, with a harmless value where the Taylor expansion is used."""
        return rl.where(self._outside_unstable_region(), self.probs, self._lims[0] * rl.ones_like(self.probs))

    def _blend(self, exact: rl.Tensor, *taylor: Any) -> rl.Tensor:
        """The exact formula, or near one half the polynomial in probs - 1/2 with these coefficients."""
        x = self.probs - 0.5
        near = sum(c * x**i for i, c in enumerate(taylor) if c)
        return rl.where(self._outside_unstable_region(), exact, near)

    def _cont_bern_log_norm(self) -> rl.Tensor:
        cut = self._cut_probs()
        # 2 atanh(1 - 2p) / (1 - 2p); even in p - 1/2
        exact = _log_odds(cut).abs().log() - (1 - 2 * cut).abs().log()
        return self._blend(exact, math.log(2), 0, 4 / 3, 0, 104 / 45)

    @property
    def mean(self) -> rl.Tensor:
        cut = self._cut_probs()
        exact = cut / (2 * cut - 1) - 1 / _log_odds(cut)
        return self._blend(exact, 1 / 2, 1 / 3, 0, 16 / 45)

    @property
    def stddev(self) -> rl.Tensor:
        return rl.sqrt(self.variance)

    @property
    def variance(self) -> rl.Tensor:
        cut = self._cut_probs()
        exact = _log_odds(cut) ** -2 - cut * (1 - cut) / (1 - 2 * cut) ** 2
        return self._blend(exact, 1 / 12, 0, -1 / 15, 0, 128 / 945)

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        with rl.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rl.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        cross_entropy = rl.nn.functional.binary_cross_entropy_with_logits
        return -cross_entropy(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        cut = self._cut_probs()
        exact = (cut**value * (1 - cut) ** (1 - value) - (1 - cut)) / (2 * cut - 1)
        inside = rl.where(self._outside_unstable_region(), exact, value)
        return inside.masked_fill(value <= 0, 0.0).masked_fill(value >= 1, 1.0)

    def icdf(self, value: rl.Tensor) -> rl.Tensor:
        cut = self._cut_probs()
        exact = (((2 * cut - 1) * value - cut).log1p() - (-cut).log1p()) / _log_odds(cut)
        return rl.where(self._outside_unstable_region(), exact, value)

    def entropy(self) -> rl.Tensor:
        log_q, log_p = rl.log1p(-self.probs), rl.log(self.probs)
        return self.mean * (log_q - log_p) - self._cont_bern_log_norm() - log_q

    @property
    def _natural_params(self) -> tuple[rl.Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: rl.Tensor) -> rl.Tensor:
        out = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = rl.where(out, x, (self._lims[0] - 0.5) * rl.ones_like(x))
        log_norm = rl.log(rl.abs(rl.special.expm1(cut))) - rl.log(rl.abs(cut))
        taylor = 0.5 * x + rl.pow(x, 2) / 24.0 - rl.pow(x, 4) / 2880.0
        return rl.where(out, log_norm, taylor)
