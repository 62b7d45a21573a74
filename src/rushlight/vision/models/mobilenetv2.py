"""MobileNet v2 (Sandler et al., 2018)."""

from __future__ import annotations

from functools import partial
from typing import Any

import rushlight as rl
from rushlight import nn

from .._init import he_fan_out, initialize, normal
from ..ops.misc import Conv2dNormActivation
from ._api import entry
from ._utils import _make_divisible, dropout_classifier

__all__ = ["MobileNetV2"]

_SETTING = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
]


class InvertedResidual(nn.Module):
    """Wider by 1 x 1, 3 x 3 by channels, narrower by 1 x 1, and a shortcut where shapes allow it."""

    def __init__(self, inp: Any, oup: Any, stride: Any, expand_ratio: Any, norm_layer: Any = None) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        self.stride = stride
        block = partial(
            Conv2dNormActivation, norm_layer=norm_layer or nn.BatchNorm2d, activation_layer=nn.ReLU6
        )
        hidden = int(round(inp * expand_ratio))
        self.use_res_connect = stride == 1 and inp == oup
        layers: list[nn.Module] = [block(inp, hidden, kernel_size=1)] if expand_ratio != 1 else []
        layers += [
            block(hidden, hidden, stride=stride, groups=hidden),
            nn.Conv2d(hidden, oup, 1, 1, 0, bias=False),
            (norm_layer or nn.BatchNorm2d)(oup),
        ]
        self.conv = nn.Sequential(*layers)
        self.out_channels = oup
        self._is_cn = stride > 1

    def forward(self, x: rl.Tensor) -> Any:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """Inverted residuals of rows (widening, channels, blocks, stride)."""

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: Any = None,
        round_nearest: int = 8,
        block: Any = None,
        norm_layer: Any = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        block, norm_layer = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        setting = _SETTING if inverted_residual_setting is None else inverted_residual_setting
        if len(setting) == 0 or len(setting[0]) != 4:
            raise ValueError(
                f"inverted_residual_setting should be non-empty or a 4-element list, got {inverted_residual_setting}"
            )
        channels = _make_divisible(32 * width_mult, round_nearest)
        self.last_channel = _make_divisible(1280 * max(1.0, width_mult), round_nearest)
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.ReLU6)
        features: list[nn.Module] = [conv(3, channels, stride=2)]
        for t, c, n, s in setting:
            out = _make_divisible(c * width_mult, round_nearest)
            for i in range(n):
                features.append(
                    block(channels, out, s if i == 0 else 1, expand_ratio=t, norm_layer=norm_layer)
                )
                channels = out
        features.append(conv(channels, self.last_channel, kernel_size=1))
        self.features = nn.Sequential(*features)
        self.classifier = dropout_classifier(self.last_channel, num_classes, dropout, inplace=False)
        initialize(self, conv=he_fan_out, linear=normal(0.01))

    def forward(self, x: rl.Tensor) -> Any:
        x = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(rl.flatten(x, 1))


@entry
def mobilenet_v2(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2."""
    return MobileNetV2(**kwargs)
