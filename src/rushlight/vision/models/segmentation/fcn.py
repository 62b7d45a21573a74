"""Fully convolutional networks (Long et al., 2014)."""

from __future__ import annotations

from typing import Any

from rushlight import nn

from .._api import entry
from ._parts import SimpleSegmentationModel, backbone, settings

__all__ = ["FCN"]


class FCN(SimpleSegmentationModel):
    """A backbone and convolutional heads."""


class FCNHead(nn.Sequential):
    """A 3 x 3 convolution to a quarter of the channels, then to the classes."""

    def __init__(self, in_channels: Any, channels: Any) -> None:
        inter = in_channels // 4
        super().__init__(
            nn.Conv2d(in_channels, inter, 3, padding=1, bias=False),
            nn.BatchNorm2d(inter),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Conv2d(inter, channels, 1),
        )


def _fcn(name: Any, weights: Any, num_classes: int = 21, **kwargs: Any) -> FCN:
    body, out, mid = backbone(name, weights, *(chosen := settings(weights, kwargs)))
    aux = FCNHead(mid, num_classes) if chosen[1] else None
    return FCN(body, FCNHead(out, num_classes), aux, **kwargs)


@entry
def fcn_resnet50(weights: Any = None, **kwargs: Any) -> FCN:
    """A fully convolutional network on ResNet-50."""
    return _fcn("resnet50", weights, **kwargs)


@entry
def fcn_resnet101(weights: Any = None, **kwargs: Any) -> FCN:
    """A fully convolutional network on ResNet-101."""
    return _fcn("resnet101", weights, **kwargs)
