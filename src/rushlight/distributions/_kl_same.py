"""KL divergences between two distributions of one family."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis, _half_log_det
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost
from .utils import euler_constant as _euler_gamma


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> rl.Tensor:
    softplus = rl.nn.functional.softplus
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = rl.where(q.probs == 0, rl.inf, one)
    one = rl.where(p.probs == 0, 0.0, one)
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zero = rl.where(q.probs == 1, rl.inf, zero)
    zero = rl.where(p.probs == 1, 0.0, zero)
    return one + zero


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> rl.Tensor:
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    out: rl.Tensor = (
        q.concentration1.lgamma()
        + q.concentration0.lgamma()
        + total_p.lgamma()
        - (p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma())
        + (p.concentration1 - q.concentration1) * rl.digamma(p.concentration1)
        + (p.concentration0 - q.concentration0) * rl.digamma(p.concentration0)
        + (total_q - total_p) * rl.digamma(total_p)
    )
    return out


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> rl.Tensor:
    more, fewer = p.total_count > q.total_count, p.total_count < q.total_count
    if bool(fewer.any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count has no closed form"
        )
    one_trial = p.probs * (p.logits - q.logits) + rl.log1p(-p.probs) - rl.log1p(-q.probs)
    out: rl.Tensor = (one_trial * p.total_count).masked_fill(more, math.inf)
    return out


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> rl.Tensor:
    t = p.probs * (p.logits - q.logits)
    t = rl.where(q.probs == 0, rl.inf, t)
    t = rl.where(p.probs == 0, 0.0, t)
    return t.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> rl.Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> rl.Tensor:
    out: rl.Tensor = (
        p.mean * (p.logits - q.logits)
        + p._cont_bern_log_norm()
        + rl.log1p(-p.probs)
        - q._cont_bern_log_norm()
        - rl.log1p(-q.probs)
    )
    return out


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> rl.Tensor:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    mean_log = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    out: rl.Tensor = (
        total_p.lgamma()
        - total_q.lgamma()
        - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
        + ((p.concentration - q.concentration) * mean_log).sum(-1)
    )
    return out


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> rl.Tensor:
    ratio = q.rate / p.rate
    out: rl.Tensor = -ratio.log() + ratio - 1
    return out


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> rl.Tensor:
    # the Bregman divergence of the log normaliser between the natural parameters
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families is no Bregman divergence: "
            f"{type(p).__name__} and {type(q).__name__}"
        )
    p_params = [param.detach().requires_grad_() for param in p._natural_params]
    q_params = q._natural_params
    with rl.enable_grad():
        normalizer = p._log_normalizer(*p_params)
        gradients = rl.autograd.grad(normalizer.sum(), p_params, create_graph=True)
    result = q._log_normalizer(*q_params) - normalizer
    for a, b, g in zip(p_params, q_params, gradients, strict=True):
        result = result - _sum_rightmost((b - a) * g, len(q.event_shape))
    out: rl.Tensor = result
    return out


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> rl.Tensor:
    out: rl.Tensor = (
        q.concentration * (p.rate / q.rate).log()
        + rl.lgamma(q.concentration)
        - rl.lgamma(p.concentration)
        + (p.concentration - q.concentration) * rl.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )
    return out


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> rl.Tensor:
    ratio, q_loc, p_loc = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    out: rl.Tensor = (
        -ratio.log()
        - q_loc
        + p_loc
        + ratio * _euler_gamma
        + rl.exp(q_loc + (1 + ratio).lgamma() - p_loc)
        - (1 + _euler_gamma)
    )
    return out


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> rl.Tensor:
    out: rl.Tensor = (-q.probs).log1p() / -p.probs - q.logits - p.entropy()
    return out


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> rl.Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> rl.Tensor:
    # With both lengths in units of q's scale
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs() / q.scale
    out: rl.Tensor = distance - ratio.log() + ratio * (-distance / ratio).exp() - 1
    return out


def _same_event(p: Any, q: Any, names: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {names} with different event shapes cannot be computed")


def _trace_of_square(matrix: rl.Tensor) -> rl.Tensor:
    """trace(M M^T)"""
    return matrix.pow(2).sum((-2, -1))


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _lowrank_lowrank(p: Any, q: Any) -> rl.Tensor:
    _same_event(p, q, "Low Rank Multivariate Normals")
    q_W, q_D, q_tril = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril
    p_W, p_D, p_tril = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag, p._capacitance_tril
    log_dets = _batch_lowrank_logdet(q_W, q_D, q_tril) - _batch_lowrank_logdet(p_W, p_D, p_tril)
    distance = _batch_lowrank_mahalanobis(q_W, q_D, q.loc - p.loc, q_tril)
    # trace(Q^-1 P), Q^-1 by the matrix inversion lemma
    A = rl.linalg.solve_triangular(q_tril, q_W.mT / q_D.unsqueeze(-2), upper=False)
    trace = (
        (p_D / q_D).sum(-1)
        + _trace_of_square(p_W * q_D.rsqrt().unsqueeze(-1))
        - _trace_of_square(A * p_D.sqrt().unsqueeze(-2))
        - _trace_of_square(A.matmul(p_W))
    )
    out: rl.Tensor = 0.5 * (log_dets + trace + distance - p.event_shape[0])
    return out


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _normal_lowrank(p: Any, q: Any) -> rl.Tensor:
    _same_event(p, q, "(Low Rank) Multivariate Normals")
    q_W, q_D, q_tril = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril
    p_tril = p._unbroadcasted_scale_tril
    log_dets = _batch_lowrank_logdet(q_W, q_D, q_tril) - 2 * _half_log_det(p_tril)
    distance = _batch_lowrank_mahalanobis(q_W, q_D, q.loc - p.loc, q_tril)
    A = rl.linalg.solve_triangular(q_tril, q_W.mT / q_D.unsqueeze(-2), upper=False)
    trace = _trace_of_square(p_tril * q_D.rsqrt().unsqueeze(-1)) - _trace_of_square(A.matmul(p_tril))
    out: rl.Tensor = 0.5 * (log_dets + trace + distance - p.event_shape[0])
    return out


def _solve_expanded(tril: rl.Tensor, right: rl.Tensor) -> rl.Tensor:
    batch = rl.broadcast_shapes(tril.shape[:-2], right.shape[:-2])
    tril = tril.expand(batch + tril.shape[-2:])
    return rl.linalg.solve_triangular(tril, right.expand(batch + right.shape[-2:]), upper=False)


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _lowrank_normal(p: Any, q: Any) -> rl.Tensor:
    _same_event(p, q, "(Low Rank) Multivariate Normals")
    p_W, p_D = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    q_tril = q._unbroadcasted_scale_tril
    log_dets = 2 * _half_log_det(q_tril) - _batch_lowrank_logdet(p_W, p_D, p._capacitance_tril)
    distance = _batch_mahalanobis(q_tril, q.loc - p.loc)
    trace = _trace_of_square(_solve_expanded(q_tril, p_W)) + _trace_of_square(
        _solve_expanded(q_tril, rl.diag_embed(p_D.sqrt()))
    )
    out: rl.Tensor = 0.5 * (log_dets + trace + distance - p.event_shape[0])
    return out


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> rl.Tensor:
    _same_event(p, q, "Multivariate Normals")
    p_tril, q_tril = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    half_log_dets = _half_log_det(q_tril) - _half_log_det(p_tril)
    trace = _trace_of_square(_solve_expanded(q_tril, p_tril))
    distance = _batch_mahalanobis(q_tril, q.loc - p.loc)
    out: rl.Tensor = half_log_dets + 0.5 * (trace + distance - p.event_shape[0])
    return out


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> rl.Tensor:
    ratio, offset = p.scale / q.scale, (p.loc - q.loc) / q.scale
    out: rl.Tensor = 0.5 * (ratio * ratio + offset * offset - 1) - ratio.log()
    return out


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> rl.Tensor:
    ratio = q.alpha / p.alpha
    kl = ratio - ratio.log() - 1 + q.alpha * (p.scale / q.scale).log()
    out: rl.Tensor = kl.masked_fill(p.scale < q.scale, math.inf)  # p reaches below q's support
    return out


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> rl.Tensor:
    out: rl.Tensor = q.rate - p.rate + p.rate * (p.rate / q.rate).log()
    return out


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> rl.Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> rl.Tensor:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return rl.where((q.low > p.low) | (q.high < p.high), rl.inf, kl)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> rl.Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> rl.Tensor:
    spread = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    out: rl.Tensor = spread - (4 * p.scale * q.scale).log()
    return out
