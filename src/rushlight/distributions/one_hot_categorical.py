from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from ._probs_or_logits import Delegating
from .categorical import Categorical
from .distribution import Distribution
from .utils import enumerated, like

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Delegating, Distribution):
    """A one-hot vector of K elements, with the index of its 1 drawn from a Categorical.

    Args:
        probs (Tensor or float): (..., K), divided by their sum; either this or logits. Default: None
        logits (Tensor or float): (..., K) log-probabilities, up to a constant. Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.OneHotCategorical(torch.tensor([1.0, 1.0, 2.0]))
        >>> m.sample().sum(), m.log_prob(torch.tensor([0.0, 0.0, 1.0])).exp()
        (tensor(1.), tensor(0.5000))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: rl.Tensor | None = None,
        logits: rl.Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    @property
    def _base_params(self) -> Any:
        return self._categorical

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        base = self._categorical.expand(batch_shape)
        made: Self = self._copied(OneHotCategorical, batch_shape, _instance, _categorical=base)
        return made

    @property
    def mean(self) -> rl.Tensor:
        return self._categorical.probs

    @property
    def mode(self) -> rl.Tensor:
        index = self._categorical.mode
        return rl.nn.functional.one_hot(index, num_classes=self.event_shape[-1]).to(self.probs)

    @property
    def variance(self) -> rl.Tensor:
        return self._categorical.probs * (1 - self._categorical.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        probs = self._categorical.probs
        index = self._categorical.sample(sample_shape)
        return rl.nn.functional.one_hot(index, self.event_shape[-1]).to(probs)

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> rl.Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> rl.Tensor:
        out: rl.Tensor = enumerated(
            rl.eye(self.event_shape[0], **like(self._param)), self.batch_shape, expand
        )
        return out


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose rsample passes its gradient straight on to the probabilities.

    Args:
        probs (Tensor or float): (..., K), divided by their sum; either this or logits. Default: None
        logits (Tensor or float): (..., K) log-probabilities, up to a constant. Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> probs = torch.tensor([0.25, 0.75], requires_grad=True)
        >>> y = torch.distributions.OneHotCategoricalStraightThrough(probs).rsample()
        >>> (y * torch.tensor([1.0, 2.0])).sum().backward()
        >>> y.sum().item(), probs.grad.shape
        (1.0, torch.Size([2]))
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        probs = self._categorical.probs
        return self.sample(sample_shape) + (probs - probs.detach())
