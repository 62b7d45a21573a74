"""Transforms of single values."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.transforms._base import Plain, Transform
from rushlight.distributions.utils import _sum_rightmost, broadcast_all, is_number, lazy_property


class _Rising(Plain):
    """One to one on all reals, and increasing."""

    domain = constraints.real
    bijective = True
    sign = 1


class ExpTransform(_Rising):
    """The transform y = exp(x), onto the positive numbers.

    Args:
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> torch.distributions.ExpTransform()(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 2.7183])
    """

    codomain = constraints.positive

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        return x.exp()

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        return x


def _inside(probability: rl.Tensor) -> rl.Tensor:
    """Kept within (0, 1), where logarithms are finite."""
    limits = rl.finfo(probability.dtype)
    return probability.clamp(limits.tiny, 1.0 - limits.eps)


def _clipped_sigmoid(x: rl.Tensor) -> rl.Tensor:
    return _inside(rl.sigmoid(x))


class SigmoidTransform(_Rising):
    """The transform y = 1 / (1 + exp(-x)), onto (0, 1).

    Args:
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> torch.distributions.SigmoidTransform()(torch.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7311])
    """

    codomain = constraints.unit_interval

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        y = _inside(y)
        return y.log() - y.neg().log1p()

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        # log of y (1 - y)
        log_sigmoid = rl.nn.functional.logsigmoid
        return log_sigmoid(x) + log_sigmoid(-x)


class SoftplusTransform(_Rising):
    """The transform y = log(1 + exp(x)), onto the positive numbers.

    Args:
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> torch.distributions.SoftplusTransform()(torch.tensor([0.0, 1.0]))
        tensor([0.6931, 1.3133])
    """

    codomain = constraints.positive

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        return rl.nn.functional.softplus(x)

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        # log(e^y - 1), without e^y
        return y + rl.log(-rl.expm1(-y))

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        return rl.nn.functional.softplus(-x).neg()


class TanhTransform(_Rising):
    """The transform y = tanh(x), onto (-1, 1).

    Args:
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> torch.distributions.TanhTransform()(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        return x.tanh()

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        # log(1 - tanh(x)^2), written so that it neither cancels nor overflows
        return 2.0 * (math.log(2.0) - x - rl.nn.functional.softplus(-2.0 * x))


class AbsTransform(Plain):
    """The transform y = |x|; its inverse gives the positive one.

    Args:
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> f = torch.distributions.AbsTransform()
        >>> f(torch.tensor(-2.0)), f.inv(torch.tensor(2.0))
        (tensor(2.), tensor(2.))
    """

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        return x.abs()

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        return y


class CumulativeDistributionTransform(Transform):
    """The transform y = P(a draw is at most x) under a distribution, onto [0, 1].

    Args:
        distribution (Distribution): with cdf and icdf.
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> f = torch.distributions.CumulativeDistributionTransform(torch.distributions.Normal(0.0, 1.0))
        >>> f(torch.tensor(0.0)), f.inv(torch.tensor(0.5))
        (tensor(0.5000), tensor(0.))
    """

    bijective, sign = True, 1
    codomain = constraints.unit_interval
    domain = property(lambda self: self.distribution.support)

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    def _arguments(self) -> Any:
        return (self.distribution,)

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        return self.distribution.log_prob(x)


class _Parametric(Transform):
    """The parameters broadcast against the values; transforms with equal ones are equal."""

    bijective = True
    _names: tuple[str, ...] = ()  # of the parameters

    def _parameters(self) -> Any:
        return [getattr(self, name) for name in self._names]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return False
        pairs = zip(self._parameters(), other._parameters(), strict=True)
        return all(a is b or bool(rl.as_tensor(a == b).all()) for a, b in pairs)

    __hash__ = None

    def forward_shape(self, shape: Any) -> Any:
        return rl.broadcast_shapes(shape, *(getattr(p, "shape", ()) for p in self._parameters()))

    inverse_shape = forward_shape


class PowerTransform(_Parametric):
    """The transform y = x^exponent of positive numbers.

    Args:
        exponent (Tensor or float): not 0.
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> torch.distributions.PowerTransform(2.0)(torch.tensor([1.0, 3.0]))
        tensor([1., 9.])
    """

    domain = codomain = constraints.positive
    _names = ("exponent",)

    def __init__(self, exponent: rl.Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = broadcast_all(exponent)[0]

    def _arguments(self) -> Any:
        return (self.exponent,)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        return x**self.exponent

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        return rl.log(rl.abs(self.exponent * y / x))


class AffineTransform(_Parametric):
    """The transform y = loc + scale * x.

    Args:
        loc (Tensor or float): what is added.
        scale (Tensor or float): the factor, not 0.
        event_dim (int): how many of the last dimensions make one value. Default: 0
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> f = torch.distributions.AffineTransform(1.0, 2.0)
        >>> f(torch.tensor(3.0)), f.inv(torch.tensor(7.0))
        (tensor(7.), tensor(3.))
    """

    _names = ("loc", "scale")

    def __init__(
        self, loc: rl.Tensor | float, scale: rl.Tensor | float, event_dim: int = 0, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        self._event_dim = event_dim

    def _arguments(self) -> Any:
        return self.loc, self.scale, self._event_dim

    event_dim = property(lambda self: self._event_dim)

    def _reals(self) -> constraints.Constraint:
        return (
            constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real
        )

    domain = constraints.dependent_property(_reals, is_discrete=False)
    codomain = constraints.dependent_property(_reals, is_discrete=False)

    @property
    def sign(self) -> Any:
        if is_number(self.scale):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        return self.scale * x + self.loc

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        scale = rl.full_like(x, self.scale) if is_number(self.scale) else self.scale
        log_det = _sum_rightmost(scale.abs().log(), self.event_dim)
        return log_det.expand(x.shape[: x.dim() - self.event_dim])
