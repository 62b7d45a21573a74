"""Residual networks of videos (Tran et al., 2017): convolutions over space and time at once, one after the other, or space alone."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn

from ..._init import he_fan_out, initialize, normal
from .._api import entry

__all__ = ["VideoResNet"]


class Conv3DSimple(nn.Conv3d):
    """3 x 3 x 3."""

    def __init__(
        self, in_planes: int, out_planes: int, midplanes: Any = None, stride: Any = 1, padding: int = 1
    ) -> None:
        super().__init__(in_planes, out_planes, (3, 3, 3), stride, padding, bias=False)

    @staticmethod
    def get_downsample_stride(stride: Any) -> tuple[Any, Any, Any]:
        """The strides of the shortcut."""
        return stride, stride, stride


class Conv2Plus1D(nn.Sequential):
    """1 x 3 x 3, then 3 x 1 x 1, with so many channels between that there are as many weights."""

    def __init__(
        self, in_planes: int, out_planes: int, midplanes: Any, stride: Any = 1, padding: int = 1
    ) -> None:
        super().__init__(
            nn.Conv3d(
                in_planes, midplanes, (1, 3, 3), (1, stride, stride), (0, padding, padding), bias=False
            ),
            nn.BatchNorm3d(midplanes),
            nn.ReLU(inplace=True),
            nn.Conv3d(midplanes, out_planes, (3, 1, 1), (stride, 1, 1), (padding, 0, 0), bias=False),
        )

    @staticmethod
    def get_downsample_stride(stride: Any) -> tuple[Any, Any, Any]:
        """The strides of the shortcut."""
        return stride, stride, stride


class Conv3DNoTemporal(nn.Conv3d):
    """1 x 3 x 3."""

    def __init__(
        self, in_planes: int, out_planes: int, midplanes: Any = None, stride: Any = 1, padding: int = 1
    ) -> None:
        super().__init__(
            in_planes, out_planes, (1, 3, 3), (1, stride, stride), (0, padding, padding), bias=False
        )

    @staticmethod
    def get_downsample_stride(stride: Any) -> tuple[int, Any, Any]:
        """The strides of the shortcut."""
        return 1, stride, stride


def _middle(inplanes: int, planes: int) -> int:
    return (inplanes * planes * 3 * 3 * 3) // (inplanes * 3 * 3 + 3 * planes)


class BasicBlock(nn.Module):
    """Two convolutions and a shortcut."""

    expansion = 1

    def __init__(
        self, inplanes: int, planes: int, conv_builder: Any, stride: Any = 1, downsample: Any = None
    ) -> None:
        super().__init__()
        middle = _middle(inplanes, planes)
        self.conv1 = nn.Sequential(
            conv_builder(inplanes, planes, middle, stride), nn.BatchNorm3d(planes), nn.ReLU(inplace=True)
        )
        self.conv2 = nn.Sequential(conv_builder(planes, planes, middle), nn.BatchNorm3d(planes))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Any:
        out = self.conv2(self.conv1(x))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """A convolution between two of 1 x 1 x 1, and a shortcut."""

    expansion = 4

    def __init__(
        self, inplanes: int, planes: int, conv_builder: Any, stride: Any = 1, downsample: Any = None
    ) -> None:
        super().__init__()
        out = planes * self.expansion
        self.conv1 = nn.Sequential(
            nn.Conv3d(inplanes, planes, 1, bias=False), nn.BatchNorm3d(planes), nn.ReLU(inplace=True)
        )
        self.conv2 = nn.Sequential(
            conv_builder(planes, planes, _middle(inplanes, planes), stride),
            nn.BatchNorm3d(planes),
            nn.ReLU(inplace=True),
        )
        self.conv3 = nn.Sequential(nn.Conv3d(planes, out, 1, bias=False), nn.BatchNorm3d(out))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Any:
        out = self.conv3(self.conv2(self.conv1(x)))
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class BasicStem(nn.Sequential):
    """3 x 7 x 7."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv3d(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class R2Plus1dStem(nn.Sequential):
    """1 x 7 x 7, then 3 x 1 x 1."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv3d(3, 45, (1, 7, 7), (1, 2, 2), (0, 3, 3), bias=False),
            nn.BatchNorm3d(45),
            nn.ReLU(inplace=True),
            nn.Conv3d(45, 64, (3, 1, 1), (1, 1, 1), (1, 0, 0), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class VideoResNet(nn.Module):
    """Four layers of blocks, each with convolutions of its own kind."""

    layer1: nn.Module
    layer2: nn.Module
    layer3: nn.Module
    layer4: nn.Module

    def __init__(
        self,
        block: Any,
        conv_makers: Any,
        layers: Any,
        stem: Any,
        num_classes: int = 400,
        zero_init_residual: bool = False,
    ) -> None:
        super().__init__()
        self.inplanes = 64
        self.stem = stem()
        for i in range(4):
            stage = self._make_layer(block, conv_makers[i], 64 << i, layers[i], stride=min(i + 1, 2))
            setattr(self, f"layer{i + 1}", stage)
        self.avgpool = nn.AdaptiveAvgPool3d(1)
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        initialize(self, conv=he_fan_out, linear=normal(0.01))
        if zero_init_residual:  # each block starts as the identity
            for residual in (m for m in self.modules() if isinstance(m, Bottleneck)):
                last: Any = residual.conv3[1]
                nn.init.zeros_(last.weight)

    def _make_layer(self, block: Any, conv_builder: Any, planes: int, blocks: Any, stride: int = 1) -> Any:
        downsample, out = None, planes * block.expansion
        if stride != 1 or self.inplanes != out:
            strides = conv_builder.get_downsample_stride(stride)
            downsample = nn.Sequential(
                nn.Conv3d(self.inplanes, out, 1, strides, bias=False), nn.BatchNorm3d(out)
            )
        layers = [block(self.inplanes, planes, conv_builder, stride, downsample)]
        self.inplanes = out
        layers += [block(out, planes, conv_builder) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Any:
        x = self.stem(x)
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return self.fc(self.avgpool(x).flatten(1))


@entry
def r3d_18(**kwargs: Any) -> VideoResNet:
    """18 layers of 3 x 3 x 3."""
    return VideoResNet(BasicBlock, [Conv3DSimple] * 4, [2, 2, 2, 2], BasicStem, **kwargs)


@entry
def mc3_18(**kwargs: Any) -> VideoResNet:
    """18 layers, of which only the first look at several frames."""
    return VideoResNet(BasicBlock, [Conv3DSimple] + [Conv3DNoTemporal] * 3, [2, 2, 2, 2], BasicStem, **kwargs)


@entry
def r2plus1d_18(**kwargs: Any) -> VideoResNet:
    """18 layers of space, then time."""
    return VideoResNet(BasicBlock, [Conv2Plus1D] * 4, [2, 2, 2, 2], R2Plus1dStem, **kwargs)
