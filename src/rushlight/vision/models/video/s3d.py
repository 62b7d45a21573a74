"""S3D (Xie et al., 2017): Inception's blocks with convolutions over space, then time."""

from __future__ import annotations

import functools
from typing import Any

import rushlight as rl
from rushlight import nn

from ...ops.misc import Conv3dNormActivation
from .._api import entry

__all__ = ["S3D"]


class TemporalSeparableConv(nn.Sequential):
    """1 x k x k, then k x 1 x 1."""

    def __init__(
        self, in_planes: int, out_planes: int, kernel_size: Any, stride: Any, padding: Any, norm_layer: Any
    ) -> None:
        k, s, p = kernel_size, stride, padding
        options = {"bias": False, "norm_layer": norm_layer}
        super().__init__(
            Conv3dNormActivation(
                in_planes, out_planes, kernel_size=(1, k, k), stride=(1, s, s), padding=(0, p, p), **options
            ),
            Conv3dNormActivation(
                out_planes, out_planes, kernel_size=(k, 1, 1), stride=(s, 1, 1), padding=(p, 0, 0), **options
            ),
        )


class SepInceptionBlock3D(nn.Module):
    """Four branches side by side."""

    def __init__(
        self,
        in_planes: int,
        b0_out: Any,
        b1_mid: Any,
        b1_out: Any,
        b2_mid: Any,
        b2_out: Any,
        b3_out: Any,
        norm_layer: Any,
    ) -> None:
        super().__init__()
        point = functools.partial(Conv3dNormActivation, kernel_size=1, stride=1, norm_layer=norm_layer)
        self.branch0 = point(in_planes, b0_out)
        self.branch1 = nn.Sequential(
            point(in_planes, b1_mid), TemporalSeparableConv(b1_mid, b1_out, 3, 1, 1, norm_layer)
        )
        self.branch2 = nn.Sequential(
            point(in_planes, b2_mid), TemporalSeparableConv(b2_mid, b2_out, 3, 1, 1, norm_layer)
        )
        self.branch3 = nn.Sequential(nn.MaxPool3d((3, 3, 3), (1, 1, 1), (1, 1, 1)), point(in_planes, b3_out))

    def forward(self, x: rl.Tensor) -> Any:
        return rl.cat((self.branch0(x), self.branch1(x), self.branch2(x), self.branch3(x)), 1)


class S3D(nn.Module):
    """The whole network."""

    def __init__(self, num_classes: int = 400, dropout: float = 0.2, norm_layer: Any = None) -> None:
        super().__init__()
        norm = (
            functools.partial(nn.BatchNorm3d, eps=0.001, momentum=0.001) if norm_layer is None else norm_layer
        )
        self.features = nn.Sequential(
            TemporalSeparableConv(3, 64, 7, 2, 3, norm),
            nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)),
            Conv3dNormActivation(64, 64, kernel_size=1, stride=1, norm_layer=norm),
            TemporalSeparableConv(64, 192, 3, 1, 1, norm),
            nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)),
            SepInceptionBlock3D(192, 64, 96, 128, 16, 32, 32, norm),
            SepInceptionBlock3D(256, 128, 128, 192, 32, 96, 64, norm),
            nn.MaxPool3d((3, 3, 3), (2, 2, 2), (1, 1, 1)),
            SepInceptionBlock3D(480, 192, 96, 208, 16, 48, 64, norm),
            SepInceptionBlock3D(512, 160, 112, 224, 24, 64, 64, norm),
            SepInceptionBlock3D(512, 128, 128, 256, 24, 64, 64, norm),
            SepInceptionBlock3D(512, 112, 144, 288, 32, 64, 64, norm),
            SepInceptionBlock3D(528, 256, 160, 320, 32, 128, 128, norm),
            nn.MaxPool3d((2, 2, 2), (2, 2, 2), (0, 0, 0)),
            SepInceptionBlock3D(832, 256, 160, 320, 32, 128, 128, norm),
            SepInceptionBlock3D(832, 384, 192, 384, 48, 128, 128, norm),
        )
        self.avgpool = nn.AvgPool3d((2, 7, 7), stride=1)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Conv3d(1024, num_classes, 1))

    def forward(self, x: rl.Tensor) -> Any:
        return self.classifier(self.avgpool(self.features(x))).mean(dim=(2, 3, 4))


@entry
def s3d(**kwargs: Any) -> S3D:
    """Separable Inception of videos."""
    return S3D(**kwargs)
