from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, like

__all__ = ["VonMises"]

# Abramowitz and Stegun 9.8.1 - 9.8.4: modified Bessel functions I0 and I1 below and above 3.75
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (
        0.39894228,
        0.1328592e-1,
        0.225319e-2,
        -0.157565e-2,
        0.916281e-2,
        -0.2057706e-1,
        0.2635537e-1,
        -0.1647633e-1,
        0.392377e-2,
    ),
    (
        0.39894228,
        -0.3988024e-1,
        -0.362018e-2,
        0.163801e-2,
        -0.1031555e-1,
        0.2282967e-1,
        -0.2895312e-1,
        0.1787654e-1,
        -0.420059e-2,
    ),
)
# From here on the envelope's r - 1, about 1 / (2 concentration), drowns in the rounding of r, and no proposal is accepted.
_NORMAL_ABOVE = 1e12


def _polynomial(y: rl.Tensor, coefficients: Sequence[float]) -> rl.Tensor:
    result = rl.full_like(y, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = c + y * result
    return result


def _log_modified_bessel_fn(x: rl.Tensor, order: int = 0) -> rl.Tensor:
    """log I0(x) or log I1(x) for x > 0."""
    small = _polynomial((x / 3.75) ** 2, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return rl.where(x < 3.75, small.log(), large)


class VonMises(Distribution):
    """The von Mises distribution of angles, with density proportional to exp(k cos(x - loc)), on [-pi, pi).

    Args:
        loc (Tensor): the mean angle.
        concentration (Tensor): k, above 0; the larger, the narrower.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.VonMises(torch.tensor(0.0), torch.tensor(1.0))
        >>> m.mean, m.log_prob(torch.tensor(0.0))
        (tensor(0.), tensor(-1.0738))
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(
        self, loc: rl.Tensor | float, concentration: rl.Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        validate_args = self.__dict__.get("_validate_args")
        loc, concentration = self.loc.expand(batch_shape), self.concentration.expand(batch_shape)
        return type(self)(loc, concentration, validate_args=validate_args)

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        return (
            self.concentration * rl.cos(value - self.loc)
            - math.log(2 * math.pi)
            - _log_modified_bessel_fn(self.concentration, order=0)
        )

    @lazy_property
    def _loc(self) -> rl.Tensor:
        return self.loc.to(rl.double)

    @lazy_property
    def _concentration(self) -> rl.Tensor:
        return self.concentration.to(rl.double)

    @lazy_property
    def _proposal_r(self) -> rl.Tensor:
        """The parameter of Best and Fisher's wrapped Cauchy envelope."""
        kappa = self._concentration
        tau = (4 * kappa * kappa + 1).sqrt() + 1
        rho = (tau - (tau + tau).sqrt()) / (kappa + kappa)
        exact = (rho + 1 / rho) / 2
        return rl.where(kappa < 1e-5, kappa + 1 / kappa, exact)  # rho cancels to nothing there

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        with rl.no_grad():
            shape = self._extended_shape(sample_shape)
            x = rl.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
            return self._rejection_sample(x).to(self.loc.dtype)

    def _rejection_sample(self, x: rl.Tensor) -> rl.Tensor:
        """Best and Fisher (1979), all elements in step until each has been accepted."""
        r = self._proposal_r
        narrow = self._concentration > _NORMAL_ABOVE
        sampled = waiting = (rl.isfinite(r) & (self._concentration > 0) & ~narrow).expand(x.shape)
        # What the envelope cannot sample: a normal distribution, or NaN where there is no distribution.
        x = rl.where(narrow, self._concentration.rsqrt(), math.nan).expand(x.shape)
        if bool(narrow.any()):
            x = x * rl.randn(x.shape, **like(self._loc))
        while bool(waiting.any()):
            angle, height, side = rl.rand(3, *x.shape, **like(self._loc)).unbind()
            cosine = rl.cos(math.pi * angle)
            f = (1 + r * cosine) / (r + cosine)
            c = self._concentration * (r - f)
            # Surely below the density, or below it by the full test; a value once taken may be taken again.
            taken = sampled & ((c * (2 - c) > height) | ((c / height).log() >= c - 1))
            x = rl.where(taken, f.acos() * (side - 0.5).sign(), x)
            waiting = waiting & ~taken
        return (self._loc + x + math.pi) % (2 * math.pi) - math.pi

    @property
    def mean(self) -> rl.Tensor:
        return self.loc

    @property
    def mode(self) -> rl.Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> rl.Tensor:
        """The circular variance."""
        log_i1, log_i0 = (_log_modified_bessel_fn(self.concentration, order=order) for order in (1, 0))
        return 1 - (log_i1 - log_i0).exp()
