from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of distributions of one family: the last batch dimension of one of them is summed out.

    Args:
        mixture_distribution (Categorical): the weights, of batch shape (...) and K categories.
        component_distribution (Distribution): of batch shape (..., K).
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> weights = torch.distributions.Categorical(torch.tensor([0.25, 0.75]))
        >>> parts = torch.distributions.Normal(torch.tensor([0.0, 4.0]), torch.ones(2))
        >>> m = torch.distributions.MixtureSameFamily(weights, parts)
        >>> m.mean, m.log_prob(torch.tensor(4.0))
        (tensor(3.), tensor(-1.2065))
    """

    arg_constraints = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of torch.distributions.Distribution"
            )
        mixture_batch, component_batch = (
            mixture_distribution.batch_shape,
            component_distribution.batch_shape[:-1],
        )
        for a, b in zip(reversed(mixture_batch), reversed(component_batch)):  # noqa: B905
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_batch}) is not compatible with "
                    f"`component_distribution.batch_shape`({component_batch})"
                )
        count = mixture_distribution.logits.shape[-1]
        components = component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = components
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(component_batch, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = rl.Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(
            batch_shape + (self._num_component,)
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        super(MixtureSameFamily, new).__init__(
            batch_shape, new._component_distribution.event_shape, validate_args=False
        )
        new._validate_args = self._validate_args
        made: Self = new
        return made

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    def _weights(self) -> rl.Tensor:
        """The mixture probabilities, with dimensions for the event."""
        probs = self.mixture_distribution.probs
        return probs.reshape(tuple(probs.shape) + (1,) * self._event_ndims)

    @property
    def mean(self) -> rl.Tensor:
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> rl.Tensor:
        # E[var] + var[mean] over the components
        weights, dim = self._weights(), -1 - self._event_ndims
        component = self.component_distribution
        spread = component.mean - self.mean.unsqueeze(dim)
        return (weights * component.variance).sum(dim) + (weights * spread.pow(2.0)).sum(dim)

    def _pad(self, x: rl.Tensor) -> rl.Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def cdf(self, x: rl.Tensor) -> rl.Tensor:
        cdf = self.component_distribution.cdf(self._pad(x))
        return (cdf * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: rl.Tensor) -> rl.Tensor:
        self._check(x)
        log_prob = self.component_distribution.log_prob(self._pad(x))
        log_mix = rl.log_softmax(self.mixture_distribution.logits, dim=-1)
        return rl.logsumexp(log_prob + log_mix, dim=-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        with rl.no_grad():
            sample_shape = rl.Size(sample_shape)
            event_shape = self._component_distribution.event_shape
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            # the chosen component for every element of the event
            index = chosen.reshape(tuple(chosen.shape) + (1,) * (len(event_shape) + 1))
            index = index.expand(tuple(drawn.shape[:dim]) + (1,) + tuple(event_shape))
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
