"""Dropout: single elements, whole channels, and the kind that keeps selu's statistics."""

from __future__ import annotations

import warnings

import rushlight as rl
from rushlight._C import Tensor


def _check(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets each element to 0 with probability p and scales the others by 1 / (1 - p); see `nn.Dropout`.

    A call in a forward of your own needs training=self.training, or it drops in evaluation too.

    Args:
        input (Tensor): any shape.
        p (float): probability of an element to become 0. Default: 0.5
        training (bool): False returns the input. Default: True
        inplace (bool): writes the result over the input. Default: False

    Example:
        >>> F.dropout(torch.ones(4), 0.5, training=False)
        tensor([1., 1., 1., 1.])
    """
    _check(p)
    return rl.dropout_(input, p, training) if inplace else rl.dropout(input, p, training)


def _drop_channels(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Channel dropout of an input (N, C, ...)."""
    return rl.feature_dropout_(input, p, training) if inplace else rl.feature_dropout(input, p, training)


def _drop_channels_of_one(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Channel dropout of a single sample (C, ...)."""
    batch = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    out = _drop_channels(batch, p, training, inplace)
    return out.squeeze_(0) if inplace else out.squeeze(0)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Drops elements for networks of SELU, keeping mean 0 and variance 1; see `nn.AlphaDropout`.

    Args:
        input (Tensor): any shape.
        p (float): probability of an element to be dropped. Default: 0.5
        training (bool): False returns the input. Default: False
        inplace (bool): writes the result over the input. Default: False

    Example:
        >>> F.alpha_dropout(torch.zeros(3), 0.5, training=True)
        tensor([-0.7792, -0.7792,  0.7792])
    """
    _check(p)
    return rl.alpha_dropout_(input, p, training) if inplace else rl.alpha_dropout(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Drops whole channels for networks of SELU; see `nn.FeatureAlphaDropout`.

    Args:
        input (Tensor): (N, C, *).
        p (float): probability of a channel to be dropped. Default: 0.5
        training (bool): False returns the input. Default: False
        inplace (bool): writes the result over the input. Default: False

    Example:
        >>> F.feature_alpha_dropout(torch.zeros(1, 2, 2), 0.5, training=True)
        tensor([[[-0.7792, -0.7792],
                 [-0.7792, -0.7792]]])
    """
    _check(p)
    if inplace:
        return rl.feature_alpha_dropout_(input, p, training)
    return rl.feature_alpha_dropout(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets whole channels to 0 with probability p and scales the others by 1 / (1 - p); see `nn.Dropout1d`.

    Args:
        input (Tensor): (N, C, L) or (C, L).
        p (float): probability of a channel to become 0. Default: 0.5
        training (bool): False returns the input. Default: True
        inplace (bool): writes the result over the input. Default: False

    Example:
        >>> F.dropout1d(torch.ones(3, 2))
        tensor([[0., 0.],
                [0., 0.],
                [2., 2.]])
    """
    _check(p)
    ndim = input.dim()
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input: it drops channels of (C, L) or "
            "(N, C, L); dropout drops single elements of any shape"
        )
    return (_drop_channels_of_one if ndim == 2 else _drop_channels)(input, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets whole channels to 0 with probability p and scales the others by 1 / (1 - p); see `nn.Dropout2d`.

    Args:
        input (Tensor): (N, C, H, W); three dimensions are taken for (N, C, L), with a warning.
        p (float): probability of a channel to become 0. Default: 0.5
        training (bool): False returns the input. Default: True
        inplace (bool): writes the result over the input. Default: False

    Example:
        >>> F.dropout2d(torch.ones(1, 3, 1, 2)).flatten(2)
        tensor([[[0., 0.],
                 [0., 0.],
                 [2., 2.]]])
    """
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
    """Sets whole channels to 0 with probability p and scales the others by 1 / (1 - p); see `nn.Dropout3d`.

    Args:
        input (Tensor): (N, C, D, H, W) or (C, D, H, W).
        p (float): probability of a channel to become 0. Default: 0.5
        training (bool): False returns the input. Default: True
        inplace (bool): writes the result over the input. Default: False

    Example:
        >>> F.dropout3d(torch.ones(3, 1, 1, 2)).flatten(1)
        tensor([[0., 0.],
                [0., 0.],
                [2., 2.]])
    """
    _check(p)
    ndim = input.dim()
    if ndim not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {ndim}-D input to dropout3d, which is deprecated and will result in an "
            "error in a future release.",
            stacklevel=2,
        )
    return (_drop_channels_of_one if ndim == 4 else _drop_channels)(input, p, training, inplace)
