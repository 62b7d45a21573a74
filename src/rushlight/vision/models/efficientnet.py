"""EfficientNet (Tan and Le, 2019) and EfficientNet v2 (2021)."""

from __future__ import annotations

import copy
import math
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import nn

from .._init import he_fan_out, initialize
from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from ..ops.stochastic_depth import StochasticDepth
from ._api import entry
from ._utils import _make_divisible, dropout_classifier

__all__ = ["EfficientNet"]


class _Row:
    """One row of the network's table: widening, kernel, stride, channels, blocks, and the block's class."""

    def __init__(
        self,
        expand_ratio: Any,
        kernel: Any,
        stride: Any,
        input_channels: Any,
        out_channels: int,
        num_layers: Any,
        block: Any,
    ) -> None:
        self.expand_ratio = expand_ratio
        self.kernel = kernel
        self.stride = stride
        self.input_channels = input_channels
        self.out_channels = out_channels
        self.num_layers = num_layers
        self.block = block

    @staticmethod
    def adjust_channels(channels: Any, width_mult: float, min_value: Any = None) -> Any:
        return _make_divisible(channels * width_mult, 8, min_value)


class MBConvConfig(_Row):
    """A row of blocks with convolutions by channels, scaled in width and depth."""

    def __init__(
        self,
        expand_ratio: Any,
        kernel: Any,
        stride: Any,
        input_channels: Any,
        out_channels: int,
        num_layers: Any,
        width_mult: float = 1.0,
        depth_mult: float = 1.0,
        block: Any = None,
    ) -> None:
        super().__init__(
            expand_ratio,
            kernel,
            stride,
            self.adjust_channels(input_channels, width_mult),
            self.adjust_channels(out_channels, width_mult),
            int(math.ceil(num_layers * depth_mult)),
            block or MBConv,
        )


class FusedMBConvConfig(_Row):
    """A row of blocks with one wide convolution."""

    def __init__(
        self,
        expand_ratio: Any,
        kernel: Any,
        stride: Any,
        input_channels: Any,
        out_channels: int,
        num_layers: Any,
        block: Any = None,
    ) -> None:
        super().__init__(
            expand_ratio, kernel, stride, input_channels, out_channels, num_layers, block or FusedMBConv
        )


class _Block(nn.Module):
    """Layers with a shortcut where shapes allow it, left out at random while training."""

    def __init__(self, cnf: Any, layers: Any, stochastic_depth_prob: float) -> None:
        super().__init__()
        if not 1 <= cnf.stride <= 2:
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.out_channels

    def forward(self, input: rl.Tensor) -> Any:
        result = self.block(input)
        if self.use_res_connect:
            result = self.stochastic_depth(result)
            result += input
        return result


class MBConv(_Block):
    """Wider, by channels, weighted, narrower."""

    def __init__(
        self, cnf: Any, stochastic_depth_prob: float, norm_layer: Any, se_layer: Any = SqueezeExcitation
    ) -> None:
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        wide = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        layers = [conv(cnf.input_channels, wide, kernel_size=1)] if wide != cnf.input_channels else []
        layers.append(conv(wide, wide, kernel_size=cnf.kernel, stride=cnf.stride, groups=wide))
        layers.append(
            se_layer(wide, max(1, cnf.input_channels // 4), activation=partial(nn.SiLU, inplace=True))
        )
        layers.append(
            Conv2dNormActivation(
                wide, cnf.out_channels, kernel_size=1, norm_layer=norm_layer, activation_layer=None
            )
        )
        super().__init__(cnf, layers, stochastic_depth_prob)


class FusedMBConv(_Block):
    """One wide convolution, then narrower."""

    def __init__(self, cnf: Any, stochastic_depth_prob: float, norm_layer: Any) -> None:
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer)
        wide = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        first = partial(
            conv, cnf.input_channels, kernel_size=cnf.kernel, stride=cnf.stride, activation_layer=nn.SiLU
        )
        if wide != cnf.input_channels:
            layers = [first(wide), conv(wide, cnf.out_channels, kernel_size=1, activation_layer=None)]
        else:
            layers = [first(cnf.out_channels)]
        super().__init__(cnf, layers, stochastic_depth_prob)


def _uniform_by_rows(weight: Any) -> rl.Tensor:
    reach = 1.0 / math.sqrt(weight.shape[0])
    return nn.init.uniform_(weight, -reach, reach)


class EfficientNet(nn.Module):
    """Blocks of a table of rows."""

    def __init__(
        self,
        inverted_residual_setting: Any,
        dropout: float,
        stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000,
        norm_layer: Any = None,
        last_channel: Any = None,
    ) -> None:
        super().__init__()
        rows = inverted_residual_setting
        if not rows:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not all(isinstance(row, _Row) for row in rows):
            raise TypeError("The inverted_residual_setting should be List[MBConvConfig]")
        norm_layer = norm_layer or nn.BatchNorm2d
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        layers: list[nn.Module] = [conv(3, rows[0].input_channels, kernel_size=3, stride=2)]
        total, done = sum(row.num_layers for row in rows), 0
        for row in rows:
            stage: list[nn.Module] = []
            for _ in range(row.num_layers):
                cnf = copy.copy(row)
                if stage:
                    cnf.input_channels, cnf.stride = cnf.out_channels, 1
                # Later blocks are left out more often.
                stage.append(cnf.block(cnf, stochastic_depth_prob * float(done) / total, norm_layer))
                done += 1
            layers.append(nn.Sequential(*stage))
        last = rows[-1].out_channels
        out = last_channel if last_channel is not None else 4 * last
        layers.append(conv(last, out, kernel_size=1))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = dropout_classifier(out, num_classes, dropout)
        initialize(self, conv=he_fan_out, linear=_uniform_by_rows)

    def forward(self, x: rl.Tensor) -> Any:
        return self.classifier(rl.flatten(self.avgpool(self.features(x)), 1))


# (widening, kernel, stride, input, output, blocks); the first rows of v2 are fused.
_ROWS = [
    (1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3), (6, 5, 1, 80, 112, 3),
    (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1),
]  # fmt: skip
_ROWS_V2 = {
    "s": ([(1, 3, 1, 24, 24, 2), (4, 3, 2, 24, 48, 4), (4, 3, 2, 48, 64, 4)],
          [(4, 3, 2, 64, 128, 6), (6, 3, 1, 128, 160, 9), (6, 3, 2, 160, 256, 15)]),
    "m": ([(1, 3, 1, 24, 24, 3), (4, 3, 2, 24, 48, 5), (4, 3, 2, 48, 80, 5)],
          [(4, 3, 2, 80, 160, 7), (6, 3, 1, 160, 176, 14), (6, 3, 2, 176, 304, 18), (6, 3, 1, 304, 512, 5)]),
    "l": ([(1, 3, 1, 32, 32, 4), (4, 3, 2, 32, 64, 7), (4, 3, 2, 64, 96, 7)],
          [(4, 3, 2, 96, 192, 10), (6, 3, 1, 192, 224, 19), (6, 3, 2, 224, 384, 25), (6, 3, 1, 384, 640, 7)]),
}  # fmt: skip


def _one(width: Any, depth: Any, dropout: float, kwargs: Any, **options: Any) -> EfficientNet:
    rows = [MBConvConfig(*row, width_mult=width, depth_mult=depth) for row in _ROWS]
    return EfficientNet(rows, **{"dropout": dropout, **options, **kwargs})


def _two(size: Any, dropout: float, kwargs: Any) -> EfficientNet:
    fused, plain = _ROWS_V2[size]
    rows = [FusedMBConvConfig(*row) for row in fused] + [MBConvConfig(*row) for row in plain]
    options = {"norm_layer": partial(nn.BatchNorm2d, eps=1e-3), "last_channel": 1280, "dropout": dropout}
    return EfficientNet(rows, **{**options, **kwargs})


_SLOW_NORM = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)


@entry
def efficientnet_b0(**kwargs: Any) -> EfficientNet:
    """EfficientNet B0."""
    return _one(1.0, 1.0, 0.2, kwargs)


@entry
def efficientnet_b1(**kwargs: Any) -> EfficientNet:
    """EfficientNet B1."""
    return _one(1.0, 1.1, 0.2, kwargs)


@entry
def efficientnet_b2(**kwargs: Any) -> EfficientNet:
    """EfficientNet B2."""
    return _one(1.1, 1.2, 0.3, kwargs)


@entry
def efficientnet_b3(**kwargs: Any) -> EfficientNet:
    """EfficientNet B3."""
    return _one(1.2, 1.4, 0.3, kwargs)


@entry
def efficientnet_b4(**kwargs: Any) -> EfficientNet:
    """EfficientNet B4."""
    return _one(1.4, 1.8, 0.4, kwargs)


@entry
def efficientnet_b5(**kwargs: Any) -> EfficientNet:
    """EfficientNet B5."""
    return _one(1.6, 2.2, 0.4, kwargs, norm_layer=_SLOW_NORM)


@entry
def efficientnet_b6(**kwargs: Any) -> EfficientNet:
    """EfficientNet B6."""
    return _one(1.8, 2.6, 0.5, kwargs, norm_layer=_SLOW_NORM)


@entry
def efficientnet_b7(**kwargs: Any) -> EfficientNet:
    """EfficientNet B7."""
    return _one(2.0, 3.1, 0.5, kwargs, norm_layer=_SLOW_NORM)


@entry
def efficientnet_v2_s(**kwargs: Any) -> EfficientNet:
    """EfficientNet v2, small."""
    return _two("s", 0.2, kwargs)


@entry
def efficientnet_v2_m(**kwargs: Any) -> EfficientNet:
    """EfficientNet v2, medium."""
    return _two("m", 0.3, kwargs)


@entry
def efficientnet_v2_l(**kwargs: Any) -> EfficientNet:
    """EfficientNet v2, large."""
    return _two("l", 0.4, kwargs)
