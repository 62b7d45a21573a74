from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: rl.Tensor, concentration: rl.Tensor, grad_output: rl.Tensor) -> rl.Tensor:
    """The gradient of a draw x by the concentration."""
    total = concentration.sum(-1, True).expand_as(concentration)
    grad = rl._dirichlet_grad(x, concentration, total)
    return grad * (grad_output - (x * grad_output).sum(-1, True))


class _Dirichlet:
    """Namespace of the differentiable draw, made when first used (autograd loads with the core)."""

    function: Any = None

    @classmethod
    def apply(cls, concentration: rl.Tensor) -> rl.Tensor:
        if cls.function is None:

            class Draw(rl.autograd.Function):
                @staticmethod
                def forward(ctx: Any, concentration: rl.Tensor) -> Any:
                    x = rl._sample_dirichlet(concentration)
                    ctx.save_for_backward(x, concentration)
                    return x

                @staticmethod
                def backward(ctx: Any, grad_output: rl.Tensor) -> Any:
                    x, concentration = ctx.saved_tensors
                    return _Dirichlet_backward(x, concentration, grad_output)

            cls.function = Draw
        out: rl.Tensor = cls.function.apply(concentration)
        return out


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution on the simplex, with density proportional to the product of x_i^(c_i - 1).

    Args:
        concentration (Tensor): (..., K), c, above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Dirichlet(torch.tensor([1.0, 2.0, 1.0]))
        >>> m.mean, m.log_prob(torch.tensor([0.25, 0.5, 0.25]))
        (tensor([0.2500, 0.5000, 0.2500]), tensor(1.0986))
        >>> m.sample().sum()
        tensor(1.)
    """

    concentration: rl.Tensor

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: rl.Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        made: Self = self._expanded(Dirichlet, batch_shape, ("concentration",), _instance=_instance)
        return made

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        c = self.concentration
        return rl.xlogy(c - 1.0, value).sum(-1) + rl.lgamma(c.sum(-1)) - rl.lgamma(c).sum(-1)

    @property
    def mean(self) -> rl.Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> rl.Tensor:
        excess = (self.concentration - 1).clamp(min=0.0)
        mode = excess / excess.sum(-1, True)
        # the density grows without bound at every corner: name one
        corners = (self.concentration < 1).all(-1)
        corner = rl.nn.functional.one_hot(mode.argmax(-1), mode.shape[-1]).to(mode)
        return rl.where(corners.unsqueeze(-1), corner, mode)

    @property
    def variance(self) -> rl.Tensor:
        c = self.concentration
        total = c.sum(-1, True)
        return c * (total - c) / (total.pow(2) * (total + 1))

    def entropy(self) -> rl.Tensor:
        c = self.concentration
        k, total = c.size(-1), c.sum(-1)
        return (
            rl.lgamma(c).sum(-1)
            - rl.lgamma(total)
            - (k - total) * rl.digamma(total)
            - ((c - 1.0) * rl.digamma(c)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[rl.Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: rl.Tensor) -> rl.Tensor:
        return x.lgamma().sum(-1) - rl.lgamma(x.sum(-1))
