"""MobileNet v3 (Howard et al., 2019)."""

from __future__ import annotations

from functools import partial
from typing import Any

import rushlight as rl
from rushlight import nn

from .._init import he_fan_out, initialize, normal
from ..ops.misc import Conv2dNormActivation
from ..ops.misc import SqueezeExcitation as SElayer
from ._api import entry
from ._utils import _make_divisible

__all__ = ["MobileNetV3"]


class InvertedResidualConfig:
    """One row of the network's table."""

    def __init__(
        self,
        input_channels: Any,
        kernel: Any,
        expanded_channels: Any,
        out_channels: int,
        use_se: Any,
        activation: Any,
        stride: Any,
        dilation: Any,
        width_mult: float,
    ) -> None:
        self.input_channels, self.expanded_channels, self.out_channels = (
            self.adjust_channels(channels, width_mult)
            for channels in (input_channels, expanded_channels, out_channels)
        )
        self.kernel, self.stride, self.dilation = kernel, stride, dilation
        self.use_se, self.use_hs = use_se, activation == "HS"

    @staticmethod
    def adjust_channels(channels: Any, width_mult: float) -> Any:
        return _make_divisible(channels * width_mult, 8)


class InvertedResidual(nn.Module):
    """Wider, by channels, weighted, narrower; and a shortcut where shapes allow it."""

    def __init__(self, cnf: Any, norm_layer: Any, se_layer: Any = None) -> None:
        super().__init__()
        if not 1 <= cnf.stride <= 2:
            raise ValueError("illegal stride value")
        se_layer = se_layer or partial(SElayer, scale_activation=nn.Hardsigmoid)
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        conv = partial(
            Conv2dNormActivation,
            norm_layer=norm_layer,
            activation_layer=nn.Hardswish if cnf.use_hs else nn.ReLU,
        )
        wide = cnf.expanded_channels
        layers: list[nn.Module] = (
            [conv(cnf.input_channels, wide, kernel_size=1)] if wide != cnf.input_channels else []
        )
        layers.append(
            conv(
                wide,
                wide,
                kernel_size=cnf.kernel,
                stride=1 if cnf.dilation > 1 else cnf.stride,
                dilation=cnf.dilation,
                groups=wide,
            )
        )
        if cnf.use_se:
            layers.append(se_layer(wide, _make_divisible(wide // 4, 8)))
        layers.append(conv(wide, cnf.out_channels, kernel_size=1, activation_layer=None))
        self.block = nn.Sequential(*layers)
        self.out_channels, self._is_cn = cnf.out_channels, cnf.stride > 1

    def forward(self, input: rl.Tensor) -> Any:
        result = self.block(input)
        if self.use_res_connect:
            result += input
        return result


class MobileNetV3(nn.Module):
    """Inverted residuals of a table of rows."""

    def __init__(
        self,
        inverted_residual_setting: Any,
        last_channel: Any,
        num_classes: int = 1000,
        block: Any = None,
        norm_layer: Any = None,
        dropout: float = 0.2,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        rows = inverted_residual_setting
        if not rows:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not all(isinstance(row, InvertedResidualConfig) for row in rows):
            raise TypeError("The inverted_residual_setting should be List[InvertedResidualConfig]")
        block = block or InvertedResidual
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.Hardswish)
        layers: list[nn.Module] = [conv(3, rows[0].input_channels, kernel_size=3, stride=2)]
        layers += [block(row, norm_layer) for row in rows]
        last = rows[-1].out_channels
        layers.append(conv(last, 6 * last, kernel_size=1))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * last, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )
        initialize(self, conv=he_fan_out, linear=normal(0.01))

    def forward(self, x: rl.Tensor) -> Any:
        return self.classifier(rl.flatten(self.avgpool(self.features(x)), 1))


# (input, kernel, expanded, output, weighted, activation, stride).
_LARGE = [
    (16, 3, 16, 16, False, "RE", 1), (16, 3, 64, 24, False, "RE", 2), (24, 3, 72, 24, False, "RE", 1),
    (24, 5, 72, 40, True, "RE", 2), (40, 5, 120, 40, True, "RE", 1), (40, 5, 120, 40, True, "RE", 1),
    (40, 3, 240, 80, False, "HS", 2), (80, 3, 200, 80, False, "HS", 1), (80, 3, 184, 80, False, "HS", 1),
    (80, 3, 184, 80, False, "HS", 1), (80, 3, 480, 112, True, "HS", 1), (112, 3, 672, 112, True, "HS", 1),
    (112, 5, 672, 160, True, "HS", 2), (160, 5, 960, 160, True, "HS", 1), (160, 5, 960, 160, True, "HS", 1),
]  # fmt: skip
_SMALL = [
    (16, 3, 16, 16, True, "RE", 2), (16, 3, 72, 24, False, "RE", 2), (24, 3, 88, 24, False, "RE", 1),
    (24, 5, 96, 40, True, "HS", 2), (40, 5, 240, 40, True, "HS", 1), (40, 5, 240, 40, True, "HS", 1),
    (40, 5, 120, 48, True, "HS", 1), (48, 5, 144, 48, True, "HS", 1),
    (48, 5, 288, 96, True, "HS", 2), (96, 5, 576, 96, True, "HS", 1), (96, 5, 576, 96, True, "HS", 1),
]  # fmt: skip


def _mobilenet_v3_conf(
    arch: Any, width_mult: float = 1.0, reduced_tail: bool = False, dilated: bool = False, **kwargs: Any
) -> tuple[list[Any], Any]:
    """(rows, channels of the classifier) of a size, with a tail of half the width or dilated instead of strided."""
    if not arch.startswith("mobilenet_v3_") or arch[13:] not in ("large", "small"):
        raise ValueError(f"Unsupported model type {arch}")
    table, last = (_LARGE, 1280) if arch.endswith("large") else (_SMALL, 1024)
    tail = len(table) - 3  # the last stage: its widths follow the options
    shrink, dilation = (2 if reduced_tail else 1), (2 if dilated else 1)
    rows = []
    for i, (inp, kernel, wide, out, se, act, stride) in enumerate(table):
        if i >= tail:
            out //= shrink
            if i > tail:
                inp, wide = inp // shrink, wide // shrink
        rows.append(
            InvertedResidualConfig(
                inp, kernel, wide, out, se, act, stride, dilation if i >= tail else 1, width_mult=width_mult
            )
        )
    return rows, InvertedResidualConfig.adjust_channels(last // shrink, width_mult)


_OPTIONS = ("width_mult", "reduced_tail", "dilated", "_dilated", "_reduced_tail", "_width_mult")


def _build(arch: Any, kwargs: Any) -> MobileNetV3:
    chosen = {k.removeprefix("_"): kwargs.pop(k) for k in _OPTIONS if k in kwargs}
    return MobileNetV3(*_mobilenet_v3_conf(arch, **chosen), **kwargs)


@entry
def mobilenet_v3_large(**kwargs: Any) -> MobileNetV3:
    """MobileNet v3, large."""
    return _build("mobilenet_v3_large", kwargs)


@entry
def mobilenet_v3_small(**kwargs: Any) -> MobileNetV3:
    """MobileNet v3, small."""
    return _build("mobilenet_v3_small", kwargs)
