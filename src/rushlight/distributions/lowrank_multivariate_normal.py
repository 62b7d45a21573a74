from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv, _half_log_det
from .utils import _standard_normal, lazy_property, like

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W: rl.Tensor, D: rl.Tensor) -> rl.Tensor:
    """The Cholesky factor of I + W^T D^-1 W: as small as the rank."""
    capacitance = rl.matmul(W.mT / D.unsqueeze(-2), W)
    eye = rl.eye(W.shape[-1], dtype=W.dtype, device=W.device)
    return rl.linalg.cholesky(capacitance + eye)


def _batch_lowrank_logdet(W: rl.Tensor, D: rl.Tensor, capacitance_tril: rl.Tensor) -> rl.Tensor:
    return 2 * _half_log_det(capacitance_tril) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(
    W: rl.Tensor, D: rl.Tensor, x: rl.Tensor, capacitance_tril: rl.Tensor
) -> rl.Tensor:
    """x^T (W W^T + D)^-1 x, by the matrix inversion lemma."""
    projected = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, projected)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance W W^T + diag(D), in time linear in their length n.

    Args:
        loc (Tensor or float): (..., n), the mean.
        cov_factor (Tensor): (..., n, r), W, usually with r much smaller than n.
        cov_diag (Tensor): (..., n), D, above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> W = torch.tensor([[1.0], [0.0]])
        >>> m = torch.distributions.LowRankMultivariateNormal(torch.zeros(2), W, torch.ones(2))
        >>> m.covariance_matrix
        tensor([[2., 0.],
                [0., 1.]])
        >>> m.log_prob(torch.zeros(2))
        tensor(-2.1845)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: rl.Tensor, cov_factor: rl.Tensor, cov_diag: rl.Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                f"cov_factor must be at least two-dimensional: batch dimensions and a matrix, got {cov_factor.shape}"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = rl.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        names = ("loc", "cov_factor", "cov_diag")
        new = self._expanded(LowRankMultivariateNormal, batch_shape, names, _instance=_instance)
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril
        made: Self = new
        return made

    @property
    def mean(self) -> rl.Tensor:
        return self.loc

    @property
    def mode(self) -> rl.Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> rl.Tensor:
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        return (W.pow(2).sum(-1) + D).expand(self._batch_shape + self._event_shape)

    def _square(self, matrix: rl.Tensor) -> rl.Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> rl.Tensor:
        # (D + W W^T) = sqrt(D) (I + (W / sqrt D)(W / sqrt D)^T) sqrt(D): better conditioned inside
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        root = D.sqrt().unsqueeze(-1)
        scaled = W / root
        eye = rl.eye(D.shape[-1], dtype=D.dtype, device=D.device)
        return self._square(root * rl.linalg.cholesky(rl.matmul(scaled, scaled.mT) + eye))

    @lazy_property
    def covariance_matrix(self) -> rl.Tensor:
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        return self._square(rl.matmul(W, W.mT) + rl.diag_embed(D))

    @lazy_property
    def precision_matrix(self) -> rl.Tensor:
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        projected = W.mT / D.unsqueeze(-2)
        solved = rl.linalg.solve_triangular(self._capacitance_tril, projected, upper=False)
        return self._square(rl.diag_embed(D.reciprocal()) - rl.matmul(solved.mT, solved))

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        # One noise for the factor's columns, one for the diagonal.
        common = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], **like(self.loc))
        own = _standard_normal(shape, **like(self.loc)) * self._unbroadcasted_cov_diag.sqrt()
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, common) + own

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        W, D, tril = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        distance = _batch_lowrank_mahalanobis(W, D, value - self.loc, tril)
        log_det = _batch_lowrank_logdet(W, D, tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> rl.Tensor:
        log_det = _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return entropy if len(self._batch_shape) == 0 else entropy.expand(self._batch_shape)
