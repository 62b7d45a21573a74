"""Inception v3 (Szegedy et al., 2015)."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.jit import is_scripting
from rushlight.nn import functional as F

from ._api import entry
from .googlenet import BasicConv2d, imagenet_to_unit, init_inception

__all__ = ["Inception3", "InceptionOutputs", "_InceptionOutputs"]

InceptionOutputs = namedtuple("InceptionOutputs", ["logits", "aux_logits"])
_InceptionOutputs = InceptionOutputs


def _pooled(x: rl.Tensor) -> rl.Tensor:
    return F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)


class InceptionA(nn.Module):
    """1 x 1, 5 x 5, twice 3 x 3, and a pooling."""

    def __init__(self, in_channels: Any, pool_features: Any, conv_block: Any = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch1x1 = conv(in_channels, 64, kernel_size=1)
        self.branch5x5_1 = conv(in_channels, 48, kernel_size=1)
        self.branch5x5_2 = conv(48, 64, kernel_size=5, padding=2)
        self.branch3x3dbl_1 = conv(in_channels, 64, kernel_size=1)
        self.branch3x3dbl_2 = conv(64, 96, kernel_size=3, padding=1)
        self.branch3x3dbl_3 = conv(96, 96, kernel_size=3, padding=1)
        self.branch_pool = conv(in_channels, pool_features, kernel_size=1)

    def forward(self, x: rl.Tensor) -> Any:
        five = self.branch5x5_2(self.branch5x5_1(x))
        three = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return rl.cat([self.branch1x1(x), five, three, self.branch_pool(_pooled(x))], 1)


class InceptionB(nn.Module):
    """Half the size: 3 x 3, twice 3 x 3, and a pooling."""

    def __init__(self, in_channels: Any, conv_block: Any = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch3x3 = conv(in_channels, 384, kernel_size=3, stride=2)
        self.branch3x3dbl_1 = conv(in_channels, 64, kernel_size=1)
        self.branch3x3dbl_2 = conv(64, 96, kernel_size=3, padding=1)
        self.branch3x3dbl_3 = conv(96, 96, kernel_size=3, stride=2)

    def forward(self, x: rl.Tensor) -> Any:
        three = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return rl.cat([self.branch3x3(x), three, F.max_pool2d(x, kernel_size=3, stride=2)], 1)


class InceptionC(nn.Module):
    """7 x 7 as rows and columns, once and twice, and a pooling."""

    def __init__(self, in_channels: Any, channels_7x7: Any, conv_block: Any = None) -> None:
        super().__init__()
        conv, c = conv_block or BasicConv2d, channels_7x7
        row, column = {"kernel_size": (1, 7), "padding": (0, 3)}, {"kernel_size": (7, 1), "padding": (3, 0)}
        self.branch1x1 = conv(in_channels, 192, kernel_size=1)
        self.branch7x7_1 = conv(in_channels, c, kernel_size=1)
        self.branch7x7_2 = conv(c, c, **row)
        self.branch7x7_3 = conv(c, 192, **column)
        self.branch7x7dbl_1 = conv(in_channels, c, kernel_size=1)
        self.branch7x7dbl_2 = conv(c, c, **column)
        self.branch7x7dbl_3 = conv(c, c, **row)
        self.branch7x7dbl_4 = conv(c, c, **column)
        self.branch7x7dbl_5 = conv(c, 192, **row)
        self.branch_pool = conv(in_channels, 192, kernel_size=1)

    def forward(self, x: rl.Tensor) -> Any:
        seven = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x)))
        double = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        double = self.branch7x7dbl_5(self.branch7x7dbl_4(double))
        return rl.cat([self.branch1x1(x), seven, double, self.branch_pool(_pooled(x))], 1)


class InceptionD(nn.Module):
    """Half the size: 3 x 3, 7 x 7 and 3 x 3, and a pooling."""

    def __init__(self, in_channels: Any, conv_block: Any = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch3x3_1 = conv(in_channels, 192, kernel_size=1)
        self.branch3x3_2 = conv(192, 320, kernel_size=3, stride=2)
        self.branch7x7x3_1 = conv(in_channels, 192, kernel_size=1)
        self.branch7x7x3_2 = conv(192, 192, kernel_size=(1, 7), padding=(0, 3))
        self.branch7x7x3_3 = conv(192, 192, kernel_size=(7, 1), padding=(3, 0))
        self.branch7x7x3_4 = conv(192, 192, kernel_size=3, stride=2)

    def forward(self, x: rl.Tensor) -> Any:
        three = self.branch3x3_2(self.branch3x3_1(x))
        seven = self.branch7x7x3_4(self.branch7x7x3_3(self.branch7x7x3_2(self.branch7x7x3_1(x))))
        return rl.cat([three, seven, F.max_pool2d(x, kernel_size=3, stride=2)], 1)


class InceptionE(nn.Module):
    """1 x 1, 3 x 3 split in two, twice 3 x 3 split in two, and a pooling."""

    def __init__(self, in_channels: Any, conv_block: Any = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        row, column = {"kernel_size": (1, 3), "padding": (0, 1)}, {"kernel_size": (3, 1), "padding": (1, 0)}
        self.branch1x1 = conv(in_channels, 320, kernel_size=1)
        self.branch3x3_1 = conv(in_channels, 384, kernel_size=1)
        self.branch3x3_2a = conv(384, 384, **row)
        self.branch3x3_2b = conv(384, 384, **column)
        self.branch3x3dbl_1 = conv(in_channels, 448, kernel_size=1)
        self.branch3x3dbl_2 = conv(448, 384, kernel_size=3, padding=1)
        self.branch3x3dbl_3a = conv(384, 384, **row)
        self.branch3x3dbl_3b = conv(384, 384, **column)
        self.branch_pool = conv(in_channels, 192, kernel_size=1)

    def forward(self, x: rl.Tensor) -> Any:
        three = self.branch3x3_1(x)
        double = self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        split = [self.branch3x3_2a(three), self.branch3x3_2b(three)]
        split += [self.branch3x3dbl_3a(double), self.branch3x3dbl_3b(double)]
        return rl.cat([self.branch1x1(x), *split, self.branch_pool(_pooled(x))], 1)


class InceptionAux(nn.Module):
    """A classifier on the way, for training."""

    def __init__(self, in_channels: Any, num_classes: int, conv_block: Any = None) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.conv0 = conv(in_channels, 128, kernel_size=1)
        self.conv1, self.fc = conv(128, 768, kernel_size=5), nn.Linear(768, num_classes)
        self.conv1.stddev, self.fc.stddev = 0.01, 0.001

    def forward(self, x: rl.Tensor) -> Any:
        x = self.conv1(self.conv0(F.avg_pool2d(x, kernel_size=5, stride=3)))
        return self.fc(rl.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


class Inception3(nn.Module):
    """Inception v3, for images of 299 x 299."""

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        inception_blocks: Any = None,
        init_weights: bool | None = None,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        blocks = inception_blocks or [
            BasicConv2d, InceptionA, InceptionB, InceptionC, InceptionD, InceptionE, InceptionAux,
        ]  # fmt: skip
        if len(blocks) != 7:
            raise ValueError(f"length of inception_blocks should be 7 instead of {len(blocks)}")
        conv, a, b, c, d, e, aux = blocks
        self.aux_logits = aux_logits
        self.transform_input = transform_input
        self.Conv2d_1a_3x3 = conv(3, 32, kernel_size=3, stride=2)
        self.Conv2d_2a_3x3 = conv(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = conv(32, 64, kernel_size=3, padding=1)
        self.maxpool1 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Conv2d_3b_1x1 = conv(64, 80, kernel_size=1)
        self.Conv2d_4a_3x3 = conv(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Mixed_5b = a(192, pool_features=32)
        self.Mixed_5c = a(256, pool_features=64)
        self.Mixed_5d = a(288, pool_features=64)
        self.Mixed_6a = b(288)
        self.Mixed_6b = c(768, channels_7x7=128)
        self.Mixed_6c = c(768, channels_7x7=160)
        self.Mixed_6d = c(768, channels_7x7=160)
        self.Mixed_6e = c(768, channels_7x7=192)
        self.AuxLogits = aux(768, num_classes) if aux_logits else None
        self.Mixed_7a = d(768)
        self.Mixed_7b = e(1280)
        self.Mixed_7c = e(2048)
        self.avgpool, self.dropout = nn.AdaptiveAvgPool2d((1, 1)), nn.Dropout(p=dropout)
        self.fc = nn.Linear(2048, num_classes)
        init_inception(self, "inception_v3", init_weights, 0.1)

    def forward(self, x: rl.Tensor) -> Any:
        if self.transform_input:
            x = imagenet_to_unit(x)
        x = self.maxpool1(self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))))
        x = self.maxpool2(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)))
        x = self.Mixed_6a(self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(x))))
        x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(x))))
        aux = self.AuxLogits(x) if self.AuxLogits is not None and self.training else None
        x = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x)))
        x = self.fc(rl.flatten(self.dropout(self.avgpool(x)), 1))
        if is_scripting() or (self.training and self.aux_logits):
            return InceptionOutputs(x, aux)
        return x

    def _after_weights(self) -> None:
        if not self._keeps_aux:
            self.aux_logits, self.AuxLogits = False, None


@entry
def inception_v3(weights: Any = None, **kwargs: Any) -> Inception3:
    """Inception v3."""
    if weights is None:
        return Inception3(**kwargs)
    keeps_aux = kwargs.pop("aux_logits", True)
    model = Inception3(**{"transform_input": True, **kwargs, "aux_logits": True, "init_weights": False})
    model._keeps_aux = keeps_aux
    return model
