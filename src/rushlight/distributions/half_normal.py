import math

import rushlight as rl

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """The absolute value of a normal variable with mean 0.

    Args:
        scale (Tensor or float): the standard deviation of the normal distribution.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.HalfNormal(2.0)
        >>> m.mean, m.cdf(torch.tensor(2.0))
        (tensor(1.5958), tensor(0.6827))
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(HalfNormal, _instance))

    @property
    def scale(self):
        return self.base_dist.scale

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self):
        return rl.zeros_like(self.scale)

    @property
    def variance(self):
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def log_prob(self, value):
        self._check(value)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return rl.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value):
        self._check(value)
        whole = self.base_dist
        return whole.cdf(value) * 2 - 1

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)

    def icdf(self, prob):
        upper_half = 0.5 + prob / 2
        return self.base_dist.icdf(upper_half)
