"""Utilities of models: clipping, vectors of parameters, packing, parametrisations, pruning."""

from __future__ import annotations

from . import rnn as rnn
from .clip_grad import (
    clip_grad_norm as clip_grad_norm,
    clip_grad_norm_ as clip_grad_norm_,
    clip_grad_value_ as clip_grad_value_,
    clip_grads_with_norm_ as clip_grads_with_norm_,
    get_total_norm as get_total_norm,
)
from .convert_parameters import (
    parameters_to_vector as parameters_to_vector,
    vector_to_parameters as vector_to_parameters,
)

# These two files have the name of their function, which must win: a file loaded later would take its place here.
from .spectral_norm import remove_spectral_norm as remove_spectral_norm, spectral_norm as spectral_norm
from .weight_norm import remove_weight_norm as remove_weight_norm, weight_norm as weight_norm

# Loaded when first asked for: the file of each.
_LATER = {
    "convert_conv2d_weight_memory_format": "memory_format",
    "convert_conv3d_weight_memory_format": "memory_format",
    "fuse_conv_bn_eval": "fusion",
    "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion",
    "skip_init": "init",
}
_FILES = ("fusion", "init", "memory_format", "parametrizations", "parametrize", "prune", "stateless")

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
    "parameters_to_vector", "parametrizations", "parametrize", "prune", "remove_spectral_norm",
    "remove_weight_norm", "rnn", "spectral_norm", "stateless", "vector_to_parameters", "weight_norm", *_LATER,
]  # fmt: skip


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LATER:
        value = getattr(import_module(f"rushlight.nn.utils.{_LATER[name]}"), name)
    elif name in _FILES:
        value = import_module(f"rushlight.nn.utils.{name}")
    else:
        from rushlight._core.unsupported import no_name

        raise no_name(__name__, name)
    globals()[name] = value
    return value
