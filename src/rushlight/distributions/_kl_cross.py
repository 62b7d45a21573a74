"""KL divergences between distributions of different families."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant as _euler_gamma


def _infinite(p: Any, q: Any) -> rl.Tensor:
    """The support of p is not inside that of q."""
    shape = rl.broadcast_shapes(p.batch_shape, q.batch_shape)
    reference = p.mean if isinstance(p, (Beta, ContinuousBernoulli, Poisson)) else p.entropy()
    return rl.full(shape, rl.inf, dtype=reference.dtype, device=reference.device)


_NOT_INSIDE = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
for _p, _qs in _NOT_INSIDE.items():
    for _q in _qs:
        register_kl(_p, _q)(_infinite)


def _x_log_x(t: rl.Tensor) -> rl.Tensor:
    return rl.special.xlogy(t, t)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> rl.Tensor:
    out: rl.Tensor = q.rate - p.probs * q.rate.log() - p.entropy()
    return out


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Any, q: Any) -> rl.Tensor:
    out: rl.Tensor = -p.entropy() - p.mean * q.logits - rl.log1p(-q.probs) - q._cont_bern_log_norm()
    return out


@register_kl(Beta, Exponential)
def _beta_exponential(p: Any, q: Any) -> rl.Tensor:
    out: rl.Tensor = -p.entropy() - q.rate.log() + q.rate * p.mean
    return out


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> rl.Tensor:
    total = p.concentration1 + p.concentration0
    out: rl.Tensor = (
        -p.entropy()
        + q.concentration.lgamma()
        - q.concentration * q.rate.log()
        - (q.concentration - 1) * (p.concentration1.digamma() - total.digamma())
        + q.rate * p.concentration1 / total
    )
    return out


@register_kl(Beta, Normal)
def _beta_normal(p: Any, q: Any) -> rl.Tensor:
    mean, variance = p.mean, q.scale.pow(2)
    total = p.concentration1 + p.concentration0
    second = (mean * (1 - mean) / (total + 1) + mean.pow(2)) * 0.5
    distance = second - q.loc * mean + q.loc.pow(2) * 0.5
    out: rl.Tensor = -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + distance / variance
    return out


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> rl.Tensor:
    kl = -p.entropy() + (q.high - q.low).log()
    return rl.where((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), rl.inf, kl)


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: Any, q: Any) -> rl.Tensor:
    out: rl.Tensor = -p.entropy() - rl.log(q.rate) + q.rate * p.mean
    return out


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p: Any, q: Any) -> rl.Tensor:
    normalizer = 0.5 * (math.log(2.0 * math.pi) + rl.square(q.loc / q.scale)) + rl.log(q.scale)
    second = p.variance + rl.square(p.mean) - 2.0 * q.loc * p.mean
    out: rl.Tensor = -p.entropy() + normalizer + second / (2.0 * rl.square(q.scale))
    return out


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> rl.Tensor:
    kl = -p.entropy() + (q.high - q.low).log()
    cut = (q.low >= p.support.lower_bound) | (q.high <= p.support.upper_bound)
    return rl.where(cut, rl.ones_like(kl) * rl.inf, kl)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> rl.Tensor:
    ratio = q.rate / p.rate
    out: rl.Tensor = (
        -q.concentration * rl.log(ratio)
        + ratio
        + rl.lgamma(q.concentration)
        + q.concentration * _euler_gamma
        - (1 + _euler_gamma)
    )
    return out


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> rl.Tensor:
    product, shift = p.rate * q.scale, q.loc / q.scale
    out: rl.Tensor = (
        product.log() - 1 - shift + rl.exp(shift) * product / (product + 1) + product.reciprocal()
    )
    return out


@register_kl(Exponential, Normal)
def _exponential_normal(p: Any, q: Any) -> rl.Tensor:
    variance, rate_square = q.scale.pow(2), p.rate.pow(2)
    distance = rate_square.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    out: rl.Tensor = 0.5 * rl.log(rate_square * variance * 2 * math.pi) - 1 + distance / variance
    return out


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> rl.Tensor:
    out: rl.Tensor = p.mean * q.rate - q.rate.log() - p.entropy()
    return out


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> rl.Tensor:
    product, shift, c = p.rate * q.scale, q.loc / q.scale, p.concentration
    out: rl.Tensor = (
        (c - 1) * c.digamma()
        - c.lgamma()
        - c
        + product.log()
        + c / product
        + rl.exp(shift) * (1 + product.reciprocal()).pow(-c)
        - shift
    )
    return out


@register_kl(Gamma, Normal)
def _gamma_normal(p: Any, q: Any) -> rl.Tensor:
    variance, rate_square, c = q.scale.pow(2), p.rate.pow(2), p.concentration
    distance = 0.5 * (c.pow(2) + c) / rate_square - q.loc * c / p.rate + 0.5 * q.loc.pow(2)
    normalizer = 0.5 * rl.log(rate_square * variance * 2 * math.pi) - c - c.lgamma()
    out: rl.Tensor = normalizer + (c - 1) * c.digamma() + distance / variance
    return out


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Any, q: Any) -> rl.Tensor:
    ratio = p.scale / q.scale
    spread = (math.pi * ratio * 0.5).pow(2) / 3
    distance = ((p.loc + p.scale * _euler_gamma - q.loc) / q.scale).pow(2) * 0.5
    out: rl.Tensor = -(ratio / math.sqrt(2 * math.pi)).log() + spread + distance - (_euler_gamma + 1)
    return out


@register_kl(Laplace, Normal)
def _laplace_normal(p: Any, q: Any) -> rl.Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    distance = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    out: rl.Tensor = -0.5 * rl.log(2 * ratio / math.pi) + ratio + distance / variance - 1
    return out


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> rl.Tensor:
    mean, spread, shift = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    tail = rl.exp(-mean + 0.5 * spread + shift)
    out: rl.Tensor = -spread.log() * 0.5 + mean - shift + tail - (0.5 * (1 + math.log(2 * math.pi)))
    return out


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> rl.Tensor:
    offset = p.loc - q.loc
    relative = offset / p.scale
    # E |x - q.loc| of a normal x
    mean_distance = math.sqrt(2 / math.pi) * p.scale * rl.exp(-0.5 * relative.pow(2)) + offset * rl.erf(
        math.sqrt(0.5) * relative
    )
    out: rl.Tensor = (
        -rl.log(p.scale / q.scale) + mean_distance / q.scale - (0.5 * (1 + math.log(0.5 * math.pi)))
    )
    return out


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> rl.Tensor:
    product = p.scale * q.rate
    kl = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return rl.where(p.alpha <= 1, rl.inf, kl)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> rl.Tensor:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    kl = (
        p.alpha.log()
        - mean_log
        + q.concentration.lgamma()
        - q.concentration * q.rate.log()
        + (1 - q.concentration) * mean_log
        + q.rate * p.alpha * p.scale / (p.alpha - 1)
        - 1
    )
    return rl.where(p.alpha <= 1, rl.inf, kl)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> rl.Tensor:
    common = p.scale / (p.alpha - 1)
    spread = p.alpha * common.pow(2) / (p.alpha - 2) + (p.alpha * common - q.loc).pow(2)
    normalizer = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    kl = normalizer - p.alpha.reciprocal() + spread / (2 * q.scale.pow(2)) - 1
    return rl.where(p.alpha <= 2, rl.inf, kl)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> rl.Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    mean_log_rest = (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    normalizer = (
        q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    )
    kl = (q.concentration0 - 1) * mean_log_rest + normalizer - rl.log(width)
    kl = kl - (q.concentration1 - 1) * mean_log
    return rl.where((p.high > q.support.upper_bound) | (p.low < q.support.lower_bound), rl.inf, kl)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> rl.Tensor:
    kl = -p.entropy() - p.mean * q.logits - rl.log1p(-q.probs) - q._cont_bern_log_norm()
    outside = (p.high >= q.support.upper_bound) | (p.low <= q.support.lower_bound)
    return rl.where(outside, rl.ones_like(kl) * rl.inf, kl)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> rl.Tensor:
    kl = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return rl.where(p.low < q.support.lower_bound, rl.inf, kl)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> rl.Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    kl = (
        -width.log()
        + q.concentration.lgamma()
        - q.concentration * q.rate.log()
        + (1 - q.concentration) * mean_log
        + q.rate * (p.high + p.low) / 2
    )
    return rl.where(p.low < q.support.lower_bound, rl.inf, kl)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> rl.Tensor:
    common = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    out: rl.Tensor = common.log() + 0.5 * (high + low) - common * (rl.exp(-high) - rl.exp(-low))
    return out


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> rl.Tensor:
    width = p.high - p.low
    normalizer = (math.sqrt(math.pi * 2) * q.scale / width).log()
    spread = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    out: rl.Tensor = normalizer + 0.5 * spread / q.scale.pow(2)
    return out


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> rl.Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    kl = mean_log * (q.alpha + 1) - (q.alpha * q.scale.pow(q.alpha) * width).log()
    return rl.where(p.low < q.support.lower_bound, rl.inf, kl)
