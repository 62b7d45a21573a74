"""What discrete distributions given by `probs` or `logits` share."""

from __future__ import annotations

from typing import Any

from rushlight import Size, Tensor

from .utils import lazy_property, logits_to_probs, probs_to_logits


def given_one(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class Binary:
    """One probability per trial; the parameter not given is derived when asked for."""

    @property
    def _param(self) -> Tensor:
        out: Tensor = self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]
        return out

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)


class Delegating:
    """Distributions over a Categorical or a Binary base: parameters are the base's."""

    _base_params: Any

    @property
    def _param(self) -> Tensor:
        out: Tensor = self._base_params._param
        return out

    @property
    def probs(self) -> Tensor:
        out: Tensor = self._base_params.probs
        return out

    @property
    def logits(self) -> Tensor:
        out: Tensor = self._base_params.logits
        return out

    @property
    def param_shape(self) -> Size:
        result: Size = self._base_params.param_shape
        return result

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        out: Tensor = self._base_params._new(*args, **kwargs)
        return out
