"""Dropout: single elements, whole channels, and the kind that keeps selu's statistics."""

from __future__ import annotations

import warnings

import rushlight as rl
from rushlight._C import Tensor


def _check(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets elements to 0 with probability p and scales the others by 1 / (1 - p)."""
    _check(p)
    return rl.dropout_(input, p, training) if inplace else rl.dropout(input, p, training)


def _drop_channels(input, p, training, inplace):
    """Channel dropout of an input (N, C, ...)."""
    return rl.feature_dropout_(input, p, training) if inplace else rl.feature_dropout(input, p, training)


def _drop_channels_of_one(input, p, training, inplace):
    """Channel dropout of a single sample (C, ...)."""
    batch = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    out = _drop_channels(batch, p, training, inplace)
    return out.squeeze_(0) if inplace else out.squeeze(0)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for selu: sets elements to its floor, and keeps mean 0 and variance 1."""
    _check(p)
    return rl.alpha_dropout_(input, p, training) if inplace else rl.alpha_dropout(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """alpha_dropout of whole channels."""
    _check(p)
    if inplace:
        return rl.feature_alpha_dropout_(input, p, training)
    return rl.feature_alpha_dropout(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drops whole channels of (N, C, L) or (C, L)."""
    _check(p)
    ndim = input.dim()
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input: it drops channels of (C, L) or "
            "(N, C, L); dropout drops single elements of any shape"
        )
    return (_drop_channels_of_one if ndim == 2 else _drop_channels)(input, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drops whole channels of (N, C, H, W)."""
    _check(p)
    ndim = input.dim()
    if ndim not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {ndim}-D input to dropout2d, which is deprecated and will result in an "
            "error in a future release: it drops channels of (N, C, H, W); dropout drops single elements",
            stacklevel=2,
        )
    if ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired: it is taken as (N, C, L), for which dropout1d is meant; a single (C, H, W) needs unsqueeze(0)",
            stacklevel=2,
        )
    return _drop_channels(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drops whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    _check(p)
    ndim = input.dim()
    if ndim not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {ndim}-D input to dropout3d, which is deprecated and will result in an "
            "error in a future release.",
            stacklevel=2,
        )
    return (_drop_channels_of_one if ndim == 4 else _drop_channels)(input, p, training, inplace)
