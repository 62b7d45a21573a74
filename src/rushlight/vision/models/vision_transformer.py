"""Vision transformers (Dosovitskiy et al., 2020)."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import nn

from .._init import constant, initialize, normal, truncated
from ..ops.misc import MLP, Conv2dNormActivation
from ._api import entry

__all__ = ["VisionTransformer"]


class ConvStemConfig(NamedTuple):
    """A convolution of a stem that makes patches."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: object = nn.BatchNorm2d
    activation_layer: object = nn.ReLU


class MLPBlock(MLP):
    """The perceptron of a layer."""

    _version = 2

    def __init__(self, in_dim: Any, mlp_dim: int, dropout: float) -> None:
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        initialize(self, linear=nn.init.xavier_uniform_, bias=normal(1e-6))

    def _load_from_state_dict(self, state_dict: Any, prefix: Any, local_metadata: Any, *args: Any) -> None:
        # Files of the first version call the layers linear_1 and linear_2.
        if local_metadata.get("version", None) is None or local_metadata["version"] < 2:
            for i, index in enumerate((0, 3)):
                for kind in ("weight", "bias"):
                    old = f"{prefix}linear_{i + 1}.{kind}"
                    if old in state_dict:
                        state_dict[f"{prefix}{index}.{kind}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class EncoderBlock(nn.Module):
    """Attention and a perceptron, each normalized before and added to what came."""

    def __init__(
        self,
        num_heads: Any,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Any = partial(nn.LayerNorm, eps=1e-6),  # noqa: B008
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"dropout": attention_dropout, "batch_first": True}
        self.num_heads, self.ln_1 = num_heads, norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, **options)
        self.dropout, self.ln_2 = nn.Dropout(dropout), norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: rl.Tensor) -> Any:
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Learned positions, layers, a normalization."""

    def __init__(
        self,
        seq_length: int,
        num_layers: Any,
        num_heads: Any,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Any = partial(nn.LayerNorm, eps=1e-6),  # noqa: B008
    ) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(rl.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        layers = OrderedDict()
        for i in range(num_layers):
            layers[f"encoder_layer_{i}"] = EncoderBlock(
                num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
            )
        self.layers = nn.Sequential(layers)
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: rl.Tensor) -> Any:
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """A transformer over patches of an image and one token for the class."""

    def __init__(
        self,
        image_size: Any,
        patch_size: Any,
        num_layers: Any,
        num_heads: Any,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
        representation_size: Any = None,
        norm_layer: Any = partial(nn.LayerNorm, eps=1e-6),  # noqa: B008
        conv_stem_configs: Any = None,
    ) -> None:
        super().__init__()
        if image_size % patch_size:
            raise ValueError(f"Input shape indivisible by patch size! ({image_size} by {patch_size})")
        self.image_size, self.patch_size = image_size, patch_size
        self.hidden_dim, self.mlp_dim, self.norm_layer = hidden_dim, mlp_dim, norm_layer
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.num_classes, self.representation_size = num_classes, representation_size
        self.conv_proj = self._stem(conv_stem_configs)
        seq_length = (image_size // patch_size) ** 2 + 1
        self.class_token = nn.Parameter(rl.zeros(1, 1, hidden_dim))
        self.encoder = Encoder(
            seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
        )
        self.seq_length = seq_length
        heads: OrderedDict[str, nn.Module] = OrderedDict()
        if representation_size is None:
            heads["head"] = nn.Linear(hidden_dim, num_classes)
        else:
            heads["pre_logits"] = nn.Linear(hidden_dim, representation_size)
            heads["act"] = nn.Tanh()
            heads["head"] = nn.Linear(representation_size, num_classes)
        self.heads = nn.Sequential(heads)
        self._initialize()

    def _stem(self, configs: Any) -> Any:
        if configs is None:
            return nn.Conv2d(3, self.hidden_dim, kernel_size=self.patch_size, stride=self.patch_size)
        stem, channels = nn.Sequential(), 3
        for i, c in enumerate(configs):
            layer = Conv2dNormActivation(
                channels,
                c.out_channels,
                kernel_size=c.kernel_size,
                stride=c.stride,
                norm_layer=c.norm_layer,
                activation_layer=c.activation_layer,
            )
            stem.add_module(f"conv_bn_relu_{i}", layer)
            channels = c.out_channels
        stem.add_module("conv_last", nn.Conv2d(channels, self.hidden_dim, kernel_size=1))
        return stem

    def _initialize(self) -> None:
        heads: Any = self.heads
        stem = self.conv_proj
        last = getattr(stem, "conv_last", None)
        if isinstance(stem, nn.Conv2d):
            initialize(stem, conv=truncated(math.sqrt(1 / stem.weight[0].numel())))
        elif isinstance(last, nn.Conv2d):
            initialize(last, conv=normal(math.sqrt(2.0 / last.out_channels)))
        if hasattr(heads, "pre_logits"):
            initialize(heads.pre_logits, linear=truncated(math.sqrt(1 / self.hidden_dim)))
        initialize(heads.head, linear=constant(0.0))

    def _process_input(self, x: rl.Tensor) -> Any:
        """(N, 3, H, W) -> (N, patches, hidden)"""
        _, _, h, w = x.shape
        # _assert stays in traced programs
        rl._assert(h == self.image_size, f"Wrong image height! Expected {self.image_size} but got {h}!")
        rl._assert(w == self.image_size, f"Wrong image width! Expected {self.image_size} but got {w}!")
        return self.conv_proj(x).flatten(2).permute(0, 2, 1)

    def forward(self, x: rl.Tensor) -> Any:
        x = self._process_input(x)
        x = rl.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        return self.heads(self.encoder(x)[:, 0])


def _vit(
    patch: Any, layers: Any, heads: Any, hidden: Any, mlp: Any, weights: Any, kwargs: Any
) -> VisionTransformer:
    size = kwargs.pop("image_size", None)
    trained = weights.transforms.keywords["crop_size"] if weights is not None else None
    if trained is not None and size not in (None, trained):
        raise ValueError(f"The parameter 'image_size' expected value {trained} but got {size} instead.")
    return VisionTransformer(size or trained or 224, patch, layers, heads, hidden, mlp, **kwargs)


@entry
def vit_b_16(weights: Any = None, **kwargs: Any) -> VisionTransformer:
    """ViT base, patches of 16."""
    return _vit(16, 12, 12, 768, 3072, weights, kwargs)


@entry
def vit_b_32(weights: Any = None, **kwargs: Any) -> VisionTransformer:
    """ViT base, patches of 32."""
    return _vit(32, 12, 12, 768, 3072, weights, kwargs)


@entry
def vit_l_16(weights: Any = None, **kwargs: Any) -> VisionTransformer:
    """ViT large, patches of 16."""
    return _vit(16, 24, 16, 1024, 4096, weights, kwargs)


@entry
def vit_l_32(weights: Any = None, **kwargs: Any) -> VisionTransformer:
    """ViT large, patches of 32."""
    return _vit(32, 24, 16, 1024, 4096, weights, kwargs)


@entry
def vit_h_14(weights: Any = None, **kwargs: Any) -> VisionTransformer:
    """ViT huge, patches of 14."""
    return _vit(14, 32, 16, 1280, 5120, weights, kwargs)


def interpolate_embeddings(
    image_size: Any,
    patch_size: Any,
    model_state: Any,
    interpolation_mode: str = "bicubic",
    reset_heads: bool = False,
) -> Any:
    """Weights for images of another size: the learned positions are interpolated over the new grid of patches."""
    positions = model_state["encoder.pos_embedding"]  # (1, 1 + patches, hidden)
    if positions.shape[0] != 1:
        raise ValueError(f"Unexpected position embedding shape: {positions.shape}")
    length, hidden = positions.shape[1] - 1, positions.shape[2]
    new = image_size // patch_size
    if new * new == length:
        return model_state
    old = int(math.sqrt(length))
    if old * old != length:
        raise ValueError(f"seq_length is not a perfect square! Instead got seq_length_1d * seq_length_1d = {old * old} and seq_length = {length}")  # fmt: skip
    grid = positions[:, 1:].permute(0, 2, 1).reshape(1, hidden, old, old)
    grid = nn.functional.interpolate(grid, size=new, mode=interpolation_mode, align_corners=True)
    grid = grid.reshape(1, hidden, new * new).permute(0, 2, 1)
    model_state["encoder.pos_embedding"] = rl.cat([positions[:, :1], grid], dim=1)
    if reset_heads:
        return OrderedDict((k, v) for k, v in model_state.items() if not k.startswith("heads"))
    return model_state
