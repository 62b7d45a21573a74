import rushlight as rl

from . import constraints
from ._probs_or_logits import Delegating
from .categorical import Categorical
from .distribution import Distribution
from .utils import enumerated, like

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Delegating, Distribution):
    """A one-hot vector whose place is drawn from a Categorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    @property
    def _base_params(self):
        return self._categorical

    def expand(self, batch_shape, _instance=None):
        base = self._categorical.expand(batch_shape)
        return self._copied(OneHotCategorical, batch_shape, _instance, _categorical=base)

    @property
    def mean(self):
        return self._categorical.probs

    @property
    def mode(self):
        place = self._categorical.mode
        return rl.nn.functional.one_hot(place, num_classes=self.event_shape[-1]).to(self.probs)

    @property
    def variance(self):
        return self._categorical.probs * (1 - self._categorical.probs)

    def sample(self, sample_shape=()):
        probs = self._categorical.probs
        places = self._categorical.sample(sample_shape)
        return rl.nn.functional.one_hot(places, self.event_shape[-1]).to(probs)

    def log_prob(self, value):
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        return enumerated(rl.eye(self.event_shape[0], **like(self._param)), self.batch_shape, expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot draws whose gradient is passed straight to the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        probs = self._categorical.probs
        return self.sample(sample_shape) + (probs - probs.detach())
