from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of y = f(x), x from a base distribution: log p(y) = log p(x) - log |det dy/dx|.

    Args:
        base_distribution (Distribution): of x.
        transforms (Transform or list): f, or several transforms one after another.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> base = torch.distributions.Normal(0.0, 1.0)
        >>> m = torch.distributions.TransformedDistribution(base, [torch.distributions.ExpTransform()])
        >>> m.log_prob(torch.tensor(1.0)), torch.distributions.LogNormal(0.0, 1.0).log_prob(torch.tensor(1.0))
        (tensor(-0.9189), tensor(-0.9189))
    """

    arg_constraints = {}

    def __init__(
        self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None
    ) -> None:
        steps = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(steps, list) or not all(isinstance(step, Transform) for step in steps):
            raise ValueError(f"transforms must be a Transform or list of Transforms, but was {transforms}")
        self.transforms = steps
        whole = ComposeTransform(steps)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        before, after = whole.domain.event_dim, whole.codomain.event_dim
        if len(base_shape) < before:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {before}, but got {base_shape}."
            )
        shape = whole.forward_shape(base_shape)
        event_dim = after + max(0, len(base_distribution.event_shape) - before)
        self.base_dist = _fitted(base_distribution, whole.inverse_shape(shape), before)
        batch = len(shape) - event_dim
        super().__init__(shape[:batch], shape[batch:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        base_shape = (*batch_shape, *self.event_shape)
        base_shape = ComposeTransform(self.transforms).inverse_shape(rl.Size(base_shape))
        base = self.base_dist.expand(base_shape[: len(base_shape) - len(self.base_dist.event_shape)])
        attributes = {"base_dist": base, "transforms": self.transforms}
        made: Self = self._copied(TransformedDistribution, batch_shape, _instance, **attributes)
        return made

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        image = self.transforms[-1].codomain
        more = len(self.event_shape) - image.event_dim
        return constraints.independent(image, more) if more > 0 else image

    def _forward(self, x: rl.Tensor) -> Any:
        for step in self.transforms:
            x = step(x)
        return x

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        with rl.no_grad():
            out: rl.Tensor = self._forward(self.base_dist.sample(sample_shape))
            return out

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        out: rl.Tensor = self._forward(self.base_dist.rsample(sample_shape))
        return out

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        event_dim = len(self.event_shape)
        stretched = 0.0  # log |det dy/dx| of the steps gone back so far
        for step in self.transforms[::-1]:
            x = step.inv(value)
            event_dim += step.domain.event_dim - step.codomain.event_dim
            term = step.log_abs_det_jacobian(x, value)
            stretched = stretched + _sum_rightmost(term, event_dim - step.domain.event_dim)
            value = x
        base = self.base_dist.log_prob(value)
        return _sum_rightmost(base, event_dim - len(self.base_dist.event_shape)) - stretched

    def cdf(self, value: rl.Tensor) -> rl.Tensor:
        for step in self.transforms[::-1]:
            value = step.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: rl.Tensor) -> rl.Tensor:
        out: rl.Tensor = self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))
        return out

    def _monotonize_cdf(self, value: rl.Tensor) -> rl.Tensor:
        """1 - value where the transforms run downwards."""
        sign = math.prod(step.sign for step in self.transforms)
        return value if isinstance(sign, int) and sign == 1 else 0.5 + sign * (value - 0.5)


def _fitted(base: Distribution, shape: Sequence[int], event_dim: int) -> Distribution:
    """The base distribution with values of that shape, and events of at least so many dimensions."""
    own = len(base.event_shape)
    if shape != base.batch_shape + base.event_shape:
        base = base.expand(shape[: len(shape) - own])
    return Independent(base, event_dim - own) if event_dim > own else base
