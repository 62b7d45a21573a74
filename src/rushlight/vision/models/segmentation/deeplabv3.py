"""DeepLab v3 (Chen et al., 2017)."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F

from .._api import entry
from ._parts import SimpleSegmentationModel, backbone, settings
from .fcn import FCNHead

__all__ = ["DeepLabV3"]


class DeepLabV3(SimpleSegmentationModel):
    """A backbone and a pyramid of dilated convolutions."""


def _unit(in_channels: Any, out_channels: int, kernel_size: int = 1, **options: Any) -> Any:
    """A convolution without bias, its batch normalisation and ReLU."""
    conv = nn.Conv2d(in_channels, out_channels, kernel_size, bias=False, **options)
    return conv, nn.BatchNorm2d(out_channels), nn.ReLU()


class ASPPConv(nn.Sequential):
    """A dilated 3 x 3 convolution."""

    def __init__(self, in_channels: Any, out_channels: int, dilation: Any) -> None:
        super().__init__(*_unit(in_channels, out_channels, 3, padding=dilation, dilation=dilation))


class ASPPPooling(nn.Sequential):
    """The mean of the whole image, at every pixel."""

    def __init__(self, in_channels: Any, out_channels: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), *_unit(in_channels, out_channels))

    def forward(self, x: rl.Tensor) -> Any:
        size = x.shape[-2:]
        return F.interpolate(super().forward(x), size=size, mode="bilinear", align_corners=False)


class ASPP(nn.Module):
    """Convolutions of several reaches, side by side."""

    def __init__(self, in_channels: Any, atrous_rates: Any, out_channels: int = 256) -> None:
        super().__init__()
        one = nn.Sequential(*_unit(in_channels, out_channels))
        convs = [one, *(ASPPConv(in_channels, out_channels, rate) for rate in atrous_rates)]
        self.convs = nn.ModuleList([*convs, ASPPPooling(in_channels, out_channels)])
        self.project = nn.Sequential(*_unit(len(self.convs) * out_channels, out_channels), nn.Dropout(0.5))

    def forward(self, x: rl.Tensor) -> Any:
        return self.project(rl.cat([conv(x) for conv in self.convs], dim=1))


class DeepLabHead(nn.Sequential):
    """A pyramid, a convolution, the classes."""

    def __init__(self, in_channels: Any, num_classes: int, atrous_rates: Any = (12, 24, 36)) -> None:
        super().__init__(
            ASPP(in_channels, atrous_rates),
            *_unit(256, 256, 3, padding=1),
            nn.Conv2d(256, num_classes, 1),
        )


def _deeplab(name: Any, weights: Any, num_classes: int = 21, **kwargs: Any) -> DeepLabV3:
    body, out, mid = backbone(name, weights, *(chosen := settings(weights, kwargs)))
    aux = FCNHead(mid, num_classes) if chosen[1] else None
    return DeepLabV3(body, DeepLabHead(out, num_classes), aux, **kwargs)


@entry
def deeplabv3_resnet50(weights: Any = None, **kwargs: Any) -> DeepLabV3:
    """DeepLab v3 on ResNet-50."""
    return _deeplab("resnet50", weights, **kwargs)


@entry
def deeplabv3_resnet101(weights: Any = None, **kwargs: Any) -> DeepLabV3:
    """DeepLab v3 on ResNet-101."""
    return _deeplab("resnet101", weights, **kwargs)


@entry
def deeplabv3_mobilenet_v3_large(weights: Any = None, **kwargs: Any) -> DeepLabV3:
    """DeepLab v3 on MobileNet v3, large."""
    return _deeplab("mobilenet_v3_large", weights, **kwargs)
