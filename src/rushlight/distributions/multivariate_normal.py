from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property, like

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: rl.Tensor, vector: rl.Tensor) -> rl.Tensor:
    """Matrix times vector, both with batch dimensions."""
    return rl.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(tril: rl.Tensor, x: rl.Tensor) -> rl.Tensor:
    """x^T (L L^T)^-1 x for lower triangular L (…, n, n) and x (…, n)."""
    n = x.shape[-1]
    if tril.dim() == 2:  # one matrix for all: a single solve with many right-hand sides
        flat = x.reshape(-1, n)
        solved = rl.linalg.solve_triangular(tril, flat.mT, upper=False)
        return solved.pow(2).sum(-2).reshape(x.shape[:-1])
    batch = rl.broadcast_shapes(tril.shape[:-2], x.shape[:-1])
    tril, x = tril.expand(batch + (n, n)), x.expand(batch + (n,))
    solved = rl.linalg.solve_triangular(tril, x.unsqueeze(-1), upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


def _precision_to_scale_tril(precision: rl.Tensor) -> rl.Tensor:
    """The Cholesky factor of the inverse, through the factor of the matrix read backwards."""
    backwards = rl.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1))
    # precision = backwards backwards^T with `backwards` upper, so the factor sought is the inverse of its transpose
    identity = rl.eye(precision.shape[-1], **like(precision))
    return rl.linalg.solve_triangular(backwards.mT, identity, upper=False)


def _half_log_det(tril: rl.Tensor) -> rl.Tensor:
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class MultivariateNormal(Distribution):
    """Normal vectors with a mean and a covariance S: density proportional to exp(-(x - loc)^T S^-1 (x - loc) / 2).

    Args:
        loc (Tensor or float): (..., n), the mean.
        covariance_matrix (Tensor): (..., n, n), S; one of the three is given. Default: None
        precision_matrix (Tensor): (..., n, n), the inverse of S. Default: None
        scale_tril (Tensor): (..., n, n), the Cholesky factor of S, with which all is computed. Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.MultivariateNormal(torch.zeros(2), torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
        >>> m.event_shape, m.log_prob(torch.zeros(2)), m.scale_tril
        (torch.Size([2]), tensor(-2.3872), tensor([[1.4142, 0.0000],
                [0.7071, 1.2247]]))
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: rl.Tensor,
        covariance_matrix: rl.Tensor | None = None,
        precision_matrix: rl.Tensor | None = None,
        scale_tril: rl.Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            "scale_tril": scale_tril,
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional: batch dimensions and a matrix, got {matrix.shape}"
            )
        batch_shape = rl.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = rl.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        names = ("loc", "covariance_matrix", "precision_matrix", "scale_tril")
        new = self._expanded(MultivariateNormal, batch_shape, names, _instance=_instance)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        made: Self = new
        return made

    def _square_shape(self) -> Any:
        return self._batch_shape + self._event_shape + self._event_shape

    @lazy_property
    def scale_tril(self) -> rl.Tensor:
        return self._unbroadcasted_scale_tril.expand(self._square_shape())

    @lazy_property
    def covariance_matrix(self) -> rl.Tensor:
        factor = self._unbroadcasted_scale_tril
        return rl.matmul(factor, factor.mT).expand(self._square_shape())

    @lazy_property
    def precision_matrix(self) -> rl.Tensor:
        return rl.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._square_shape())

    @property
    def mean(self) -> rl.Tensor:
        return self.loc

    @property
    def mode(self) -> rl.Tensor:
        return self.loc

    @property
    def variance(self) -> rl.Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, **like(self.loc))
        return _batch_mv(self._unbroadcasted_scale_tril, noise) + self.loc

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        half_log_det = _half_log_det(self._unbroadcasted_scale_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - half_log_det

    def entropy(self) -> rl.Tensor:
        half_log_det = _half_log_det(self._unbroadcasted_scale_tril)
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + half_log_det
        return entropy if len(self._batch_shape) == 0 else entropy.expand(self._batch_shape)
