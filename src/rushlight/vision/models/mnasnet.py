"""MNASNet (Tan et al., 2018)."""

from __future__ import annotations

from functools import partial
from typing import Any

from rushlight import Tensor, nn

from .._init import he_fan_out, initialize
from ._api import entry
from ._utils import dropout_classifier

__all__ = ["MNASNet"]

# The paper's TensorFlow has momentum 0.9997.
_MOMENTUM = 1 - 0.9997
# (output, kernel, stride, widening, blocks) at width 1.
_STACKS = [
    (24, 3, 2, 3, 3),
    (40, 5, 2, 3, 3),
    (80, 5, 2, 6, 3),
    (96, 3, 1, 6, 2),
    (192, 5, 2, 6, 4),
    (320, 3, 1, 6, 1),
]


def _conv(
    in_ch: Any, out_ch: Any, kernel: Any, stride: int = 1, groups: int = 1, momentum: Any = _MOMENTUM
) -> list[Any]:
    """A convolution that keeps the size at stride 1, its normalization and its activation."""
    conv = nn.Conv2d(in_ch, out_ch, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(out_ch, momentum=momentum), nn.ReLU(inplace=True)]


class _InvertedResidual(nn.Module):
    def __init__(
        self,
        in_ch: Any,
        out_ch: Any,
        kernel_size: Any,
        stride: Any,
        expansion_factor: Any,
        bn_momentum: float = 0.1,
    ) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        if kernel_size not in (3, 5):
            raise ValueError(f"kernel_size should be 3 or 5 instead of {kernel_size}")
        mid = in_ch * expansion_factor
        self.apply_residual = in_ch == out_ch and stride == 1
        self.layers = nn.Sequential(
            *_conv(in_ch, mid, 1, momentum=bn_momentum),
            *_conv(mid, mid, kernel_size, stride, mid, momentum=bn_momentum),
            *_conv(mid, out_ch, 1, momentum=bn_momentum)[:2],
        )

    def forward(self, input: Tensor) -> Any:
        return self.layers(input) + input if self.apply_residual else self.layers(input)


def _stack(in_ch: Any, out_ch: Any, kernel_size: Any, stride: Any, factor: Any, repeats: Any) -> Any:
    first = _InvertedResidual(in_ch, out_ch, kernel_size, stride, factor, _MOMENTUM)
    rest = [_InvertedResidual(out_ch, out_ch, kernel_size, 1, factor, _MOMENTUM) for _ in range(1, repeats)]
    return nn.Sequential(first, *rest)


def _round_to_multiple_of(val: Any, divisor: Any, round_up_bias: float = 0.9) -> Any:
    new = max(divisor, int(val + divisor / 2) // divisor * divisor)
    return new if new >= round_up_bias * val else new + divisor


class MNASNet(nn.Module):
    """MNASNet of a given width (alpha)."""

    _version = 2

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        if alpha <= 0.0:
            raise ValueError(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha = alpha
        self.num_classes = num_classes
        first, second, *widths = [
            _round_to_multiple_of(c * alpha, 8) for c in (32, 16, *(s[0] for s in _STACKS))
        ]
        layers = [
            *_conv(3, first, 3, stride=2),
            *_conv(first, first, 3, groups=first),
            *_conv(first, second, 1)[:2],
        ]
        channels = second
        for width, (_, kernel, stride, factor, repeats) in zip(widths, _STACKS):
            layers.append(_stack(channels, width, kernel, stride, factor, repeats))
            channels = width
        self.layers = nn.Sequential(*layers, *_conv(channels, 1280, 1))
        self.classifier = dropout_classifier(1280, num_classes, dropout)
        sigmoid = partial(nn.init.kaiming_uniform_, mode="fan_out", nonlinearity="sigmoid")
        initialize(self, conv=he_fan_out, linear=sigmoid)

    def forward(self, x: Tensor) -> Any:
        return self.classifier(self.layers(x).mean([2, 3]))


@entry
def mnasnet0_5(**kwargs: Any) -> MNASNet:
    """MNASNet, half the width."""
    return MNASNet(0.5, **kwargs)


@entry
def mnasnet0_75(**kwargs: Any) -> MNASNet:
    """MNASNet, three quarters of the width."""
    return MNASNet(0.75, **kwargs)


@entry
def mnasnet1_0(**kwargs: Any) -> MNASNet:
    """MNASNet."""
    return MNASNet(1.0, **kwargs)


@entry
def mnasnet1_3(**kwargs: Any) -> MNASNet:
    """MNASNet, 1.3 times the width."""
    return MNASNet(1.3, **kwargs)
