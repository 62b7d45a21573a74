"""RegNet (Radosavovic et al., 2020)."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial
from typing import Any

from rushlight import Tensor, nn

from .._init import he_fan_out_of_all_groups, initialize, normal
from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from ._api import entry
from ._utils import _make_divisible

__all__ = ["RegNet"]


class SimpleStemIN(Conv2dNormActivation):
    """The first convolution."""

    def __init__(self, width_in: Any, width_out: Any, norm_layer: Any, activation_layer: Any) -> None:
        super().__init__(
            width_in,
            width_out,
            kernel_size=3,
            stride=2,
            norm_layer=norm_layer,
            activation_layer=activation_layer,
        )


class BottleneckTransform(nn.Sequential):
    """1 x 1, 3 x 3 by groups, weighted, 1 x 1."""

    def __init__(
        self,
        width_in: Any,
        width_out: Any,
        stride: Any,
        norm_layer: Any,
        activation_layer: Any,
        group_width: Any,
        bottleneck_multiplier: Any,
        se_ratio: Any,
    ) -> None:
        width = int(round(width_out * bottleneck_multiplier))
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["a"] = conv(width_in, width, kernel_size=1, stride=1, activation_layer=activation_layer)
        layers["b"] = conv(
            width,
            width,
            kernel_size=3,
            stride=stride,
            groups=width // group_width,
            activation_layer=activation_layer,
        )
        if se_ratio:
            layers["se"] = SqueezeExcitation(
                width, int(round(se_ratio * width_in)), activation=activation_layer
            )
        layers["c"] = conv(width, width_out, kernel_size=1, stride=1, activation_layer=None)
        super().__init__(layers)


class ResBottleneckBlock(nn.Module):
    """A transform and a shortcut."""

    def __init__(
        self,
        width_in: Any,
        width_out: Any,
        stride: Any,
        norm_layer: Any,
        activation_layer: Any,
        group_width: int = 1,
        bottleneck_multiplier: float = 1.0,
        se_ratio: Any = None,
    ) -> None:
        super().__init__()
        shape, layers = (width_in, width_out), (norm_layer, activation_layer)
        self.proj = None
        if width_in != width_out or stride != 1:
            options = {"stride": stride, "norm_layer": norm_layer, "activation_layer": None}
            self.proj = Conv2dNormActivation(*shape, kernel_size=1, **options)
        self.f = BottleneckTransform(*shape, stride, *layers, group_width, bottleneck_multiplier, se_ratio)
        self.activation = activation_layer(inplace=True)

    def forward(self, x: Tensor) -> Any:
        return self.activation((x if self.proj is None else self.proj(x)) + self.f(x))


class AnyStage(nn.Sequential):
    """Blocks of one width."""

    def __init__(
        self,
        width_in: Any,
        width_out: Any,
        stride: Any,
        depth: Any,
        block_constructor: Any,
        *args: Any,
        stage_index: int = 0,
    ) -> None:
        super().__init__()
        for i in range(depth):
            block = block_constructor(
                width_in if i == 0 else width_out, width_out, stride if i == 0 else 1, *args
            )
            self.add_module(f"block{stage_index}-{i}", block)


class BlockParams:
    """Depths, widths, widths of groups, multipliers and strides of the stages."""

    def __init__(
        self,
        depths: Any,
        widths: Any,
        group_widths: Any,
        bottleneck_multipliers: Any,
        strides: Any,
        se_ratio: Any = None,
    ) -> None:
        self.depths = depths
        self.widths = widths
        self.group_widths = group_widths
        self.bottleneck_multipliers = bottleneck_multipliers
        self.strides = strides
        self.se_ratio = se_ratio

    @classmethod
    def from_init_params(
        cls,
        depth: Any,
        w_0: Any,
        w_a: Any,
        w_m: Any,
        group_width: Any,
        bottleneck_multiplier: float = 1.0,
        se_ratio: Any = None,
        **kwargs: Any,
    ) -> BlockParams:
        """Widths that grow by w_a a block, quantized to w_0 * w_m ** k and to multiples of 8."""
        if w_a < 0 or w_0 <= 0 or w_m <= 1 or w_0 % 8 != 0:
            raise ValueError("Invalid RegNet settings")
        widths = []
        for i in range(depth):
            # Round half to even, as the published widths were made.
            step = round(math.log((w_a * i + w_0) / w_0) / math.log(w_m))
            widths.append(int(round(w_0 * math.pow(w_m, step) / 8) * 8))
        stages = sorted(set(widths), key=widths.index)
        depths = [widths.count(w) for w in stages]
        groups = [min(group_width, int(w * bottleneck_multiplier)) for w in stages]
        stages = [_make_divisible(int(w * bottleneck_multiplier), g) for w, g in zip(stages, groups)]
        stages = [int(w / bottleneck_multiplier) for w in stages]
        n = len(stages)
        return cls(depths, stages, groups, [bottleneck_multiplier] * n, [2] * n, se_ratio)


class RegNet(nn.Module):
    """A stem, stages of bottleneck blocks, a linear classifier."""

    def __init__(
        self,
        block_params: Any,
        num_classes: int = 1000,
        stem_width: int = 32,
        stem_type: Any = None,
        block_type: Any = None,
        norm_layer: Any = None,
        activation: Any = None,
    ) -> None:
        super().__init__()
        norm_layer, activation = norm_layer or nn.BatchNorm2d, activation or nn.ReLU
        self.stem = (stem_type or SimpleStemIN)(3, stem_width, norm_layer, activation)
        p, width, stages = block_params, stem_width, []
        rows = zip(p.widths, p.strides, p.depths, p.group_widths, p.bottleneck_multipliers)
        for i, (out, stride, depth, group, multiplier) in enumerate(rows):
            stage = AnyStage(
                width, out, stride, depth, block_type or ResBottleneckBlock, norm_layer, activation, group, multiplier,
                p.se_ratio, stage_index=i + 1,
            )  # fmt: skip
            stages.append((f"block{i + 1}", stage))
            width = out
        self.trunk_output = nn.Sequential(OrderedDict(stages))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(in_features=width, out_features=num_classes)
        initialize(self, conv=he_fan_out_of_all_groups, bias=None)
        initialize(self.fc, linear=normal(0.01))

    def forward(self, x: Tensor) -> Any:
        x = self.avgpool(self.trunk_output(self.stem(x)))
        return self.fc(x.flatten(start_dim=1))


# depth, w_0, w_a, w_m, group width: the published choices. Those of y weigh channels too.
_CHOICES = {
    "y_400mf": (16, 48, 27.89, 2.09, 8),
    "y_800mf": (14, 56, 38.84, 2.4, 16),
    "y_1_6gf": (27, 48, 20.71, 2.65, 24),
    "y_3_2gf": (21, 80, 42.63, 2.66, 24),
    "y_8gf": (17, 192, 76.82, 2.19, 56),
    "y_16gf": (18, 200, 106.23, 2.48, 112),
    "y_32gf": (20, 232, 115.89, 2.53, 232),
    "y_128gf": (27, 456, 160.83, 2.52, 264),
    "x_400mf": (22, 24, 24.48, 2.54, 16),
    "x_800mf": (16, 56, 35.73, 2.28, 16),
    "x_1_6gf": (18, 80, 34.01, 2.25, 24),
    "x_3_2gf": (25, 88, 26.31, 2.25, 48),
    "x_8gf": (23, 80, 49.56, 2.88, 120),
    "x_16gf": (22, 216, 55.59, 2.1, 128),
    "x_32gf": (23, 320, 69.86, 2.0, 168),
}


def _builder(choice: Any) -> Any:
    def build(**kwargs: Any) -> Any:
        params = BlockParams.from_init_params(*_CHOICES[choice], se_ratio=0.25 if choice[0] == "y" else None)
        norm = kwargs.pop("norm_layer", partial(nn.BatchNorm2d, eps=1e-05, momentum=0.1))
        return RegNet(params, norm_layer=norm, **kwargs)

    build.__name__ = build.__qualname__ = f"regnet_{choice}"
    build.__doc__ = f"RegNet {choice.upper()}."
    return entry(build)


globals().update({f"regnet_{choice}": _builder(choice) for choice in _CHOICES})
