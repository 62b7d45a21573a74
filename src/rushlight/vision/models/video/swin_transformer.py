"""Video Swin transformers (Liu et al., 2021)."""

from __future__ import annotations

from functools import partial
from typing import Any

import rushlight as rl
from rushlight import fx, nn
from rushlight.nn import functional as F

from ..._init import initialize, truncated
from .._api import entry
from ..swin_transformer import PatchMerging, SwinTransformerBlock, WindowAttention, window_stages

__all__ = ["SwinTransformer3d"]


def _get_window_and_shift_size(
    shift_size: Any, size_dhw: Any, window_size: Any
) -> tuple[list[Any], list[int | Any]]:
    """Windows are no larger than the video, and where one covers all of it nothing is shifted."""
    pairs = [(s, 0) if s <= w else (w, shift) for s, w, shift in zip(size_dhw, window_size, shift_size)]
    return [window for window, _ in pairs], [shift for _, shift in pairs]


def _by_window(x: rl.Tensor, window: Any) -> rl.Tensor:
    """(N, T, H, W, C) -> (N * windows, positions of a window, C)"""
    n, t, h, w, c = x.shape
    x = x.view(n, t // window[0], window[0], h // window[1], window[1], w // window[2], window[2], c)
    return x.permute(0, 1, 3, 5, 2, 4, 6, 7).reshape(-1, window[0] * window[1] * window[2], c)


def _region_mask(x: rl.Tensor, size: Any, window: Any, shift: Any) -> rl.Tensor:
    """What must not attend to what after a cyclic shift: (windows, 1, positions, positions) of 0 and -100."""
    regions = x.new_zeros(size)
    cuts = [((0, -w), (-w, -s), (-s, None)) if s else ((0, None),) for w, s in zip(window, shift)]
    count = 0
    for t in cuts[0]:
        for h in cuts[1]:
            for w in cuts[2]:
                regions[t[0] : t[1], h[0] : h[1], w[0] : w[1]] = count
                count += 1
    regions = _by_window(regions[None, ..., None], window).squeeze(-1)
    distance = regions.unsqueeze(1) - regions.unsqueeze(2)
    return distance.masked_fill(distance != 0, -100.0).masked_fill(distance == 0, 0.0).unsqueeze(1)


def shifted_window_attention_3d(
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
    training: bool = True,
) -> rl.Tensor:
    """Attention of (N, T, H, W, C) within windows that are shifted cyclically."""
    n, t, h, w, c = input.shape
    window, shift = window_size, list(shift_size)
    x = F.pad(input, (0, 0, 0, -w % window[2], 0, -h % window[1], 0, -t % window[0]))
    size = tuple(x.shape[1:4])
    if sum(shift) > 0:
        x = rl.roll(x, shifts=tuple(-s for s in shift), dims=(1, 2, 3))
    x = _by_window(x, window)
    count, positions = x.shape[:2]
    qkv = F.linear(x, qkv_weight, qkv_bias).reshape(count, positions, 3, num_heads, c // num_heads)
    q, k, v = qkv.permute(2, 0, 3, 1, 4)
    scores = (q * (c // num_heads) ** -0.5).matmul(k.transpose(-2, -1)) + relative_position_bias
    if sum(shift) > 0:
        mask = _region_mask(x, size, window, shift)
        scores = scores.view(n, count // n, num_heads, positions, positions) + mask
        scores = scores.view(-1, num_heads, positions, positions)
    scores = F.dropout(F.softmax(scores, dim=-1), p=attention_dropout, training=training)
    x = F.linear(scores.matmul(v).transpose(1, 2).reshape(count, positions, c), proj_weight, proj_bias)
    x = F.dropout(x, p=dropout, training=training)
    grid = [s // win for s, win in zip(size, window)]
    x = x.view(n, *grid, *window, c).permute(0, 1, 4, 2, 5, 3, 6, 7).reshape(n, *size, c)
    if sum(shift) > 0:
        x = rl.roll(x, shifts=tuple(shift), dims=(1, 2, 3))
    return x[:, :t, :h, :w].contiguous()


def _bias_of(table: Any, index: Any, positions: Any, heads: Any) -> Any:
    """(1, heads, positions, positions); a window that was cut has the first positions of a whole one."""
    bias = table[index[:positions, :positions].flatten()].view(positions, positions, heads)
    return bias.permute(2, 0, 1).contiguous().unsqueeze(0)


class ShiftedWindowAttention3d(WindowAttention):
    """Attention within windows of a video that may be shifted."""

    axes = 3

    def get_relative_position_bias(self, window_size: Any) -> Any:
        table, index = self.relative_position_bias_table, self.relative_position_index
        return _bias_of(table, index, window_size[0] * window_size[1] * window_size[2], self.num_heads)

    def forward(self, x: rl.Tensor) -> Any:
        """(N, T, H, W, C) -> (N, T, H, W, C)"""
        window, shift = _get_window_and_shift_size(self.shift_size, x.shape[1:4], self.window_size)
        bias = self.get_relative_position_bias(window)
        return self._attend(shifted_window_attention_3d, x, bias, window, shift)


# Which windows there are depends on the size of the video.
fx.wrap("_get_window_and_shift_size")
fx.wrap("shifted_window_attention_3d")
fx.wrap("_bias_of")


class PatchEmbed3d(nn.Module):
    """Patches of a video as vectors: (N, C, T, H, W) -> (N, T', H', W', embed_dim)."""

    def __init__(
        self, patch_size: Any, in_channels: int = 3, embed_dim: int = 96, norm_layer: Any = None
    ) -> None:
        super().__init__()
        self.tuple_patch_size = tuple(patch_size)
        self.proj = nn.Conv3d(
            in_channels, embed_dim, kernel_size=self.tuple_patch_size, stride=self.tuple_patch_size
        )
        self.norm = norm_layer(embed_dim) if norm_layer is not None else nn.Identity()

    def forward(self, x: rl.Tensor) -> Any:
        _, _, t, h, w = x.shape
        p = self.tuple_patch_size
        x = self.proj(F.pad(x, (0, -w % p[2], 0, -h % p[1], 0, -t % p[0])))
        return self.norm(x.permute(0, 2, 3, 4, 1))


class SwinTransformer3d(nn.Module):
    """Stages of blocks over windows of a video, with patches of images merged between them."""

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
        num_classes: int = 400,
        norm_layer: Any = None,
        block: Any = None,
        downsample_layer: Any = PatchMerging,
        patch_embed: Any = None,
    ) -> None:
        super().__init__()
        self.num_classes = num_classes
        block = block or partial(SwinTransformerBlock, attn_layer=ShiftedWindowAttention3d)
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-5)
        self.patch_embed = (patch_embed or PatchEmbed3d)(
            patch_size=patch_size, embed_dim=embed_dim, norm_layer=norm_layer
        )
        self.pos_drop = nn.Dropout(p=dropout)
        stages = window_stages(
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
        )
        self.features = nn.Sequential(*stages)
        self.num_features = embed_dim << (len(depths) - 1)
        self.norm, self.avgpool = norm_layer(self.num_features), nn.AdaptiveAvgPool3d(1)
        self.head = nn.Linear(self.num_features, num_classes)
        initialize(self, linear=truncated(0.02))

    def forward(self, x: rl.Tensor) -> Any:
        x = self.norm(self.features(self.pos_drop(self.patch_embed(x))))
        x = self.avgpool(x.permute(0, 4, 1, 2, 3))
        return self.head(rl.flatten(x, 1))


def _swin3d(embed_dim: int, depths: Any, num_heads: Any, kwargs: Any) -> SwinTransformer3d:
    return SwinTransformer3d(
        [2, 4, 4], embed_dim, depths, num_heads, [8, 7, 7], **{"stochastic_depth_prob": 0.1, **kwargs}
    )


@entry
def swin3d_t(**kwargs: Any) -> SwinTransformer3d:
    """Video Swin, tiny."""
    return _swin3d(96, [2, 2, 6, 2], [3, 6, 12, 24], kwargs)


@entry
def swin3d_s(**kwargs: Any) -> SwinTransformer3d:
    """Video Swin, small."""
    return _swin3d(96, [2, 2, 18, 2], [3, 6, 12, 24], kwargs)


@entry
def swin3d_b(**kwargs: Any) -> SwinTransformer3d:
    """Video Swin, base."""
    return _swin3d(128, [2, 2, 18, 2], [4, 8, 16, 32], kwargs)
