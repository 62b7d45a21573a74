"""MaxViT (Tu et al., 2022): inverted bottlenecks, attention within windows, attention over a grid of windows."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial
from typing import Any

import numpy as np

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F

from .._init import initialize, normal
from ..ops.misc import Conv2dNormActivation, SqueezeExcitation
from ..ops.stochastic_depth import StochasticDepth
from ._api import entry

__all__ = ["MaxVit"]


def _get_conv_output_shape(input_size: Any, kernel_size: Any, stride: Any, padding: Any) -> tuple[Any, ...]:
    return tuple((size - kernel_size + 2 * padding) // stride + 1 for size in input_size)


def _make_block_input_shapes(input_size: Any, n_blocks: Any) -> list[Any]:
    """The sizes of the images that the blocks get: each halves it."""
    shapes, shape = [], _get_conv_output_shape(input_size, 3, 2, 1)
    for _ in range(n_blocks):
        shape = _get_conv_output_shape(shape, 3, 2, 1)
        shapes.append(shape)
    return shapes


def _get_relative_position_index(height: Any, width: Any) -> Any:
    """For each pair of positions of a window, the row of its bias."""
    positions = rl.stack(rl.meshgrid([rl.arange(height), rl.arange(width)], indexing="ij")).flatten(1)
    relative = positions[:, :, None] - positions[:, None, :]
    return (relative[0] + height - 1) * (2 * width - 1) + relative[1] + width - 1


class MBConv(nn.Module):
    """Wider, depthwise, weighted channels, and narrow again, added to what came."""

    def __init__(
        self,
        in_channels: Any,
        out_channels: int,
        expansion_ratio: Any,
        squeeze_ratio: Any,
        stride: Any,
        activation_layer: Any,
        norm_layer: Any,
        p_stochastic_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if stride != 1 or in_channels != out_channels:
            shortcut: list[nn.Module] = [
                nn.Conv2d(in_channels, out_channels, kernel_size=1, stride=1, bias=True)
            ]
            if stride == 2:
                shortcut.insert(0, nn.AvgPool2d(kernel_size=3, stride=stride, padding=1))
            self.proj: nn.Module = nn.Sequential(*shortcut)
        else:
            self.proj = nn.Identity()
        middle, squeezed = int(out_channels * expansion_ratio), int(out_channels * squeeze_ratio)
        self.stochastic_depth = (
            StochasticDepth(p_stochastic_dropout, mode="row") if p_stochastic_dropout else nn.Identity()
        )
        layer = partial(Conv2dNormActivation, activation_layer=activation_layer, inplace=None)
        self.layers = nn.Sequential(
            OrderedDict(
                pre_norm=norm_layer(in_channels),
                conv_a=layer(in_channels, middle, kernel_size=1, stride=1, padding=0, norm_layer=norm_layer),
                conv_b=layer(
                    middle,
                    middle,
                    kernel_size=3,
                    stride=stride,
                    padding=1,
                    norm_layer=norm_layer,
                    groups=middle,
                ),
                squeeze_excitation=SqueezeExcitation(middle, squeezed, activation=nn.SiLU),
                conv_c=nn.Conv2d(middle, out_channels, kernel_size=1, bias=True),
            )
        )

    def forward(self, x: rl.Tensor) -> Any:
        return self.proj(x) + self.stochastic_depth(self.layers(x))


class RelativePositionalMultiHeadAttention(nn.Module):
    """Attention among the positions of each group (N, groups, positions, C); positions know each other by a learned bias."""

    relative_position_index: rl.Tensor

    def __init__(self, feat_dim: Any, head_dim: Any, max_seq_len: Any) -> None:
        super().__init__()
        if feat_dim % head_dim:
            raise ValueError(f"feat_dim: {feat_dim} must be divisible by head_dim: {head_dim}")
        self.n_heads, self.head_dim = feat_dim // head_dim, head_dim
        self.size, self.max_seq_len = int(math.sqrt(max_seq_len)), max_seq_len
        self.to_qkv = nn.Linear(feat_dim, self.n_heads * head_dim * 3)
        self.scale_factor = feat_dim**-0.5
        self.merge = nn.Linear(head_dim * self.n_heads, feat_dim)
        table = rl.empty(((2 * self.size - 1) * (2 * self.size - 1), self.n_heads), dtype=rl.float32)
        self.relative_position_bias_table = nn.Parameter(table)
        self.register_buffer("relative_position_index", _get_relative_position_index(self.size, self.size))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def get_relative_positional_bias(self) -> rl.Tensor:
        """(1, heads, positions, positions)"""
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        bias = bias.view(self.max_seq_len, self.max_seq_len, -1)
        return bias.permute(2, 0, 1).contiguous().unsqueeze(0)

    def forward(self, x: rl.Tensor) -> Any:
        n, groups, positions, channels = x.shape
        qkv = self.to_qkv(x).reshape(n, groups, positions, 3, self.n_heads, self.head_dim)
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5).unbind(0)
        scores = q @ (k * self.scale_factor).transpose(-2, -1)
        out = F.softmax(scores + self.get_relative_positional_bias(), dim=-1) @ v
        return self.merge(out.permute(0, 1, 3, 2, 4).reshape(n, groups, positions, channels))


class SwapAxes(nn.Module):
    """Two dimensions, exchanged."""

    def __init__(self, a: Any, b: Any) -> None:
        super().__init__()
        self.a, self.b = a, b

    def forward(self, x: rl.Tensor) -> Any:
        return rl.swapaxes(x, self.a, self.b)


class WindowPartition(nn.Module):
    """(N, C, H, W) -> (N, windows, p * p, C)"""

    def forward(self, x: rl.Tensor, p: Any) -> Any:
        n, c, h, w = x.shape
        x = x.reshape(n, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1)
        return x.reshape(n, (h // p) * (w // p), p * p, c)


class WindowDepartition(nn.Module):
    """(N, windows, p * p, C) -> (N, C, H, W)"""

    def forward(self, x: rl.Tensor, p: Any, h_partitions: Any, w_partitions: Any) -> Any:
        n, _, _, c = x.shape
        x = x.reshape(n, h_partitions, w_partitions, p, p, c).permute(0, 5, 1, 3, 2, 4)
        return x.reshape(n, c, h_partitions * p, w_partitions * p)


class PartitionAttentionLayer(nn.Module):
    """Attention and a perceptron within windows, or over a grid: the same position of all windows."""

    def __init__(
        self,
        in_channels: Any,
        head_dim: Any,
        partition_size: Any,
        partition_type: Any,
        grid_size: Any,
        mlp_ratio: Any,
        activation_layer: Any,
        norm_layer: Any,
        attention_dropout: float,
        mlp_dropout: Any,
        p_stochastic_dropout: Any,
    ) -> None:
        super().__init__()
        if partition_type not in ("grid", "window"):
            raise ValueError("partition_type must be either 'grid' or 'window'")
        self.n_heads, self.head_dim = in_channels // head_dim, head_dim
        self.n_partitions = grid_size[0] // partition_size
        self.partition_type, self.grid_size = partition_type, grid_size
        if partition_type == "window":
            self.p, self.g = partition_size, self.n_partitions
        else:
            self.p, self.g = self.n_partitions, partition_size
        self.partition_op, self.departition_op = WindowPartition(), WindowDepartition()
        self.partition_swap, self.departition_swap = (
            SwapAxes(-2, -3) if partition_type == "grid" else nn.Identity() for _ in range(2)
        )
        attention = RelativePositionalMultiHeadAttention(in_channels, head_dim, partition_size**2)
        self.attn_layer = nn.Sequential(norm_layer(in_channels), attention, nn.Dropout(attention_dropout))
        hidden = in_channels * mlp_ratio
        mlp = (nn.Linear(in_channels, hidden), activation_layer(), nn.Linear(hidden, in_channels))
        self.mlp_layer = nn.Sequential(nn.LayerNorm(in_channels), *mlp, nn.Dropout(mlp_dropout))
        self.stochastic_dropout = StochasticDepth(p_stochastic_dropout, mode="row")

    def forward(self, x: rl.Tensor) -> Any:
        rows, columns = self.grid_size[0] // self.p, self.grid_size[1] // self.p
        rl._assert(
            self.grid_size[0] % self.p == 0 and self.grid_size[1] % self.p == 0,
            f"Grid size must be divisible by partition size. Got grid size of {self.grid_size} and partition size of {self.p}",
        )
        x = self.partition_swap(self.partition_op(x, self.p))
        x = x + self.stochastic_dropout(self.attn_layer(x))
        x = x + self.stochastic_dropout(self.mlp_layer(x))
        return self.departition_op(self.departition_swap(x), self.p, rows, columns)


class MaxVitLayer(nn.Module):
    """A bottleneck, then attention of both kinds."""

    def __init__(
        self,
        in_channels: Any,
        out_channels: int,
        squeeze_ratio: Any,
        expansion_ratio: Any,
        stride: Any,
        norm_layer: Any,
        activation_layer: Any,
        head_dim: Any,
        mlp_ratio: Any,
        mlp_dropout: Any,
        attention_dropout: float,
        p_stochastic_dropout: Any,
        partition_size: Any,
        grid_size: Any,
    ) -> None:
        super().__init__()
        parts: OrderedDict[str, nn.Module] = OrderedDict(
            MBconv=MBConv(
                in_channels,
                out_channels,
                expansion_ratio,
                squeeze_ratio,
                stride,
                activation_layer,
                norm_layer,
                p_stochastic_dropout,
            )
        )
        for kind in ("window", "grid"):
            parts[f"{kind}_attention"] = PartitionAttentionLayer(
                out_channels,
                head_dim,
                partition_size,
                kind,
                grid_size,
                mlp_ratio,
                activation_layer,
                nn.LayerNorm,
                attention_dropout,
                mlp_dropout,
                p_stochastic_dropout,
            )
        self.layers = nn.Sequential(parts)

    def forward(self, x: rl.Tensor) -> Any:
        return self.layers(x)


class MaxVitBlock(nn.Module):
    """Layers of one size, the first of which halves the image."""

    def __init__(
        self,
        in_channels: Any,
        out_channels: int,
        squeeze_ratio: Any,
        expansion_ratio: Any,
        norm_layer: Any,
        activation_layer: Any,
        head_dim: Any,
        mlp_ratio: Any,
        mlp_dropout: Any,
        attention_dropout: float,
        partition_size: Any,
        input_grid_size: Any,
        n_layers: Any,
        p_stochastic: Any,
    ) -> None:
        super().__init__()
        if len(p_stochastic) != n_layers:
            raise ValueError(
                f"p_stochastic must have length n_layers={n_layers}, got p_stochastic={p_stochastic}."
            )
        self.layers = nn.ModuleList()
        self.grid_size = _get_conv_output_shape(input_grid_size, 3, 2, 1)
        for i, p in enumerate(p_stochastic):
            self.layers.append(
                MaxVitLayer(
                    in_channels if i == 0 else out_channels,
                    out_channels,
                    squeeze_ratio,
                    expansion_ratio,
                    2 if i == 0 else 1,
                    norm_layer,
                    activation_layer,
                    head_dim,
                    mlp_ratio,
                    mlp_dropout,
                    attention_dropout,
                    p,
                    partition_size,
                    self.grid_size,
                )
            )

    def forward(self, x: rl.Tensor) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class MaxVit(nn.Module):
    """A stem, blocks and a classifier, for images of one size."""

    def __init__(
        self,
        input_size: Any,
        stem_channels: Any,
        partition_size: Any,
        block_channels: Any,
        block_layers: Any,
        head_dim: Any,
        stochastic_depth_prob: float,
        norm_layer: Any = None,
        activation_layer: Any = nn.GELU,
        squeeze_ratio: float = 0.25,
        expansion_ratio: int = 4,
        mlp_ratio: int = 4,
        mlp_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=1e-3, momentum=0.01)
        for i, size in enumerate(_make_block_input_shapes(input_size, len(block_channels))):
            if size[0] % partition_size or size[1] % partition_size:
                raise ValueError(
                    f"Input size {size} of block {i} is not divisible by partition size {partition_size}. Consider changing "
                    f"the partition size or the input size.\nCurrent configuration yields the following block input sizes: "
                    f"{_make_block_input_shapes(input_size, len(block_channels))}."
                )
        options = {"norm_layer": norm_layer, "activation_layer": activation_layer, "inplace": None}
        self.stem = nn.Sequential(
            Conv2dNormActivation(3, stem_channels, stride=2, bias=False, **options),
            Conv2dNormActivation(stem_channels, stem_channels, norm_layer=None, activation_layer=None),
        )
        size = _get_conv_output_shape(input_size, kernel_size=3, stride=2, padding=1)
        self.partition_size = partition_size
        self.blocks = nn.ModuleList()
        # Later layers are left out more often.
        chances = np.linspace(0, stochastic_depth_prob, sum(block_layers)).tolist()
        done, width = 0, stem_channels
        for channels, count in zip(block_channels, block_layers):
            self.blocks.append(
                MaxVitBlock(
                    width,
                    channels,
                    squeeze_ratio,
                    expansion_ratio,
                    norm_layer,
                    activation_layer,
                    head_dim,
                    mlp_ratio,
                    mlp_dropout,
                    attention_dropout,
                    partition_size,
                    size,
                    count,
                    chances[done : done + count],
                )
            )
            size, width, done = self.blocks[-1].grid_size, channels, done + count
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, num_classes, bias=False),
        )
        initialize(self, conv=normal(0.02), linear=normal(0.02))

    def forward(self, x: rl.Tensor) -> Any:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(x)


@entry
def maxvit_t(weights: Any = None, **kwargs: Any) -> MaxVit:
    """MaxViT, tiny."""
    size = kwargs.pop("input_size", (224, 224))
    if weights is not None and tuple(size) != (224, 224):
        raise ValueError(f"The parameter 'input_size' expected value (224, 224) but got {size} instead.")
    return MaxVit(size, 64, 7, [64, 128, 256, 512], [2, 2, 5, 2], 32, 0.2, **kwargs)
