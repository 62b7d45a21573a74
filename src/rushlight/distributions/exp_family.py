"""Exponential families: entropy from the log normaliser."""

import rushlight as rl

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """p(x) = exp(<t(x), theta> - F(theta) + k(x)): subclasses give theta, F and E[-k(x)]."""

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError

    def entropy(self):
        # H = E[-k] + F(theta) - <theta, grad F(theta)>
        result = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with rl.enable_grad():
            normalizer = self._log_normalizer(*params)
            gradients = rl.autograd.grad(normalizer.sum(), params, create_graph=True)
        result = result + normalizer
        for p, g in zip(params, gradients, strict=True):
            result = result - (p * g).reshape(tuple(self._batch_shape) + (-1,)).sum(-1)
        return result
