"""GoogLeNet (Szegedy et al., 2014)."""

from __future__ import annotations

import warnings
from collections import namedtuple
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.jit import is_scripting
from rushlight.nn import functional as F

from .._init import truncated
from ._api import entry

__all__ = ["GoogLeNet", "GoogLeNetOutputs", "_GoogLeNetOutputs"]

GoogLeNetOutputs = namedtuple("GoogLeNetOutputs", ["logits", "aux_logits2", "aux_logits1"])
_GoogLeNetOutputs = GoogLeNetOutputs

# Channels of the four branches: 1x1; before and after 3x3, twice; after the pooling. None: a pooling by kernel.
_PLAN: list[tuple[Any, ...]] = [
    ("inception3a", 192, 64, 96, 128, 16, 32, 32),
    ("inception3b", 256, 128, 128, 192, 32, 96, 64),
    ("maxpool3", 3),
    ("inception4a", 480, 192, 96, 208, 16, 48, 64),
    ("inception4b", 512, 160, 112, 224, 24, 64, 64),
    ("inception4c", 512, 128, 128, 256, 24, 64, 64),
    ("inception4d", 512, 112, 144, 288, 32, 64, 64),
    ("inception4e", 528, 256, 160, 320, 32, 128, 128),
    ("maxpool4", 2),
    ("inception5a", 832, 256, 160, 320, 32, 128, 128),
    ("inception5b", 832, 384, 192, 384, 48, 128, 128),
]


def imagenet_to_unit(x: rl.Tensor) -> rl.Tensor:
    """Images normalized by ImageNet's statistics, normalized to [-1, 1] instead."""
    scale = rl.tensor([0.229, 0.224, 0.225], dtype=x.dtype, device=x.device).view(1, 3, 1, 1) / 0.5
    shift = (rl.tensor([0.485, 0.456, 0.406], dtype=x.dtype, device=x.device).view(1, 3, 1, 1) - 0.5) / 0.5
    return x * scale + shift


class BasicConv2d(nn.Module):
    """Convolution, batch normalization, ReLU."""

    def __init__(self, in_channels: Any, out_channels: int, **kwargs: Any) -> None:
        super().__init__()
        conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.conv, self.bn = conv, nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: rl.Tensor) -> Any:
        return F.relu(self.bn(self.conv(x)), inplace=True)


def init_inception(model: Any, name: Any, wanted: Any, std: Any) -> None:
    """Draws the weights, as `init_weights` says; a layer may have a `stddev` of its own."""
    if wanted is None:
        warnings.warn(
            f"The default weight initialization of {name} will be changed in future releases of torchvision. If you "
            "wish to keep the old behavior (which leads to long initialization times due to scipy/scipy#11299), "
            "please set init_weights=True.",
            FutureWarning,
            stacklevel=3,
        )
    elif not wanted:
        return
    for layer in model.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            truncated(getattr(layer, "stddev", std))(layer.weight)


class Inception(nn.Module):
    """Four branches of different reach, side by side."""

    def __init__(
        self,
        in_channels: Any,
        ch1x1: Any,
        ch3x3red: Any,
        ch3x3: Any,
        ch5x5red: Any,
        ch5x5: Any,
        pool_proj: Any,
        conv_block: Any = None,
    ) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch1 = conv(in_channels, ch1x1, kernel_size=1)
        self.branch2 = nn.Sequential(
            conv(in_channels, ch3x3red, kernel_size=1), conv(ch3x3red, ch3x3, kernel_size=3, padding=1)
        )
        # The trained network has 3 x 3 where the paper has 5 x 5.
        self.branch3 = nn.Sequential(
            conv(in_channels, ch5x5red, kernel_size=1), conv(ch5x5red, ch5x5, kernel_size=3, padding=1)
        )
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True),
            conv(in_channels, pool_proj, kernel_size=1),
        )

    def forward(self, x: rl.Tensor) -> Any:
        return rl.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionAux(nn.Module):
    """A classifier on the way, for training."""

    def __init__(
        self, in_channels: Any, num_classes: int, conv_block: Any = None, dropout: float = 0.7
    ) -> None:
        super().__init__()
        self.conv = (conv_block or BasicConv2d)(in_channels, 128, kernel_size=1)
        self.fc1, self.fc2 = nn.Linear(2048, 1024), nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x: rl.Tensor) -> Any:
        x = rl.flatten(self.conv(F.adaptive_avg_pool2d(x, (4, 4))), 1)
        return self.fc2(self.dropout(F.relu(self.fc1(x), inplace=True)))


class GoogLeNet(nn.Module):
    """Nine inception blocks; two more classifiers on the way while it trains."""

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        init_weights: bool | None = None,
        blocks: Any = None,
        dropout: float = 0.2,
        dropout_aux: float = 0.7,
    ) -> None:
        super().__init__()
        conv, inception, aux = blocks or [BasicConv2d, Inception, InceptionAux]
        self.aux_logits = aux_logits
        self.transform_input = transform_input
        self.conv1 = conv(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = conv(64, 64, kernel_size=1)
        self.conv3 = conv(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        for name, *sizes in _PLAN:
            if len(sizes) > 1:
                setattr(self, name, inception(*sizes))
            else:
                setattr(self, name, nn.MaxPool2d(sizes[0], stride=2, ceil_mode=True))
        self.aux1 = aux(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2 = aux(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(1024, num_classes)
        init_inception(self, "GoogleNet", init_weights, 0.01)

    def forward(self, x: rl.Tensor) -> Any:
        if self.transform_input:
            x = imagenet_to_unit(x)
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        aux1 = aux2 = None
        for name, *_ in _PLAN:
            x = getattr(self, name)(x)
            if name == "inception4a" and self.aux1 is not None and self.training:
                aux1 = self.aux1(x)
            elif name == "inception4d" and self.aux2 is not None and self.training:
                aux2 = self.aux2(x)
        x = self.fc(self.dropout(rl.flatten(self.avgpool(x), 1)))
        if is_scripting() or (self.training and self.aux_logits):
            return GoogLeNetOutputs(x, aux2, aux1)
        return x

    def _after_weights(self) -> None:
        if not self._keeps_aux:
            self.aux_logits, self.aux1, self.aux2 = False, None, None
        else:
            warnings.warn("auxiliary heads in the pretrained googlenet model are NOT pretrained, so make sure to train them", stacklevel=4)  # fmt: skip


@entry
def googlenet(weights: Any = None, **kwargs: Any) -> GoogLeNet:
    """GoogLeNet."""
    if weights is None:
        return GoogLeNet(**kwargs)
    keeps_aux = kwargs.pop("aux_logits", False)
    model = GoogLeNet(**{"transform_input": True, **kwargs, "aux_logits": True, "init_weights": False})
    model._keeps_aux = keeps_aux
    return model
