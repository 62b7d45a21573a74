"""ConvNeXt (Liu et al., 2022)."""

from __future__ import annotations

from functools import partial
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F

from .._init import initialize, truncated
from ..ops.misc import Conv2dNormActivation, Permute
from ..ops.stochastic_depth import StochasticDepth
from ._api import entry

__all__ = ["ConvNeXt"]


class LayerNorm2d(nn.LayerNorm):
    """Layer normalization over the channels of (N, C, H, W)."""

    def forward(self, x: rl.Tensor) -> Any:
        x = F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """7 x 7 by channels, then a perceptron at every pixel, and a shortcut."""

    def __init__(
        self, dim: int, layer_scale: Any, stochastic_depth_prob: float, norm_layer: Any = None
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        depthwise = nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim)
        mlp = [norm_layer(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)]
        self.block = nn.Sequential(depthwise, Permute([0, 2, 3, 1]), *mlp, Permute([0, 3, 1, 2]))
        self.layer_scale = nn.Parameter(rl.ones(dim, 1, 1) * layer_scale)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input: rl.Tensor) -> Any:
        result = self.stochastic_depth(self.layer_scale * self.block(input))
        result += input
        return result


class CNBlockConfig:
    """One stage: channels, channels of the next one, blocks."""

    def __init__(self, input_channels: Any, out_channels: int, num_layers: Any) -> None:
        self.input_channels = input_channels
        self.out_channels = out_channels
        self.num_layers = num_layers

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_channels={self.input_channels}, out_channels={self.out_channels}, "
            f"num_layers={self.num_layers})"
        )


class ConvNeXt(nn.Module):
    """Stages of blocks with downsampling between them."""

    def __init__(
        self,
        block_setting: Any,
        stochastic_depth_prob: float = 0.0,
        layer_scale: float = 1e-6,
        num_classes: int = 1000,
        block: Any = None,
        norm_layer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if not block_setting:
            raise ValueError("The block_setting should not be empty")
        if not all(isinstance(s, CNBlockConfig) for s in block_setting):
            raise TypeError("The block_setting should be List[CNBlockConfig]")
        block = block or CNBlock
        norm_layer = norm_layer or partial(LayerNorm2d, eps=1e-6)
        first = block_setting[0].input_channels
        layers: list[nn.Module] = [
            Conv2dNormActivation(
                3,
                first,
                kernel_size=4,
                stride=4,
                padding=0,
                norm_layer=norm_layer,
                activation_layer=None,
                bias=True,
            )
        ]
        total, done = sum(s.num_layers for s in block_setting), 0
        for s in block_setting:
            stage = []
            for _ in range(s.num_layers):
                # Later blocks are left out more often.
                stage.append(
                    block(s.input_channels, layer_scale, stochastic_depth_prob * done / (total - 1.0))
                )
                done += 1
            layers.append(nn.Sequential(*stage))
            if s.out_channels is not None:
                layers.append(
                    nn.Sequential(
                        norm_layer(s.input_channels),
                        nn.Conv2d(s.input_channels, s.out_channels, kernel_size=2, stride=2),
                    )
                )
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        last = block_setting[-1]
        width = last.out_channels if last.out_channels is not None else last.input_channels
        self.classifier = nn.Sequential(norm_layer(width), nn.Flatten(1), nn.Linear(width, num_classes))
        initialize(self, conv=truncated(0.02), linear=truncated(0.02))

    def forward(self, x: rl.Tensor) -> Any:
        return self.classifier(self.avgpool(self.features(x)))


def _convnext(widths: Any, depths: Any, stochastic_depth_prob: float, kwargs: Any) -> ConvNeXt:
    stages = [CNBlockConfig(w, out, n) for w, out, n in zip(widths, (*widths[1:], None), depths)]
    return ConvNeXt(stages, **{"stochastic_depth_prob": stochastic_depth_prob, **kwargs})


@entry
def convnext_tiny(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, tiny."""
    return _convnext((96, 192, 384, 768), (3, 3, 9, 3), 0.1, kwargs)


@entry
def convnext_small(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, small."""
    return _convnext((96, 192, 384, 768), (3, 3, 27, 3), 0.4, kwargs)


@entry
def convnext_base(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, base."""
    return _convnext((128, 256, 512, 1024), (3, 3, 27, 3), 0.5, kwargs)


@entry
def convnext_large(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, large."""
    return _convnext((192, 384, 768, 1536), (3, 3, 27, 3), 0.5, kwargs)
