"""Transforms of vectors and matrices as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight.distributions import constraints
from rushlight.distributions.transforms._base import Plain, Transform, need_dims
from rushlight.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix


def _after_one(x: rl.Tensor) -> rl.Tensor:
    """(1, x[0], ..., x[-2]) along the last dimension."""
    return rl.nn.functional.pad(x[..., :-1], (1, 0), value=1.0)


class ReshapeTransform(Transform):
    """Reshapes each event; the determinant is 1.

    Args:
        in_shape (Size): of the events of x.
        out_shape (Size): of those of y.
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> torch.distributions.ReshapeTransform((4,), (2, 2))(torch.zeros(3, 4)).shape
        torch.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = rl.Size(in_shape), rl.Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                "in_shape, out_shape have different numbers of elements: "
                f"{tuple(self.in_shape)} and {tuple(self.out_shape)}"
            )
        super().__init__(cache_size)

    def _arguments(self) -> Any:
        return self.in_shape, self.out_shape

    domain = constraints.dependent_property(
        lambda self: constraints.independent(constraints.real, len(self.in_shape))
    )
    codomain = constraints.dependent_property(
        lambda self: constraints.independent(constraints.real, len(self.out_shape))
    )

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        batch = x.shape[: x.dim() - len(self.in_shape)]
        return x.reshape(*batch, *self.out_shape)

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        batch = y.shape[: y.dim() - len(self.out_shape)]
        return y.reshape(*batch, *self.in_shape)

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        batch = x.dim() - len(self.in_shape)
        return x.new_zeros(x.shape[:batch])

    def forward_shape(self, shape: Any) -> Any:
        return _exchanged(rl.Size(shape), self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _exchanged(rl.Size(shape), self.out_shape, self.in_shape)


def _exchanged(shape: rl.Size, end: rl.Size, other: rl.Size) -> rl.Size:
    """The shape with its end, which must be as given, exchanged for another."""
    need_dims(shape, len(end))
    batch = len(shape) - len(end)
    if shape[batch:] != end:
        raise ValueError(f"Shape mismatch: events of shape {tuple(end)} are expected, got {tuple(shape)}")
    return shape[:batch] + other


class SoftmaxTransform(Plain):
    """The transform y = exp(x) / sum(exp(x)) onto the simplex, which is not one to one.

    Args:
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> torch.distributions.SoftmaxTransform()(torch.zeros(4))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        return x.softmax(-1)

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        need_dims(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Plain):
    """From n real numbers onto the simplex of n + 1: each takes its share of the stick that is left.

    Args:
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> y = torch.distributions.StickBreakingTransform()(torch.zeros(2))
        >>> y, y.sum()
        (tensor([0.3333, 0.3333, 0.3333]), tensor(1.0000))
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    @staticmethod
    def _centred(x: rl.Tensor) -> rl.Tensor:
        """x - log(number of pieces still to come): zeros then give equal pieces."""
        to_come = rl.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device)
        return x - to_come.log()

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        share = rl.sigmoid(self._centred(x))
        left = (1 - share).cumprod(-1)
        pad = rl.nn.functional.pad
        return pad(share, (0, 1), value=1.0) * pad(left, (1, 0), value=1.0)

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        pieces = y[..., :-1]
        left = (1 - pieces.cumsum(-1)).clamp_min(rl.finfo(y.dtype).tiny)
        odds = pieces.log() - left.log()
        return odds - self._centred(rl.zeros_like(odds))

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        # piece i is share_i * left, and d share_i / dx_i = share_i * (1 - share_i)
        z = self._centred(x)
        return (y[..., :-1].log() + rl.nn.functional.logsigmoid(-z)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        need_dims(shape, 1)
        *batch, n = shape
        return rl.Size((*batch, n + 1))

    def inverse_shape(self, shape: Any) -> Any:
        need_dims(shape, 1)
        *batch, n = shape
        return rl.Size((*batch, n - 1))


class CorrCholeskyTransform(Transform):
    """From D (D - 1) / 2 real numbers onto the Cholesky factors of D x D correlation matrices.

    Each number becomes, by tanh, the partial correlation that takes its share of what its row has left.

    Args:
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> L = torch.distributions.CorrCholeskyTransform()(torch.tensor([0.5]))
        >>> L @ L.mT
        tensor([[1.0000, 0.4621],
                [0.4621, 1.0000]])
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        rim = 1 - rl.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(-rim, rim), diag=-1)
        left = _after_one((1 - partial * partial).sqrt().cumprod(-1))
        return left * (partial + rl.eye(partial.shape[-1], dtype=x.dtype, device=x.device))

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        left = _after_one(1 - (y * y).cumsum(-1)).clamp_min(rl.finfo(y.dtype).tiny)
        return tril_matrix_to_vec(y / left.sqrt(), diag=-1).atanh()

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor, intermediates: Any = None) -> rl.Tensor:
        # An entry is tanh(x) * sqrt(left of its row). The first column always has all of it left.
        left = 1 - (y * y).cumsum(-1)
        from_left = tril_matrix_to_vec(left, diag=-2).log().sum(-1) / 2
        from_tanh = 2 * (math.log(2.0) - x - rl.nn.functional.softplus(-2 * x)).sum(-1)
        return from_left + from_tanh

    def forward_shape(self, shape: Any) -> Any:
        need_dims(shape, 1)
        *batch, count = shape
        size = (1 + math.isqrt(1 + 8 * count)) // 2
        if size * (size - 1) != 2 * count:
            raise ValueError(f"Input is not a flattened lower-diagonal number: {count} is no D * (D - 1) / 2")
        return rl.Size((*batch, size, size))

    def inverse_shape(self, shape: Any) -> Any:
        need_dims(shape, 2)
        *batch, rows, columns = shape
        if rows != columns:
            raise ValueError(f"Input is not square: {tuple(shape)}")
        return rl.Size((*batch, rows * (rows - 1) // 2))


def _with_diagonal(x: rl.Tensor, function: Callable[[rl.Tensor], rl.Tensor]) -> rl.Tensor:
    """The strict lower triangle, and a function of the diagonal."""
    return x.tril(-1) + function(x.diagonal(dim1=-2, dim2=-1)).diag_embed()


class LowerCholeskyTransform(Plain):
    """From square matrices onto lower triangular ones with a positive diagonal, which gets the exponential.

    Args:
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> torch.distributions.LowerCholeskyTransform()(torch.ones(2, 2))
        tensor([[2.7183, 0.0000],
                [1.0000, 2.7183]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        return _with_diagonal(x, rl.exp)

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        return _with_diagonal(y, rl.log)


class PositiveDefiniteTransform(Plain):
    """From square matrices onto positive definite ones, L L^T of LowerCholeskyTransform's L.

    Args:
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> torch.distributions.PositiveDefiniteTransform()(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        factor = _with_diagonal(x, rl.exp)
        return factor @ factor.mT

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        return _with_diagonal(rl.linalg.cholesky(y), rl.log)
