"""The Transformer: encoder, decoder and their layers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor, device, dtype
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules._memory_limit import OBJECT_BYTES, check_memory
from rushlight.nn.modules.activation import MultiheadAttention
from rushlight.nn.modules.container import ModuleList
from rushlight.nn.modules.dropout import Dropout
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerEncoder",
    "TransformerDecoder",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
]


def _generate_square_subsequent_mask(sz, device=None, dtype=None):
    return rl.triu(rl.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _get_seq_len(src, batch_first):
    if src.is_nested:
        return None
    if src.dim() == 2:
        return src.size(0)
    return src.size(1 if batch_first else 0)


def _get_clones(module, n):
    one = ModuleList([module])  # complains of what is no module
    values = sum(t.nbytes for t in (*one.parameters(), *one.buffers()) if t.device.type != "meta")
    check_memory("num_layers", n, values + OBJECT_BYTES * sum(1 for _ in one.modules()))
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _get_activation_fn(activation):
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _detect_is_causal_mask(mask, is_causal=None, size=None):
    """Whether a mask is the causal one; told by is_causal, or compared where it is None."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    sz = size if size is not None else mask.size(-2)
    causal = _generate_square_subsequent_mask(
        sz, device=mask.device, dtype=mask.dtype if mask.is_floating_point() else None
    )
    if mask.dtype == rl.bool:
        causal = causal != 0
    return mask.size() == causal.size() and bool((mask == causal).all())


class Transformer(Module):
    """Encoder and decoder of "Attention Is All You Need".

    Args:
        d_model, nhead: width and number of heads.
        dim_feedforward: width of the hidden layer after attention.
        batch_first: (N, L, E) instead of (L, N, E).
        norm_first: normalises before attention and feed-forward instead of after.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu, custom_encoder: Any | None = None, custom_decoder: Any | None = None, layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        super().__init__()
        layer = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
        )
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            encoder_layer = TransformerEncoderLayer(*layer, **made)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(*layer, **made)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None, src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if any(x.shape[-1] != self.d_model for x in (src, tgt)):
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: device | str | int | None = None, dtype: dtype | None = None
    ) -> Tensor:
        """The causal mask: -inf above the diagonal, 0 elsewhere."""
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self):
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer."""

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = bool(enable_nested_tensor) and _takes_nested(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        padding = src_key_padding_mask
        if self.training or not _are_booleans(mask, padding):
            src_key_padding_mask = F._canonical_mask(
                src_key_padding_mask, "src_key_padding_mask", F._none_or_dtype(mask), "mask", src.dtype
            )
            mask = F._canonical_mask(mask, "mask", None, "", src.dtype, check_other=False)
        batch_first = (
            getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
            if len(self.layers)
            else False
        )
        is_causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, batch_first))
        output = src
        nested = self.use_nested_tensor and mask is None and self._may_nest(src, padding)
        if nested:  # what is padded is not computed, and 0 in the end
            output = rl._nested_tensor_from_mask(src, ~padding, mask_check=False)  # type: ignore[operator]
            src_key_padding_mask = None
        for layer in self.layers:
            output = layer(
                output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask
            )
        if nested:
            output = output.to_padded_tensor(0.0, src.size())
        return output if self.norm is None else self.norm(output)

    def _may_nest(self, src, padding):
        """Whether a batch is run as a nested tensor: nobody trains, and the padding stands behind the sequences."""
        if padding is None or padding.dtype != rl.bool or src.dim() != 3 or src.is_nested or self.training:
            return False
        if rl.is_autocast_enabled("cpu") or not rl.backends.mha.get_fastpath_enabled():
            return False
        if rl.is_grad_enabled() and (
            src.requires_grad or any(p.requires_grad for p in self.layers[0].parameters())
        ):
            return False
        return not getattr(self, "mask_check", True) or rl._nested_tensor_from_mask_left_aligned(
            src, ~padding
        )


def _are_booleans(*masks):
    """Whether masks are left as they are for attention's path of inference."""
    return all(m is None or m.dtype == rl.bool for m in masks)


def _takes_nested(layer):
    """Whether the layers of an encoder can run on nested tensors."""
    attention = getattr(layer, "self_attn", None)
    return (
        type(layer) is TransformerEncoderLayer
        and not layer.norm_first
        and type(attention) is MultiheadAttention
        and attention.batch_first
        and attention._qkv_same_embed_dim
        and attention.in_proj_bias is not None
        and attention.num_heads % 2 == 0
    )


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer."""

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        output = tgt
        batch_first = (
            getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
            if len(self.layers)
            else False
        )
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, _get_seq_len(tgt, batch_first))
        for layer in self.layers:
            output = layer(
                output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return output if self.norm is None else self.norm(output)


def _attend(attention, x, memory, attn_mask, key_padding_mask, is_causal):
    """Attention of x over memory, without its weights."""
    masks = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask, "is_causal": is_causal}
    return attention(x, memory, memory, need_weights=False, **masks)[0]


def _make_rest(layer, d_model, dim_feedforward, dropout, activation, eps, norm_first, bias, count, made):
    """What follows the attentions of a layer, in PyTorch's order: `count` norms and dropouts, and the network."""
    layer.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
    layer.dropout = Dropout(dropout)
    layer.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
    layer.norm_first = norm_first
    for i in range(count):
        setattr(layer, f"norm{i + 1}", LayerNorm(d_model, eps=eps, bias=bias, **made))
    for i in range(count):
        setattr(layer, f"dropout{i + 1}", Dropout(dropout))
    layer.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with dropout, a shortcut and normalisation."""

    linear1: Linear
    linear2: Linear
    dropout: Dropout
    norm1: LayerNorm
    dropout1: Dropout
    norm2: LayerNorm
    dropout2: Dropout

    __constants__ = ["norm_first"]

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor], Tensor] = F.relu, layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **made
        )
        rest = (dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias)
        _make_rest(self, d_model, *rest, 2, made)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        if self.training or not _are_booleans(src_mask, src_key_padding_mask):
            src_key_padding_mask = F._canonical_mask(
                src_key_padding_mask,
                "src_key_padding_mask",
                F._none_or_dtype(src_mask),
                "src_mask",
                src.dtype,
            )
            src_mask = F._canonical_mask(src_mask, "src_mask", None, "", src.dtype, check_other=False)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention over the encoder's result, and a feed-forward network."""

    linear1: Linear
    linear2: Linear
    dropout: Dropout
    norm1: LayerNorm
    dropout1: Dropout
    norm2: LayerNorm
    dropout2: Dropout
    norm3: LayerNorm
    dropout3: Dropout

    __constants__ = ["norm_first"]

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor], Tensor] = F.relu, layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        super().__init__()
        attention: dict[str, Any] = {"dropout": dropout, "batch_first": batch_first, "bias": bias, **made}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        rest = (dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias)
        _make_rest(self, d_model, *rest, 3, made)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        x = tgt
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        cross = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *cross)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *cross))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout2(_attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x):
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))
