from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all, like

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors L of random correlation matrices, with density of L L^T proportional to det^(c - 1).

    Args:
        dim (int): the size of the matrices, at least 2.
        concentration (Tensor or float): c; 1 is uniform, above 1 favours weak correlations. Default: 1.0
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> L = torch.distributions.LKJCholesky(3, 0.5).sample()
        >>> L.shape, torch.allclose((L @ L.mT).diagonal(), torch.ones(3))
        (torch.Size([3, 3]), True)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: rl.Tensor | float = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.size(), (dim, dim), validate_args)
        # onion method: row i has squared length y ~ Beta below the diagonal, in a uniform direction
        like: dict[str, Any] = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = rl.cat([rl.zeros(1, **like), rl.arange(dim - 1, **like)])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._expanded(LKJCholesky, batch_shape, ("concentration",), _instance=_instance)
        new.dim = self.dim
        new._beta = self._beta.expand(rl.Size(batch_shape) + (self.dim,))
        made: Self = new
        return made

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        with rl.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            like: dict[str, Any] = {"dtype": y.dtype, "device": y.device}
            direction = rl.randn(self._extended_shape(sample_shape), **like).tril(-1)
            direction = direction / direction.norm(dim=-1, keepdim=True)
            direction[..., 0, :].fill_(0.0)  # the first row has nothing below the diagonal
            w = rl.sqrt(y) * direction
            left = rl.clamp(1 - (w**2).sum(-1), min=rl.finfo(w.dtype).tiny)
            return w + rl.diag_embed(left.sqrt())

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        eta, n = self.concentration, self.dim - 1
        # prod_i L_ii^(dim - i + 2 (eta - 1)), i from 2: the powers fall by one a row
        powers = 2 * eta.unsqueeze(-1) + rl.arange(n - 1, -1, -1, **like(eta)) - 2
        log_density = (powers * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        top = eta + n / 2
        constant = rl.mvlgamma(top - 0.5, n) - n * top.lgamma() + n / 2 * math.log(math.pi)
        return log_density - constant
