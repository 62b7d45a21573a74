"""VGG (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import nn

from .._init import he_fan_out, initialize, normal
from ._api import entry

__all__ = ["VGG"]

# Convolutions of 3 x 3 in each of the five stages, each of which ends with a pooling.
_STAGES = {"A": (1, 1, 2, 2, 2), "B": (2, 2, 2, 2, 2), "D": (2, 2, 3, 3, 3), "E": (2, 2, 4, 4, 4)}
cfgs = {
    key: [c for width, n in zip((64, 128, 256, 512, 512), counts) for c in (*[width] * n, "M")]
    for key, counts in _STAGES.items()
}


def make_layers(cfg: Any, batch_norm: bool = False) -> Any:
    """The layers of a list of widths, "M" for a pooling."""
    layers: list[nn.Module] = []
    channels = 3
    for width in cfg:
        if width == "M":
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            continue
        layers.append(nn.Conv2d(channels, width, kernel_size=3, padding=1))
        if batch_norm:
            layers.append(nn.BatchNorm2d(width))
        layers.append(nn.ReLU(inplace=True))
        channels = width
    return nn.Sequential(*layers)


class VGG(nn.Module):
    """Stages of 3 x 3 convolutions, three linear layers."""

    def __init__(
        self, features: Any, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.features, self.avgpool = features, nn.AdaptiveAvgPool2d((7, 7))
        head = []
        for width in (512 * 7 * 7, 4096):
            head += [nn.Linear(width, 4096), nn.ReLU(inplace=True), nn.Dropout(p=dropout)]
        self.classifier = nn.Sequential(*head, nn.Linear(4096, num_classes))
        if init_weights:
            initialize(self, conv=he_fan_out, linear=normal(0.01))

    def forward(self, x: rl.Tensor) -> Any:
        return self.classifier(rl.flatten(self.avgpool(self.features(x)), 1))


def _vgg(cfg: Any, batch_norm: bool, weights: Any, **kwargs: Any) -> VGG:
    if weights is not None:
        kwargs["init_weights"] = False
    return VGG(make_layers(cfgs[cfg], batch_norm), **kwargs)


@entry
def vgg11(weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 11 layers."""
    return _vgg("A", False, weights, **kwargs)


@entry
def vgg11_bn(weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 11 layers and batch normalization."""
    return _vgg("A", True, weights, **kwargs)


@entry
def vgg13(weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 13 layers."""
    return _vgg("B", False, weights, **kwargs)


@entry
def vgg13_bn(weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 13 layers and batch normalization."""
    return _vgg("B", True, weights, **kwargs)


@entry
def vgg16(weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 16 layers."""
    return _vgg("D", False, weights, **kwargs)


@entry
def vgg16_bn(weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 16 layers and batch normalization."""
    return _vgg("D", True, weights, **kwargs)


@entry
def vgg19(weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 19 layers."""
    return _vgg("E", False, weights, **kwargs)


@entry
def vgg19_bn(weights: Any = None, **kwargs: Any) -> VGG:
    """VGG with 19 layers and batch normalization."""
    return _vgg("E", True, weights, **kwargs)
