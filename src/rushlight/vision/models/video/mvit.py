"""MViT, multiscale vision transformers (Fan et al., 2021), and the second version (Li et al., 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import fx, nn
from rushlight.nn import functional as F

from ..._init import initialize, truncated
from ...ops.misc import MLP
from ...ops.stochastic_depth import StochasticDepth
from .._api import entry
from .._utils import dropout_classifier

__all__ = ["MViT"]


@dataclass
class MSBlockConfig:
    """A block: heads, channels, and how queries, keys and values are pooled (time, height, width)."""

    num_heads: int
    input_channels: int
    output_channels: int
    kernel_q: Sequence[int]
    kernel_kv: Sequence[int]
    stride_q: Sequence[int]
    stride_kv: Sequence[int]


def _pooled_size(thw: Any, layer: Any) -> tuple[Any, ...]:
    """The size of a video after a layer that pools it."""
    options = zip(thw, layer.kernel_size, layer.stride, layer.padding)
    return tuple((size + 2 * p - k) // s + 1 for size, k, s, p in options)


class Pool(nn.Module):
    """Pools the positions of (N, heads, 1 + positions, C); the class token, the first, stays as it is."""

    def __init__(self, pool: Any, norm: Any) -> None:
        super().__init__()
        self.pool = pool
        self.norm_act = nn.Sequential(norm) if norm is not None else None

    def forward(self, x: rl.Tensor, thw: Any) -> Any:
        """(pooled, its size)"""
        token, x = x[:, :, :1], x[:, :, 1:]
        n, heads, _, c = x.shape
        x = self.pool(x.transpose(2, 3).reshape((n * heads, c, *thw)).contiguous())
        x = x.reshape(n, heads, c, -1).transpose(2, 3)
        x = rl.cat((token, x), dim=2)
        return x if self.norm_act is None else self.norm_act(x), _pooled_size(thw, self.pool)


def _distances(q: Any, k: Any) -> Any:
    """(q, k) rows of a table of relative positions, for axes of q and k positions that cover the same length."""
    rows = rl.arange(q)[:, None] * max(k / q, 1.0)
    columns = (rl.arange(k)[None, :] + (1.0 - k)) * max(q / k, 1.0)
    return (rows - columns).long()


def _table(embedding: Any, length: Any) -> Any:
    """A table of relative positions with so many rows."""
    if embedding.shape[0] == length:
        return embedding
    return (
        F.interpolate(embedding.permute(1, 0).unsqueeze(0), size=length, mode="linear")
        .squeeze(0)
        .permute(1, 0)
    )


def _relative_scores(q: Any, q_thw: Any, k_thw: Any, tables: Any) -> rl.Tensor:
    """(N, heads, 1 + queries, 1 + keys): what queries say to distances in time, height and width; 0 for the class token."""
    biases = [_table(table, 2 * max(a, b) - 1)[_distances(a, b)] for table, a, b in zip(tables, q_thw, k_thw)]
    n, heads, _, c = q.shape
    q = q[:, :, 1:].reshape(n, heads, *q_thw, c)
    t = rl.einsum("bythwc,tkc->bythwk", q, biases[0])[..., :, None, None]
    h = rl.einsum("bythwc,hkc->bythwk", q, biases[1])[..., None, :, None]
    w = rl.einsum("bythwc,wkc->bythwk", q, biases[2])[..., None, None, :]
    return F.pad((h + w + t).reshape(n, heads, math.prod(q_thw), math.prod(k_thw)), (1, 0, 1, 0))


fx.wrap("_relative_scores")


class MultiscaleAttention(nn.Module):
    """Attention with pooled queries, keys and values."""

    def __init__(
        self,
        input_size: Any,
        embed_dim: int,
        output_dim: Any,
        num_heads: Any,
        kernel_q: Any,
        kernel_kv: Any,
        stride_q: Any,
        stride_kv: Any,
        residual_pool: Any,
        residual_with_cls_embed: Any,
        rel_pos_embed: Any,
        dropout: float = 0.0,
        norm_layer: Any = nn.LayerNorm,
    ) -> None:
        super().__init__()
        self.embed_dim, self.output_dim, self.num_heads = embed_dim, output_dim, num_heads
        self.head_dim = output_dim // num_heads
        self.scaler = 1.0 / math.sqrt(self.head_dim)
        self.residual_pool, self.residual_with_cls_embed = residual_pool, residual_with_cls_embed
        self.qkv = nn.Linear(embed_dim, 3 * output_dim)
        self.project = nn.Sequential(nn.Linear(output_dim, output_dim))
        if dropout > 0.0:
            self.project.append(nn.Dropout(dropout, inplace=True))

        def pool(kernel: Any, stride: Any) -> Any:
            if math.prod(kernel) <= 1 and math.prod(stride) <= 1:
                return None
            padding = tuple(k // 2 for k in kernel)
            conv = nn.Conv3d(
                self.head_dim,
                self.head_dim,
                kernel,
                stride=stride,
                padding=padding,
                groups=self.head_dim,
                bias=False,
            )
            return Pool(conv, norm_layer(self.head_dim))

        self.pool_q = pool(kernel_q, stride_q)
        self.pool_k = pool(kernel_kv, stride_kv)
        self.pool_v = pool(kernel_kv, stride_kv)
        self.rel_pos_h = self.rel_pos_w = self.rel_pos_t = None
        if rel_pos_embed:
            steps = [stride[1] if stride else 1 for stride in (stride_q, stride_kv)]
            longest = max(max(input_size[1:]) // step for step in steps)
            for axis, length in (("h", longest), ("w", longest), ("t", input_size[0])):
                table = nn.Parameter(rl.zeros(2 * length - 1, self.head_dim))
                setattr(self, f"rel_pos_{axis}", nn.init.trunc_normal_(table, std=0.02))

    def forward(self, x: rl.Tensor, thw: Any) -> Any:
        """(N, 1 + positions, C) of a size -> (the same for the pooled queries, their size)"""
        n, length, _ = x.shape
        qkv = self.qkv(x).reshape(n, length, 3, self.num_heads, self.head_dim).transpose(1, 3)
        q, k, v = qkv.unbind(dim=2)
        pools = self.pool_q, self.pool_k, self.pool_v
        (q, thw), (k, k_thw), (v, _) = (
            (values, thw) if pool is None else pool(values, thw) for values, pool in zip((q, k, v), pools)
        )
        scores = rl.matmul(self.scaler * q, k.transpose(2, 3))
        if self.rel_pos_h is not None:
            tables = [self.rel_pos_t, self.rel_pos_h, self.rel_pos_w]
            scores = scores + _relative_scores(q, thw, k_thw, tables)
        x = rl.matmul(scores.softmax(dim=-1), v)
        if self.residual_pool and self.residual_with_cls_embed:
            x = x + q
        elif self.residual_pool:
            x = rl.cat((x[:, :, :1], x[:, :, 1:] + q[:, :, 1:]), dim=2)
        return self.project(x.transpose(1, 2).reshape(n, -1, self.output_dim)), thw


class MultiscaleBlock(nn.Module):
    """Attention and a perceptron, each normalized before and added to what came, which is pooled like the queries."""

    def __init__(
        self,
        input_size: Any,
        cnf: Any,
        residual_pool: Any,
        residual_with_cls_embed: Any,
        rel_pos_embed: Any,
        proj_after_attn: Any,
        dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        norm_layer: Any = nn.LayerNorm,
    ) -> None:
        super().__init__()
        self.proj_after_attn = proj_after_attn
        self.pool_skip = None
        if math.prod(cnf.stride_q) > 1:
            kernel = tuple(s + 1 if s > 1 else s for s in cnf.stride_q)
            padding = tuple(k // 2 for k in kernel)
            self.pool_skip = Pool(nn.MaxPool3d(kernel, stride=cnf.stride_q, padding=padding), None)
        width = cnf.output_channels if proj_after_attn else cnf.input_channels
        self.norm1, self.norm2 = norm_layer(cnf.input_channels), norm_layer(width)
        pooling = cnf.kernel_q, cnf.kernel_kv, cnf.stride_q, cnf.stride_kv
        residual = residual_pool, residual_with_cls_embed, rel_pos_embed
        shape = input_size, cnf.input_channels, width, cnf.num_heads
        self.attn = MultiscaleAttention(*shape, *pooling, *residual, dropout, norm_layer)
        self.mlp = MLP(
            width, [4 * width, cnf.output_channels], activation_layer=nn.GELU, dropout=dropout, inplace=None
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.project = None
        if cnf.input_channels != cnf.output_channels:
            self.project = nn.Linear(cnf.input_channels, cnf.output_channels)

    def forward(self, x: rl.Tensor, thw: Any) -> Any:
        normed = self.norm1(x)
        seen, new_thw = self.attn(normed, thw)
        if self.project is not None and self.proj_after_attn:
            x = self.project(normed)
        if self.pool_skip is not None:
            x = self.pool_skip(x.unsqueeze(1), thw)[0].squeeze(1)
        x = x + self.stochastic_depth(seen)
        normed = self.norm2(x)
        if self.project is not None and not self.proj_after_attn:
            x = self.project(normed)
        return x + self.stochastic_depth(self.mlp(normed)), new_thw


class PositionalEncoding(nn.Module):
    """A class token before the positions, and learned positions unless distances are learned."""

    def __init__(self, embed_size: Any, spatial_size: Any, temporal_size: Any, rel_pos_embed: Any) -> None:
        super().__init__()
        self.spatial_size, self.temporal_size = spatial_size, temporal_size
        self.class_token = nn.Parameter(rl.zeros(embed_size))
        self.spatial_pos = self.temporal_pos = self.class_pos = None
        if not rel_pos_embed:
            self.spatial_pos = nn.Parameter(rl.zeros(spatial_size[0] * spatial_size[1], embed_size))
            self.temporal_pos = nn.Parameter(rl.zeros(temporal_size, embed_size))
            self.class_pos = nn.Parameter(rl.zeros(embed_size))

    def forward(self, x: rl.Tensor) -> Any:
        token = self.class_token.expand(x.size(0), -1).unsqueeze(1)
        x = rl.cat((token, x), dim=1)
        if self.spatial_pos is None or self.temporal_pos is None or self.class_pos is None:
            return x
        positions = (self.temporal_pos[:, None] + self.spatial_pos[None]).flatten(0, 1)
        return x + rl.cat((self.class_pos.unsqueeze(0), positions), dim=0).unsqueeze(0)


def _as_video(x: rl.Tensor) -> rl.Tensor:
    """An image is a video of one."""
    return x.unsqueeze(2) if x.dim() == 4 else x


fx.wrap("_as_video")


class MViT(nn.Module):
    """Blocks over ever fewer positions of ever more channels."""

    def __init__(
        self,
        spatial_size: Any,
        temporal_size: Any,
        block_setting: Any,
        residual_pool: Any,
        residual_with_cls_embed: Any,
        rel_pos_embed: Any,
        proj_after_attn: Any,
        dropout: float = 0.5,
        attention_dropout: float = 0.0,
        stochastic_depth_prob: float = 0.0,
        num_classes: int = 400,
        block: Any = None,
        norm_layer: Any = None,
        patch_embed_kernel: Any = (3, 7, 7),
        patch_embed_stride: Any = (2, 4, 4),
        patch_embed_padding: Any = (1, 3, 3),
    ) -> None:
        super().__init__()
        if len(block_setting) == 0:
            raise ValueError("The configuration parameter can't be empty.")
        block, norm_layer = block or MultiscaleBlock, norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.conv_proj = nn.Conv3d(
            3,
            block_setting[0].input_channels,
            kernel_size=patch_embed_kernel,
            stride=patch_embed_stride,
            padding=patch_embed_padding,
        )
        size = [s // step for s, step in zip((temporal_size, *spatial_size), self.conv_proj.stride)]
        self.pos_encoding = PositionalEncoding(
            block_setting[0].input_channels, (size[1], size[2]), size[0], rel_pos_embed
        )
        self.blocks = nn.ModuleList()
        for i, cnf in enumerate(block_setting):
            self.blocks.append(
                block(
                    input_size=size,
                    cnf=cnf,
                    residual_pool=residual_pool,
                    residual_with_cls_embed=residual_with_cls_embed,
                    rel_pos_embed=rel_pos_embed,
                    proj_after_attn=proj_after_attn,
                    dropout=attention_dropout,
                    stochastic_depth_prob=stochastic_depth_prob * i / (len(block_setting) - 1.0),
                    norm_layer=norm_layer,
                )
            )
            if len(cnf.stride_q) > 0:
                size = [s // step for s, step in zip(size, cnf.stride_q)]
        width = block_setting[-1].output_channels
        self.norm, self.head = norm_layer(width), dropout_classifier(width, num_classes, dropout)
        for position in self.pos_encoding.parameters():
            nn.init.trunc_normal_(position, std=0.02)
        initialize(self, linear=truncated(0.02))

    def forward(self, x: rl.Tensor) -> Any:
        """(N, 3, T, H, W) -> (N, classes)"""
        x = self.conv_proj(_as_video(x)).flatten(2).transpose(1, 2)
        x = self.pos_encoding(x)
        thw = (self.pos_encoding.temporal_size, *self.pos_encoding.spatial_size)
        for block in self.blocks:
            x, thw = block(x, thw)
        return self.head(self.norm(x)[:, 0])


_HEADS = [1, 2, 2] + [4] * 11 + [8, 8]
_KV_STRIDES = [[1, 8, 8]] + [[1, 4, 4]] * 2 + [[1, 2, 2]] * 11 + [[1, 1, 1]] * 2
_HALVED = (1, 3, 14)  # blocks whose queries have half the height and width


def _mvit(inputs: Any, outputs: Any, kernel: Any, stride: Any, kwargs: Any, **options: Any) -> MViT:
    blocks = []
    for i, (heads, a, b, kv) in enumerate(zip(_HEADS, inputs, outputs, _KV_STRIDES)):
        q = ([3, 3, 3], [1, 2, 2]) if i in _HALVED else (kernel, stride)
        blocks.append(MSBlockConfig(heads, a, b, q[0], [3, 3, 3], q[1], kv))
    size = {"spatial_size": (224, 224), "temporal_size": 16, "stochastic_depth_prob": 0.2}
    return MViT(block_setting=blocks, **{**size, **options, **kwargs})


@entry
def mvit_v1_b(**kwargs: Any) -> MViT:
    """MViT, base."""
    inputs, outputs = [96] + [192] * 2 + [384] * 11 + [768] * 2, [192] * 2 + [384] * 11 + [768] * 3
    return _mvit(
        inputs,
        outputs,
        [],
        [],
        kwargs,
        residual_pool=False,
        residual_with_cls_embed=False,
        rel_pos_embed=False,
        proj_after_attn=False,
    )


@entry
def mvit_v2_s(**kwargs: Any) -> MViT:
    """MViT v2, small."""
    inputs, outputs = [96] * 2 + [192] * 2 + [384] * 11 + [768], [96] + [192] * 2 + [384] * 11 + [768] * 2
    return _mvit(
        inputs,
        outputs,
        [3, 3, 3],
        [1, 1, 1],
        kwargs,
        residual_pool=True,
        residual_with_cls_embed=False,
        rel_pos_embed=True,
        proj_after_attn=True,
    )
