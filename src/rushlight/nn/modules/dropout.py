"""Dropout layers; they do nothing outside training."""

from __future__ import annotations

from rushlight._C import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules._doc import documented
from rushlight.nn.modules.module import Module

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]


# Completed for each class by `documented`.
_CHANNELS_DOC = """Sets whole channels of {data} to 0 with probability p and scales the others by 1 / (1 - p).

Neighbouring elements of a channel are alike, so that dropping them singly (`nn.Dropout`) hides little; this
drops features. After `eval()` the layer returns its input.{single}

Args:
    p (float): probability of a channel to become 0, within [0, 1]. Default: 0.5
    inplace (bool): writes the result over the input. Default: False

Shape:
    input {shape} -> the same, one draw for each channel of each sample

Example:
    >>> y = nn.Dropout{n}d(0.5)(torch.ones({given}))
    >>> y.flatten(2).amax(2)
    tensor([[0., 0., 2., 0., 0., 0.]])
"""
_UNBATCHED = """ A single image (C, H, W)
needs `unsqueeze(0)`: it is taken for a batch (N, C, L), with a warning."""


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Sets each element to 0 with probability p and scales the others: y = x m / (1 - p), m of {0, 1}.

    The scaling keeps the expected value, so that nothing is to be done in evaluation: after `eval()` the layer
    returns its input. Forgetting `model.eval()` is the usual cause of predictions that change from call to call.

    Args:
        p (float): probability of an element to become 0, within [0, 1]. Default: 0.5
        inplace (bool): writes the result over the input. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> layer = nn.Dropout(0.5)
        >>> layer(torch.ones(8))
        tensor([0., 0., 2., 0., 0., 0., 2., 2.])
        >>> layer.eval()(torch.ones(8))
        tensor([1., 1., 1., 1., 1., 1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


@documented(_CHANNELS_DOC, 1, single="", shape="(N, C, L) or (C, L)", given="1, 6, 4")
class Dropout1d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


@documented(_CHANNELS_DOC, 2, single=_UNBATCHED, shape="(N, C, H, W)", given="1, 6, 2, 2")
class Dropout2d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


@documented(_CHANNELS_DOC, 3, single="", shape="(N, C, D, H, W) or (C, D, H, W)", given="1, 6, 2, 2, 2")
class Dropout3d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Drops elements for networks of SELU: sets them to SELU's limit -1.7581 instead of 0, then y = a x + b.

    a and b are chosen so that inputs of mean 0 and variance 1 keep both. After `eval()` the layer returns its
    input. Use it behind `nn.SELU`; behind other activations `nn.Dropout` is meant.

    Args:
        p (float): probability of an element to be dropped, within [0, 1]. Default: 0.5
        inplace (bool): kept for the repr; the input is not changed. Default: False

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.AlphaDropout(0.5)(torch.zeros(6))
        tensor([-0.7792, -0.7792,  0.7792, -0.7792, -0.7792, -0.7792])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """Drops whole channels for networks of SELU, as `nn.AlphaDropout` drops single elements.

    The elements of a dropped channel become SELU's limit -1.7581, then y = a x + b keeps mean 0 and variance 1.
    After `eval()` the layer returns its input.

    Args:
        p (float): probability of a channel to be dropped, within [0, 1]. Default: 0.5
        inplace (bool): kept for the repr; the input is not changed. Default: False

    Shape:
        input (N, C, *) -> (N, C, *), one draw for each of the N x C channels

    Example:
        >>> nn.FeatureAlphaDropout(0.5)(torch.zeros(1, 3, 2))
        tensor([[[-0.7792, -0.7792],
                 [-0.7792, -0.7792],
                 [ 0.7792,  0.7792]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
