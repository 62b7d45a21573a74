from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

import rushlight as rl

from . import constraints
from ._probs_or_logits import given_one
from .distribution import Distribution
from .utils import enumerated, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """An index from 0 to K - 1, with probabilities along the last dimension.

    Args:
        probs (Tensor or float): (..., K), at least 0; they are divided by their sum; either this or logits.
            Default: None
        logits (Tensor or float): (..., K) log-probabilities, up to a constant. Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Categorical(torch.tensor([1.0, 1.0, 2.0]))
        >>> m.probs, m.log_prob(torch.tensor(2)), m.entropy()
        (tensor([0.2500, 0.2500, 0.5000]), tensor(-0.6931), tensor(1.0397))
        >>> m.sample((5,)).shape
        torch.Size([5])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(
        self,
        probs: rl.Tensor | None = None,
        logits: rl.Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given_one(probs, logits)
        given = "probs" if probs is not None else "logits"
        param = cast(rl.Tensor, probs if probs is not None else logits)
        if param.dim() < 1:
            raise ValueError(f"`{given}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = param - param.logsumexp(dim=-1, keepdim=True)
        self._num_events = param.size()[-1]
        super().__init__(param.size()[:-1], validate_args=validate_args)

    @property
    def _param(self) -> rl.Tensor:
        out: rl.Tensor = self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]
        return out

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._expanded(Categorical, batch_shape, ("probs", "logits"), _instance=_instance)
        new._num_events = self._num_events
        made: Self = new
        return made

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        last = self._num_events - 1
        return constraints.integer_interval(0, last)

    def _new(self, *args: Any, **kwargs: Any) -> rl.Tensor:
        return self._param.new(*args, **kwargs)

    # Whichever was not given.
    probs = lazy_property(lambda self: logits_to_probs(self.logits), "probs")
    logits = lazy_property(lambda self: probs_to_logits(self.probs), "logits")

    @property
    def param_shape(self) -> rl.Size:
        return self._param.size()

    def _nan(self) -> rl.Tensor:
        return rl.full(self._extended_shape(), float("nan"), dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mean(self) -> rl.Tensor:
        return self._nan()

    @property
    def mode(self) -> rl.Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> rl.Tensor:
        return self._nan()

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        sample_shape = rl.Size(sample_shape)
        probs = self.probs.reshape(-1, self._num_events)
        with rl.no_grad():
            drawn = rl.multinomial(probs, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        shape = rl.broadcast_shapes(value.shape, self.logits.shape[:-1])
        table = self.logits.expand(*shape, self._num_events)
        return table.gather(-1, value.long().expand(shape).unsqueeze(-1))[..., 0]

    def entropy(self) -> rl.Tensor:
        # Impossible values have logits of minus infinity, and add nothing.
        finite = self.logits.clamp_min(rl.finfo(self.logits.dtype).min)
        return (self.probs * finite).sum(-1).neg()

    def enumerate_support(self, expand: bool = True) -> rl.Tensor:
        out: rl.Tensor = enumerated(
            rl.arange(self._num_events, device=self._param.device), self._batch_shape, expand
        )
        return out
