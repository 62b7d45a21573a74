from . import constraints
from .distribution import Distribution
from .utils import _sum_rightmost

__all__ = ["Independent"]


class Independent(Distribution):
    """Makes the last batch dimensions of a distribution part of its event, so that their log-probabilities add up.

    Args:
        base_distribution (Distribution): with a batch.
        reinterpreted_batch_ndims (int): how many of its dimensions become part of the event.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> normal = torch.distributions.Normal(torch.zeros(2, 3), torch.ones(2, 3))
        >>> m = torch.distributions.Independent(normal, 1)
        >>> m.batch_shape, m.event_shape, m.log_prob(torch.zeros(2, 3)).shape
        (torch.Size([2]), torch.Size([3]), torch.Size([2]))
    """

    arg_constraints = {}

    def __class_getitem__(cls, item):
        return cls

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event_dim = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        cut = len(shape) - event_dim
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        n = self.reinterpreted_batch_ndims
        base = self.base_dist.expand((*batch_shape, *self.event_shape[:n]))
        return self._copied(Independent, batch_shape, _instance, base_dist=base, reinterpreted_batch_ndims=n)

    @property
    def has_rsample(self):  # type: ignore[override]  # as in PyTorch, a variable of its base
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self):  # type: ignore[override]  # as in PyTorch, a variable of its base
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self):
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        n = self.reinterpreted_batch_ndims
        if n:
            raise NotImplementedError(f"Enumeration over cartesian product of {n} dimensions")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
