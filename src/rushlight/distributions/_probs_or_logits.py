"""What discrete distributions given by `probs` or `logits` share."""

from __future__ import annotations

from typing import Any

from .utils import lazy_property, logits_to_probs, probs_to_logits


def given_one(probs, logits):
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class Binary:
    """One probability per trial; the parameter not given is derived when asked for."""

    @property
    def _param(self):
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self):
        return self._param.size()

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)


class Delegating:
    """Distributions over a Categorical or a Binary base: parameters are the base's."""

    _base_params: Any

    @property
    def _param(self):
        return self._base_params._param

    @property
    def probs(self):
        return self._base_params.probs

    @property
    def logits(self):
        return self._base_params.logits

    @property
    def param_shape(self):
        return self._base_params.param_shape

    def _new(self, *args, **kwargs):
        return self._base_params._new(*args, **kwargs)
