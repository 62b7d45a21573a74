"""Residual networks (He et al., 2015), ResNeXt (Xie et al., 2016), Wide ResNet (Zagoruyko and Komodakis, 2016)."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import nn

from .._init import he_fan_out, initialize
from ._api import entry

__all__ = ["BasicBlock", "Bottleneck", "ResNet"]


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> Any:
    """A 3 x 3 convolution that keeps the size at stride 1."""
    return nn.Conv2d(in_planes, out_planes, 3, stride, dilation, dilation, groups, bias=False)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> Any:
    """A 1 x 1 convolution."""
    return nn.Conv2d(in_planes, out_planes, 1, stride, bias=False)


def _add_conv(block: Any, i: Any, conv: Any, norm_layer: Any) -> None:
    """The i-th convolution of a block and its normalization."""
    block.add_module(f"conv{i}", conv)
    block.add_module(f"bn{i}", norm_layer(conv.out_channels))


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut."""

    conv1: nn.Module
    bn1: nn.Module
    conv2: nn.Module
    bn2: nn.Module

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: Any = 1,
        downsample: Any = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: Any = 1,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        if (groups, base_width) != (1, 64):
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        norm_layer = norm_layer or nn.BatchNorm2d
        _add_conv(self, 1, conv3x3(inplanes, planes, stride), norm_layer)
        self.relu = nn.ReLU(inplace=True)
        _add_conv(self, 2, conv3x3(planes, planes), norm_layer)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: rl.Tensor) -> Any:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions and a shortcut; the 3 x 3 one has the stride."""

    conv1: nn.Module
    bn1: nn.Module
    conv2: nn.Module
    bn2: nn.Module
    conv3: nn.Module
    bn3: nn.Module

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: Any = 1,
        downsample: Any = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: Any = 1,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        width = int(planes * (base_width / 64.0)) * groups
        convs = (
            conv1x1(inplanes, width),
            conv3x3(width, width, stride, groups, dilation),
            conv1x1(width, planes * self.expansion),
        )
        for i, conv in enumerate(convs, 1):
            _add_conv(self, i, conv, norm_layer or nn.BatchNorm2d)
        self.relu = nn.ReLU(inplace=True)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: rl.Tensor) -> Any:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """A stem, four stages of blocks, a linear classifier."""

    conv1: nn.Module
    bn1: nn.Module
    layer2: nn.Module
    layer3: nn.Module
    layer4: nn.Module

    def __init__(
        self,
        block: Any,
        layers: Any,
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Any = None,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes = 64
        self.dilation = 1
        dilate = replace_stride_with_dilation or [False, False, False]
        if len(dilate) != 3:
            raise ValueError(
                f"replace_stride_with_dilation should be None or a 3-element tuple, got {replace_stride_with_dilation}"
            )
        self.groups, self.base_width = groups, width_per_group
        _add_conv(self, 1, nn.Conv2d(3, self.inplanes, 7, stride=2, padding=3, bias=False), self._norm_layer)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        for i in (1, 2, 3):
            stage = self._make_layer(block, 64 << i, layers[i], stride=2, dilate=dilate[i - 1])
            self.add_module(f"layer{i + 1}", stage)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._initialize(zero_init_residual)

    def _initialize(self, zero_init_residual: bool) -> None:
        initialize(self, conv=he_fan_out)
        if not zero_init_residual:
            return
        for m in self.modules():  # every block begins as the identity
            last = {Bottleneck: "bn3", BasicBlock: "bn2"}.get(type(m))
            if last and getattr(m, last).weight is not None:
                nn.init.constant_(getattr(m, last).weight, 0)

    def _make_layer(self, block: Any, planes: int, blocks: Any, stride: int = 1, dilate: bool = False) -> Any:
        before, out = self.dilation, planes * block.expansion
        if dilate:
            self.dilation, stride = self.dilation * stride, 1
        shortcut = None
        if (self.inplanes, 1) != (out, stride):
            shortcut = nn.Sequential(conv1x1(self.inplanes, out, stride), self._norm_layer(out))

        def make(inplanes: int, stride: Any, downsample: Any, dilation: Any) -> Any:
            width = self.groups, self.base_width
            return block(inplanes, planes, stride, downsample, *width, dilation, self._norm_layer)

        first = make(self.inplanes, stride, shortcut, before)
        self.inplanes = out
        return nn.Sequential(first, *(make(out, 1, None, self.dilation) for _ in range(1, blocks)))

    def _forward_impl(self, x: rl.Tensor) -> Any:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(rl.flatten(self.avgpool(x), 1))

    def forward(self, x: rl.Tensor) -> Any:
        return self._forward_impl(x)


@entry
def resnet18(**kwargs: Any) -> ResNet:
    """ResNet-18."""
    return ResNet(BasicBlock, [2, 2, 2, 2], **kwargs)


@entry
def resnet34(**kwargs: Any) -> ResNet:
    """ResNet-34."""
    return ResNet(BasicBlock, [3, 4, 6, 3], **kwargs)


@entry
def resnet50(**kwargs: Any) -> ResNet:
    """ResNet-50."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **kwargs)


@entry
def resnet101(**kwargs: Any) -> ResNet:
    """ResNet-101."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **kwargs)


@entry
def resnet152(**kwargs: Any) -> ResNet:
    """ResNet-152."""
    return ResNet(Bottleneck, [3, 8, 36, 3], **kwargs)


@entry
def resnext50_32x4d(**kwargs: Any) -> ResNet:
    """ResNeXt-50, 32 groups of width 4."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **{"groups": 32, "width_per_group": 4, **kwargs})


@entry
def resnext101_32x8d(**kwargs: Any) -> ResNet:
    """ResNeXt-101, 32 groups of width 8."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"groups": 32, "width_per_group": 8, **kwargs})


@entry
def resnext101_64x4d(**kwargs: Any) -> ResNet:
    """ResNeXt-101, 64 groups of width 4."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"groups": 64, "width_per_group": 4, **kwargs})


@entry
def wide_resnet50_2(**kwargs: Any) -> ResNet:
    """ResNet-50 with twice the width inside its blocks."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **{"width_per_group": 128, **kwargs})


@entry
def wide_resnet101_2(**kwargs: Any) -> ResNet:
    """ResNet-101 with twice the width inside its blocks."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"width_per_group": 128, **kwargs})
