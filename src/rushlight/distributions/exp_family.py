"""Exponential families: entropy from the log normaliser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight as rl

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base of exponential families: p(x) = exp(<t(x), theta> - F(theta) + k(x)).

    A subclass gives theta as `_natural_params`, F as `_log_normalizer` and E[-k(x)] as `_mean_carrier_measure`;
    entropy, and KL divergences within a family, follow from derivatives of F.

    Args:
        batch_shape (Size): how many independent distributions there are. Default: ()
        event_shape (Size): the shape of one draw. Default: ()
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> isinstance(torch.distributions.Gamma(1.0, 1.0), torch.distributions.ExponentialFamily)
        True
    """

    @property
    def _natural_params(self) -> tuple[rl.Tensor, ...]:
        raise NotImplementedError

    if TYPE_CHECKING:  # each takes its own natural parameters
        _log_normalizer: Callable[..., rl.Tensor]
    else:

        def _log_normalizer(self, *natural_params) -> rl.Tensor:
            raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> rl.Tensor:
        # H = E[-k] + F(theta) - <theta, grad F(theta)>
        result = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with rl.enable_grad():
            normalizer = self._log_normalizer(*params)
            gradients = rl.autograd.grad(normalizer.sum(), params, create_graph=True)
        result = result + normalizer
        for p, g in zip(params, gradients, strict=True):
            result = result - (p * g).reshape(tuple(self._batch_shape) + (-1,)).sum(-1)
        out: rl.Tensor = result
        return out
