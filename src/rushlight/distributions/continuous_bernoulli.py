import math

import rushlight as rl

from . import constraints
from ._probs_or_logits import Binary, given_one
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Binary, ExponentialFamily):
    """On [0, 1]: density ~ probs^x (1 - probs)^(1 - x).

    Formulas that cancel near probs = 1/2 are replaced within `lims` by their Taylor expansions.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
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

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(ContinuousBernoulli, batch_shape, ("probs", "logits"), _instance=_instance)
        new._lims = self._lims
        return new

    def _outside_unstable_region(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self):
        """The probabilities, with a harmless value where the Taylor expansion is used."""
        return rl.where(self._outside_unstable_region(), self.probs, self._lims[0] * rl.ones_like(self.probs))

    def _cont_bern_log_norm(self):
        cut = self._cut_probs()
        low = cut <= 0.5
        below = rl.where(low, cut, rl.zeros_like(cut))
        above = rl.where(cut >= 0.5, cut, rl.ones_like(cut))
        log_norm = rl.log(rl.abs(rl.log1p(-cut) - rl.log(cut))) - rl.where(
            low, rl.log1p(-2.0 * below), rl.log(2.0 * above - 1.0)
        )
        x = rl.pow(self.probs - 0.5, 2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return rl.where(self._outside_unstable_region(), log_norm, taylor)

    @property
    def mean(self):
        cut = self._cut_probs()
        mean = cut / (2.0 * cut - 1.0) + 1.0 / (rl.log1p(-cut) - rl.log(cut))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * rl.pow(x, 2)) * x
        return rl.where(self._outside_unstable_region(), mean, taylor)

    @property
    def stddev(self):
        return rl.sqrt(self.variance)

    @property
    def variance(self):
        cut = self._cut_probs()
        variance = cut * (cut - 1.0) / rl.pow(1.0 - 2.0 * cut, 2) + 1.0 / rl.pow(
            rl.log1p(-cut) - rl.log(cut), 2
        )
        x = rl.pow(self.probs - 0.5, 2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return rl.where(self._outside_unstable_region(), variance, taylor)

    def sample(self, sample_shape=()):
        with rl.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(rl.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        cross_entropy = rl.nn.functional.binary_cross_entropy_with_logits
        return -cross_entropy(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        cdf = (rl.pow(cut, value) * rl.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        cdf = rl.where(self._outside_unstable_region(), cdf, value)
        cdf = rl.where(value <= 0.0, rl.zeros_like(value), cdf)
        return rl.where(value >= 1.0, rl.ones_like(value), cdf)

    def icdf(self, value):
        cut = self._cut_probs()
        inverse = (rl.log1p(-cut + value * (2.0 * cut - 1.0)) - rl.log1p(-cut)) / (
            rl.log(cut) - rl.log1p(-cut)
        )
        return rl.where(self._outside_unstable_region(), inverse, value)

    def entropy(self):
        log_q, log_p = rl.log1p(-self.probs), rl.log(self.probs)
        return self.mean * (log_q - log_p) - self._cont_bern_log_norm() - log_q

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        out = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = rl.where(out, x, (self._lims[0] - 0.5) * rl.ones_like(x))
        log_norm = rl.log(rl.abs(rl.special.expm1(cut))) - rl.log(rl.abs(cut))
        taylor = 0.5 * x + rl.pow(x, 2) / 24.0 - rl.pow(x, 4) / 2880.0
        return rl.where(out, log_norm, taylor)
