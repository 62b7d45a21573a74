from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import _half_log_det, _precision_to_scale_tril
from .utils import is_number, lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x: rl.Tensor, p: int) -> rl.Tensor:
    return rl.digamma(x.unsqueeze(-1) - rl.arange(p, dtype=x.dtype, device=x.device) / 2).sum(-1)


class Wishart(ExponentialFamily):
    """The Wishart distribution of n x n positive definite matrices: X^T X of df rows X, normal with covariance S.

    Args:
        df (Tensor or float): the degrees of freedom, above n - 1.
        covariance_matrix (Tensor): (..., n, n), S; one of the three is given. Default: None
        precision_matrix (Tensor): (..., n, n), the inverse of S. Default: None
        scale_tril (Tensor): (..., n, n), the Cholesky factor of S. Default: None
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Wishart(torch.tensor(4.0), torch.eye(2))
        >>> m.mean, m.log_prob(torch.eye(2))
        (tensor([[4., 0.],
                [0., 4.]]), tensor(-4.2242))
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: rl.Tensor | float,
        covariance_matrix: rl.Tensor | None = None,
        precision_matrix: rl.Tensor | None = None,
        scale_tril: rl.Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
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
        if is_number(df):
            df = rl.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = rl.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        if bool(self.df.le(event_shape[-1] - 1).any()):
            raise ValueError(
                f"Value of df={df} expected to be greater than {event_shape[-1] - 1}, the matrix's size less one"
            )
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self._batch_shape, self._event_shape = batch_shape, event_shape  # arg_constraints needs them
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if bool(self.df.lt(event_shape[-1]).any()):
            warnings.warn(
                "Low df values detected: below the size of the matrix, draws are nearly always singular",
                stacklevel=2,
            )
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = rl.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)
        self._dist_chi2 = self._diagonal_chi2()

    def _diagonal_chi2(self) -> Chi2:
        p = self._event_shape[-1]
        steps = rl.arange(p, dtype=self.df.dtype, device=self.df.device)
        return Chi2(self.df.unsqueeze(-1) - steps.expand(tuple(self._batch_shape) + (-1,)))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        names = ("df", "covariance_matrix", "precision_matrix", "scale_tril")
        new = self._get_checked_instance(Wishart, _instance)
        new._batch_shape, new._event_shape = rl.Size(batch_shape), self._event_shape
        new = self._expanded(Wishart, batch_shape, names, _instance=new)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        new._dist_chi2 = new._diagonal_chi2()
        made: Self = new
        return made

    def _square_shape(self) -> Any:
        return self._batch_shape + self._event_shape

    @lazy_property
    def scale_tril(self) -> rl.Tensor:
        return self._unbroadcasted_scale_tril.expand(self._square_shape())

    @lazy_property
    def covariance_matrix(self) -> rl.Tensor:
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._square_shape())

    @lazy_property
    def precision_matrix(self) -> rl.Tensor:
        return rl.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._square_shape())

    def _df(self) -> rl.Tensor:
        return self.df.view(tuple(self._batch_shape) + (1, 1))

    @property
    def mean(self) -> rl.Tensor:
        return self._df() * self.covariance_matrix

    @property
    def mode(self) -> rl.Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, float("nan"))
        return factor.view(tuple(self._batch_shape) + (1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> rl.Tensor:
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        return self._df() * (V.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        """L A A^T L^T for a lower triangular A of chi (diagonal) and normal variables."""
        sample_shape = rl.Size(sample_shape)
        p = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed(dim1=-2, dim2=-1)
        i, j = rl.tril_indices(p, p, offset=-1)
        shape = sample_shape + self._batch_shape + (p * (p - 1) // 2,)
        noise[..., i, j] = rl.randn(shape, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Sequence[int] = (), max_try_correction: int | None = None) -> rl.Tensor:
        """A draw; singular ones (rounding) are drawn again up to max_try_correction times."""
        tries = 10 if max_try_correction is None else max_try_correction
        sample_shape = rl.Size(sample_shape)
        # PyTorch throws its first draw away: so do we, to stay on its random stream
        with rl.no_grad():
            self._bartlett_sampling(sample_shape)
        sample = self._bartlett_sampling((sample_shape.numel(),))
        batch_dims = tuple(range(1, 1 + len(self._batch_shape)))
        for _ in range(tries):
            singular = ~self.support.check(sample.detach())
            singular = singular.any(batch_dims) if batch_dims else singular
            if not bool(singular.any()):
                break
            warnings.warn("Singular sample detected.", stacklevel=2)
            again = self._bartlett_sampling((int(singular.sum()),))
            sample = sample.index_put((singular,), again)
        return sample.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        nu, p, tril = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        solved = rl.cholesky_solve(value, tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -nu * (p * math.log(2) / 2 + _half_log_det(tril))
            - rl.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * rl.linalg.slogdet(value).logabsdet
            - solved / 2
        )

    def entropy(self) -> rl.Tensor:
        p, half_df = self._event_shape[-1], self.df / 2
        scale = _half_log_det(self._unbroadcasted_scale_tril) + p / 2 * math.log(2)
        from_gamma = rl.mvlgamma(half_df, p) - (half_df - (p + 1) / 2) * _mvdigamma(half_df, p)
        return (p + 1) * scale + from_gamma + p * half_df

    @property
    def _natural_params(self) -> tuple[rl.Tensor, ...]:
        p = self._event_shape[-1]
        return self.precision_matrix / -2, (self.df - (p + 1)) / 2

    def _log_normalizer(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        p = self._event_shape[-1]
        half_df = y + (p + 1) / 2
        log_det = p * math.log(2) - rl.linalg.slogdet(-2 * x).logabsdet
        return rl.mvlgamma(half_df, p) + half_df * log_det
