"""DenseNet (Huang et al., 2016)."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.utils import checkpoint

from .._init import initialize
from ._api import entry

__all__ = ["DenseNet"]


def _norm_relu_conv(in_channels: Any, out_channels: int, kernel: Any) -> Any:
    """A normalization, an activation and a convolution that keeps the size, by name."""
    return OrderedDict(
        norm=nn.BatchNorm2d(in_channels),
        relu=nn.ReLU(inplace=True),
        conv=nn.Conv2d(in_channels, out_channels, kernel, padding=kernel // 2, bias=False),
    )


class _DenseLayer(nn.Module):
    norm1: nn.Module
    relu1: nn.Module
    conv1: nn.Module
    norm2: nn.Module
    relu2: nn.Module
    conv2: nn.Module

    def __init__(
        self,
        num_input_features: int,
        growth_rate: int,
        bn_size: int,
        drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        widths = (num_input_features, bn_size * growth_rate, growth_rate)
        for i, kernel in enumerate((1, 3)):
            layers = _norm_relu_conv(widths[i], widths[i + 1], kernel)
            for name, layer in layers.items():
                self.add_module(f"{name}{i + 1}", layer)
        self.drop_rate, self.memory_efficient = float(drop_rate), memory_efficient

    def bn_function(self, inputs: Any) -> Any:
        return self.conv1(self.relu1(self.norm1(rl.cat(inputs, 1))))

    def forward(self, input: rl.Tensor) -> Any:
        inputs = [input] if isinstance(input, rl.Tensor) else input
        if self.memory_efficient and any(t.requires_grad for t in inputs):
            # The concatenation is computed again in backward instead of being kept.
            narrow = checkpoint.checkpoint(lambda *xs: self.bn_function(xs), *inputs, use_reentrant=False)
        else:
            narrow = self.bn_function(inputs)
        new = self.conv2(self.relu2(self.norm2(narrow)))
        return F.dropout(new, p=self.drop_rate, training=self.training) if self.drop_rate > 0 else new


class _DenseBlock(nn.ModuleDict):
    _version = 2

    def __init__(
        self,
        num_layers: Any,
        num_input_features: int,
        bn_size: int,
        growth_rate: int,
        drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        for i in range(num_layers):
            layer = _DenseLayer(
                num_input_features + i * growth_rate, growth_rate, bn_size, drop_rate, memory_efficient
            )
            self.add_module(f"denselayer{i + 1}", layer)

    def forward(self, init_features: Any) -> Any:
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return rl.cat(features, 1)


class _Transition(nn.Sequential):
    def __init__(self, num_input_features: int, num_output_features: Any) -> None:
        super().__init__(_norm_relu_conv(num_input_features, num_output_features, 1))
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    """Blocks in which every layer sees the outputs of all before it."""

    def __init__(
        self,
        growth_rate: int = 32,
        block_config: Any = (6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0,
        num_classes: int = 1000,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        stem = OrderedDict(
            conv0=nn.Conv2d(3, num_init_features, kernel_size=7, stride=2, padding=3, bias=False),
            norm0=nn.BatchNorm2d(num_init_features),
            relu0=nn.ReLU(inplace=True),
            pool0=nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
        )
        self.features = nn.Sequential(stem)
        channels = num_init_features
        for i, layers in enumerate(block_config):
            block = _DenseBlock(layers, channels, bn_size, growth_rate, drop_rate, memory_efficient)
            self.features.add_module(f"denseblock{i + 1}", block)
            channels += layers * growth_rate
            if i != len(block_config) - 1:
                self.features.add_module(f"transition{i + 1}", _Transition(channels, channels // 2))
                channels //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, num_classes)
        initialize(self, conv=nn.init.kaiming_normal_, linear=lambda weight: weight)

    def _adapt_state_dict(self, state: Any) -> dict[str, Any]:
        """The trained files have an older spelling: norm.1 where it is norm1 now."""
        return {
            re.sub(r"(denselayer\d+\.(?:norm|relu|conv))\.([12]\.)", r"\1\2", key): v
            for key, v in state.items()
        }

    def forward(self, x: rl.Tensor) -> Any:
        out = F.relu(self.features(x), inplace=True)
        return self.classifier(rl.flatten(F.adaptive_avg_pool2d(out, (1, 1)), 1))


@entry
def densenet121(**kwargs: Any) -> DenseNet:
    """DenseNet-121."""
    return DenseNet(32, (6, 12, 24, 16), 64, **kwargs)


@entry
def densenet161(**kwargs: Any) -> DenseNet:
    """DenseNet-161."""
    return DenseNet(48, (6, 12, 36, 24), 96, **kwargs)


@entry
def densenet169(**kwargs: Any) -> DenseNet:
    """DenseNet-169."""
    return DenseNet(32, (6, 12, 32, 32), 64, **kwargs)


@entry
def densenet201(**kwargs: Any) -> DenseNet:
    """DenseNet-201."""
    return DenseNet(32, (6, 12, 48, 32), 64, **kwargs)
