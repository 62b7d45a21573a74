"""Residual networks (He et al., 2015), ResNeXt (Xie et al., 2016), Wide ResNet (Zagoruyko and Komodakis, 2016)."""

import rushlight as rl
from rushlight import nn

from .._init import he_fan_out, initialize
from ._api import entry

__all__ = ["BasicBlock", "Bottleneck", "ResNet"]


def conv3x3(in_planes, out_planes, stride=1, groups=1, dilation=1):
    """A 3 x 3 convolution that keeps the size at stride 1."""
    return nn.Conv2d(in_planes, out_planes, 3, stride, dilation, dilation, groups, bias=False)


def conv1x1(in_planes, out_planes, stride=1):
    """A 1 x 1 convolution."""
    return nn.Conv2d(in_planes, out_planes, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut."""

    expansion = 1

    def __init__(
        self,
        inplanes,
        planes,
        stride=1,
        downsample=None,
        groups=1,
        base_width=64,
        dilation=1,
        norm_layer=None,
    ):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions and a shortcut; the 3 x 3 one has the stride."""

    expansion = 4

    def __init__(
        self,
        inplanes,
        planes,
        stride=1,
        downsample=None,
        groups=1,
        base_width=64,
        dilation=1,
        norm_layer=None,
    ):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """A stem, four stages of blocks, a linear classifier."""

    def __init__(
        self,
        block,
        layers,
        num_classes=1000,
        zero_init_residual=False,
        groups=1,
        width_per_group=64,
        replace_stride_with_dilation=None,
        norm_layer=None,
    ):
        super().__init__()
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes = 64
        self.dilation = 1
        dilate = replace_stride_with_dilation or [False, False, False]
        if len(dilate) != 3:
            raise ValueError(
                f"replace_stride_with_dilation should be None or a 3-element tuple, got {replace_stride_with_dilation}"
            )
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(self.inplanes)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], stride=2, dilate=dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], stride=2, dilate=dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], stride=2, dilate=dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._initialize(zero_init_residual)

    def _initialize(self, zero_init_residual):
        initialize(self, conv=he_fan_out)
        if not zero_init_residual:
            return
        for m in self.modules():  # every block begins as the identity
            last = {Bottleneck: "bn3", BasicBlock: "bn2"}.get(type(m))
            if last and getattr(m, last).weight is not None:
                nn.init.constant_(getattr(m, last).weight, 0)

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        norm_layer, before = self._norm_layer, self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, planes * block.expansion, stride), norm_layer(planes * block.expansion)
            )
        layers = [
            block(self.inplanes, planes, stride, downsample, self.groups, self.base_width, before, norm_layer)
        ]
        self.inplanes = planes * block.expansion
        for _ in range(1, blocks):
            layers.append(
                block(
                    self.inplanes,
                    planes,
                    groups=self.groups,
                    base_width=self.base_width,
                    dilation=self.dilation,
                    norm_layer=norm_layer,
                )
            )
        return nn.Sequential(*layers)

    def _forward_impl(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(rl.flatten(self.avgpool(x), 1))

    def forward(self, x):
        return self._forward_impl(x)


@entry
def resnet18(**kwargs):
    """ResNet-18."""
    return ResNet(BasicBlock, [2, 2, 2, 2], **kwargs)


@entry
def resnet34(**kwargs):
    """ResNet-34."""
    return ResNet(BasicBlock, [3, 4, 6, 3], **kwargs)


@entry
def resnet50(**kwargs):
    """ResNet-50."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **kwargs)


@entry
def resnet101(**kwargs):
    """ResNet-101."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **kwargs)


@entry
def resnet152(**kwargs):
    """ResNet-152."""
    return ResNet(Bottleneck, [3, 8, 36, 3], **kwargs)


@entry
def resnext50_32x4d(**kwargs):
    """ResNeXt-50, 32 groups of width 4."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **{"groups": 32, "width_per_group": 4, **kwargs})


@entry
def resnext101_32x8d(**kwargs):
    """ResNeXt-101, 32 groups of width 8."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"groups": 32, "width_per_group": 8, **kwargs})


@entry
def resnext101_64x4d(**kwargs):
    """ResNeXt-101, 64 groups of width 4."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"groups": 64, "width_per_group": 4, **kwargs})


@entry
def wide_resnet50_2(**kwargs):
    """ResNet-50 with twice the width inside its blocks."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **{"width_per_group": 128, **kwargs})


@entry
def wide_resnet101_2(**kwargs):
    """ResNet-101 with twice the width inside its blocks."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"width_per_group": 128, **kwargs})
