"""Swin transformers (Liu et al., 2021) and Swin v2 (2021)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import fx, nn
from rushlight.nn import functional as F

from .._init import initialize, normal, truncated
from ..ops.misc import MLP, Permute
from ..ops.stochastic_depth import StochasticDepth
from ._api import entry

__all__ = ["SwinTransformer"]


def _quarters(x: rl.Tensor) -> rl.Tensor:
    """(..., H, W, C) -> (..., H/2, W/2, 4C): the four pixels of each square, side by side."""
    h, w = x.shape[-3:-1]
    x = F.pad(x, (0, 0, 0, w % 2, 0, h % 2))
    corners = ((0, 0), (1, 0), (0, 1), (1, 1))
    return rl.cat([x[..., i::2, j::2, :] for i, j in corners], -1)


class PatchMerging(nn.Module):
    """Half the size, twice the channels."""

    normed = 4  # times dim: the channels that are normalized, before the reduction or after it

    def __init__(self, dim: int, norm_layer: Any = nn.LayerNorm) -> None:
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(self.normed * dim)

    def forward(self, x: rl.Tensor) -> Any:
        return self.reduction(self.norm(_quarters(x)))


class PatchMergingV2(PatchMerging):
    """Half the size, twice the channels, normalized after."""

    normed = 2

    def forward(self, x: rl.Tensor) -> Any:
        return self.norm(self.reduction(_quarters(x)))


def _region_mask(x: rl.Tensor, size: Any, window: Any, shift: Any) -> rl.Tensor:
    """What must not attend to what after a cyclic shift: (windows, 1, positions, positions) of 0 and -100."""
    regions = x.new_zeros(size)
    count = 0
    slices = [((0, -w), (-w, -s), (-s, None)) if s else ((0, None),) for w, s in zip(window, shift)]
    for top, bottom in slices[0]:
        for left, right in slices[1]:
            regions[top:bottom, left:right] = count
            count += 1
    h, w = size[0] // window[0], size[1] // window[1]
    regions = regions.view(h, window[0], w, window[1]).permute(0, 2, 1, 3).reshape(h * w, -1)
    distance = regions.unsqueeze(1) - regions.unsqueeze(2)
    return distance.masked_fill(distance != 0, -100.0).masked_fill(distance == 0, 0.0).unsqueeze(1)


def _without_key_bias(bias: Any) -> Any:
    if bias is None:
        return None
    third = bias.numel() // 3
    bias = bias.clone()
    bias[third : 2 * third].zero_()
    return bias


def shifted_window_attention(
    input: rl.Tensor,
    qkv_weight: Any,
    proj_weight: Any,
    relative_position_bias: Any,
    window_size: Any,
    num_heads: Any,
    shift_size: Any,
    attention_dropout: float = 0.0,
    dropout: float = 0.0,
    qkv_bias: Any = None,
    proj_bias: Any = None,
    logit_scale: Any = None,
    training: bool = True,
) -> rl.Tensor:
    """Attention of (N, H, W, C) within windows that are shifted cyclically; with a logit_scale it is Swin v2's, of cosines."""
    n, h, w, c = input.shape
    window = window_size
    x = F.pad(input, (0, 0, 0, -w % window[1], 0, -h % window[0]))
    ph, pw = x.shape[1:3]
    shift = [0 if win >= size else s for win, size, s in zip(window, (ph, pw), shift_size)]
    if sum(shift) > 0:
        x = rl.roll(x, shifts=(-shift[0], -shift[1]), dims=(1, 2))
    rows, columns = ph // window[0], pw // window[1]
    positions = window[0] * window[1]
    x = x.view(n, rows, window[0], columns, window[1], c).permute(0, 1, 3, 2, 4, 5)
    x = x.reshape(n * rows * columns, positions, c)
    qkv = F.linear(x, qkv_weight, qkv_bias if logit_scale is None else _without_key_bias(qkv_bias))
    q, k, v = qkv.reshape(x.shape[0], positions, 3, num_heads, c // num_heads).permute(2, 0, 3, 1, 4)
    if logit_scale is None:
        scores = (q * (q.shape[-1] ** -0.5)).matmul(k.transpose(-2, -1))
    else:
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scores = scores * rl.clamp(logit_scale, max=math.log(100.0)).exp()
    scores = scores + relative_position_bias
    if sum(shift) > 0:
        mask = _region_mask(x, (ph, pw), window, shift)
        scores = scores.view(n, rows * columns, num_heads, positions, positions) + mask
        scores = scores.view(-1, num_heads, positions, positions)
    scores = F.dropout(F.softmax(scores, dim=-1), p=attention_dropout, training=training)
    x = F.linear(scores.matmul(v).transpose(1, 2).reshape(x.shape[0], positions, c), proj_weight, proj_bias)
    x = F.dropout(x, p=dropout, training=training)
    x = x.view(n, rows, columns, window[0], window[1], c).permute(0, 1, 3, 2, 4, 5).reshape(n, ph, pw, c)
    if sum(shift) > 0:
        x = rl.roll(x, shifts=(shift[0], shift[1]), dims=(1, 2))
    return x[:, :h, :w].contiguous()


fx.wrap("shifted_window_attention")  # which windows there are depends on the size of the image


class WindowAttention(nn.Module):
    """Attention within windows of `axes` dimensions; positions know each other by a learned bias."""

    axes: int

    def __init__(
        self,
        dim: int,
        window_size: Any,
        shift_size: Any,
        num_heads: Any,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if {len(window_size), len(shift_size)} != {self.axes}:
            raise ValueError("window_size and shift_size must be of length 2")
        self.window_size, self.shift_size, self.num_heads = window_size, shift_size, num_heads
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.logit_scale: nn.Parameter | None = None  # Swin v2 learns one
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        self.define_relative_position_bias_table()
        self.define_relative_position_index()

    def define_relative_position_bias_table(self) -> None:
        rows = math.prod(2 * length - 1 for length in self.window_size)
        self.relative_position_bias_table = nn.Parameter(rl.zeros(rows, self.num_heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def _relative_position_index(self) -> Any:
        """(positions, positions): for each pair of a window, the row of its bias."""
        axes = rl.meshgrid(*(rl.arange(length) for length in self.window_size), indexing="ij")
        index = 0
        for length, positions in zip(self.window_size, axes):
            distances = positions.flatten()[:, None] - positions.flatten()[None, :]
            index = index * (2 * length - 1) + distances + length - 1
        return index

    def define_relative_position_index(self) -> None:
        self.register_buffer("relative_position_index", self._relative_position_index())

    def _attend(
        self, function: Any, x: rl.Tensor, bias: Any, window_size: Any, shift_size: Any, **options: Any
    ) -> Any:
        """Calls a function of attention with the weights and options of this layer."""
        weights = self.qkv.weight, self.proj.weight
        options |= {"qkv_bias": self.qkv.bias, "proj_bias": self.proj.bias, "training": self.training}
        rates = self.attention_dropout, self.dropout
        return function(x, *weights, bias, window_size, self.num_heads, shift_size, *rates, **options)


class ShiftedWindowAttention(WindowAttention):
    """Attention within windows of an image that may be shifted."""

    axes = 2

    def define_relative_position_index(self) -> None:
        self.register_buffer("relative_position_index", self._relative_position_index().flatten())

    def get_relative_position_bias(self) -> rl.Tensor:
        """(1, heads, positions, positions)"""
        n = math.prod(self.window_size)
        bias = self.relative_position_bias_table[self.relative_position_index].view(n, n, -1)
        return bias.permute(2, 0, 1).contiguous().unsqueeze(0)

    def forward(self, x: rl.Tensor) -> Any:
        """(N, H, W, C) -> (N, H, W, C)"""
        bias = self.get_relative_position_bias()
        options = {"logit_scale": self.logit_scale}
        return self._attend(shifted_window_attention, x, bias, self.window_size, self.shift_size, **options)


class ShiftedWindowAttentionV2(ShiftedWindowAttention):
    """Cosine attention with a learned scale; the bias of a distance comes from a small network."""

    def __init__(
        self,
        dim: int,
        window_size: Any,
        shift_size: Any,
        num_heads: Any,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(
            dim, window_size, shift_size, num_heads, qkv_bias, proj_bias, attention_dropout, dropout
        )
        self.logit_scale = nn.Parameter(rl.log(10 * rl.ones((num_heads, 1, 1))))
        layers = nn.Linear(2, 512), nn.ReLU(inplace=True), nn.Linear(512, num_heads, bias=False)
        self.cpb_mlp = nn.Sequential(*layers)
        if qkv_bias:  # keys have none
            third = self.qkv.bias.numel() // 3
            self.qkv.bias[third : 2 * third].data.zero_()

    def define_relative_position_bias_table(self) -> None:
        h, w = self.window_size
        far = rl.meshgrid(
            rl.arange(-(h - 1), h, dtype=rl.float32), rl.arange(-(w - 1), w, dtype=rl.float32), indexing="ij"
        )
        table = rl.stack(far).permute(1, 2, 0).contiguous().unsqueeze(0)
        table[..., 0] /= h - 1
        table[..., 1] /= w - 1
        table *= 8
        table = rl.sign(table) * rl.log2(rl.abs(table) + 1.0) / 3.0
        self.register_buffer("relative_coords_table", table)

    def get_relative_position_bias(self) -> rl.Tensor:
        n = self.window_size[0] * self.window_size[1]
        table = self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)
        bias = table[self.relative_position_index].view(n, n, -1).permute(2, 0, 1).contiguous().unsqueeze(0)
        return 16 * rl.sigmoid(bias)


class SwinTransformerBlock(nn.Module):
    """Attention and a perceptron, each normalized before and added to what came."""

    def __init__(
        self,
        dim: int,
        num_heads: Any,
        window_size: Any,
        shift_size: Any,
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: Any = nn.LayerNorm,
        attn_layer: Any = ShiftedWindowAttention,
    ) -> None:
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = attn_layer(
            dim, window_size, shift_size, num_heads, attention_dropout=attention_dropout, dropout=dropout
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        widths = [int(dim * mlp_ratio), dim]
        self.norm2 = norm_layer(dim)
        self.mlp = MLP(dim, widths, activation_layer=nn.GELU, dropout=dropout)
        initialize(self.mlp, linear=nn.init.xavier_uniform_, bias=normal(1e-6))

    def forward(self, x: rl.Tensor) -> Any:
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class SwinTransformerBlockV2(SwinTransformerBlock):
    """The same, normalized after."""

    def __init__(self, *args: Any, attn_layer: Any = ShiftedWindowAttentionV2, **kwargs: Any) -> None:
        kwargs["attn_layer"] = attn_layer
        super().__init__(*args, **kwargs)

    def forward(self, x: rl.Tensor) -> Any:
        x = x + self.stochastic_depth(self.norm1(self.attn(x)))
        return x + self.stochastic_depth(self.norm2(self.mlp(x)))


def window_stages(
    block: Any,
    merging: Any,
    dim: int,
    depths: Any,
    num_heads: Any,
    window_size: Any,
    drop_path: Any,
    norm_layer: Any,
    **options: Any,
) -> list[Any]:
    """The stages of a network: blocks whose windows are shifted in every second one; patches are merged between stages."""
    layers, total = [], sum(depths)
    shifts = [[0] * len(window_size), [w // 2 for w in window_size]]
    for i, depth in enumerate(depths):
        first, stage = sum(depths[:i]), []
        for j in range(depth):
            # Later blocks are left out more often.
            chance = drop_path * float(first + j) / (total - 1)
            shape = {"window_size": window_size, "shift_size": list(shifts[j % 2])}
            rates = {"stochastic_depth_prob": chance, "norm_layer": norm_layer, **options}
            stage.append(block(dim * 2**i, num_heads[i], **shape, **rates))
        layers.append(nn.Sequential(*stage))
        if i + 1 < len(depths):
            layers.append(merging(dim * 2**i, norm_layer))
    return layers


class SwinTransformer(nn.Module):
    """Stages of blocks over windows, with patches merged between them."""

    def __init__(
        self,
        patch_size: Any,
        embed_dim: int,
        depths: Any,
        num_heads: Any,
        window_size: Any,
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.1,
        num_classes: int = 1000,
        norm_layer: Any = None,
        block: Any = None,
        downsample_layer: Any = PatchMerging,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        block, norm_layer = block or SwinTransformerBlock, norm_layer or partial(nn.LayerNorm, eps=1e-5)
        patches = nn.Conv2d(3, embed_dim, kernel_size=tuple(patch_size), stride=tuple(patch_size))
        self.features = nn.Sequential(
            nn.Sequential(patches, Permute([0, 2, 3, 1]), norm_layer(embed_dim)),
            *window_stages(
                block,
                downsample_layer,
                embed_dim,
                depths,
                num_heads,
                window_size,
                stochastic_depth_prob,
                norm_layer,
                mlp_ratio=mlp_ratio,
                dropout=dropout,
                attention_dropout=attention_dropout,
            ),
        )
        width = embed_dim * 2 ** (len(depths) - 1)
        self.norm, self.permute = norm_layer(width), Permute([0, 3, 1, 2])
        self.avgpool, self.flatten = nn.AdaptiveAvgPool2d(1), nn.Flatten(1)
        self.head = nn.Linear(width, num_classes)
        initialize(self, linear=truncated(0.02))

    def forward(self, x: rl.Tensor) -> Any:
        x = self.permute(self.norm(self.features(x)))
        return self.head(self.flatten(self.avgpool(x)))


def _swin(
    embed_dim: int,
    depths: Any,
    num_heads: Any,
    window: Any,
    stochastic_depth_prob: float,
    kwargs: Any,
    two: bool = False,
) -> SwinTransformer:
    options: dict[str, Any] = (
        {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2} if two else {}
    )
    options |= {"stochastic_depth_prob": stochastic_depth_prob, **kwargs}
    return SwinTransformer([4, 4], embed_dim, depths, num_heads, [window, window], **options)


@entry
def swin_t(**kwargs: Any) -> SwinTransformer:
    """Swin, tiny."""
    return _swin(96, [2, 2, 6, 2], [3, 6, 12, 24], 7, 0.2, kwargs)


@entry
def swin_s(**kwargs: Any) -> SwinTransformer:
    """Swin, small."""
    return _swin(96, [2, 2, 18, 2], [3, 6, 12, 24], 7, 0.3, kwargs)


@entry
def swin_b(**kwargs: Any) -> SwinTransformer:
    """Swin, base."""
    return _swin(128, [2, 2, 18, 2], [4, 8, 16, 32], 7, 0.5, kwargs)


@entry
def swin_v2_t(**kwargs: Any) -> SwinTransformer:
    """Swin v2, tiny."""
    return _swin(96, [2, 2, 6, 2], [3, 6, 12, 24], 8, 0.2, kwargs, two=True)


@entry
def swin_v2_s(**kwargs: Any) -> SwinTransformer:
    """Swin v2, small."""
    return _swin(96, [2, 2, 18, 2], [3, 6, 12, 24], 8, 0.3, kwargs, two=True)


@entry
def swin_v2_b(**kwargs: Any) -> SwinTransformer:
    """Swin v2, base."""
    return _swin(128, [2, 2, 18, 2], [4, 8, 16, 32], 8, 0.5, kwargs, two=True)
