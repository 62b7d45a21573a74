from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from rushlight import Tensor

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

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
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

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        n = self.reinterpreted_batch_ndims
        base = self.base_dist.expand((*batch_shape, *self.event_shape[:n]))
        made: Self = self._copied(
            Independent, batch_shape, _instance, base_dist=base, reinterpreted_batch_ndims=n
        )
        return made

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]  # as in PyTorch, a variable of its base
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]  # as in PyTorch, a variable of its base
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.reinterpreted_batch_ndims
        if n:
            raise NotImplementedError(f"Enumeration over cartesian product of {n} dimensions")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
