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


def _generate_square_subsequent_mask(
    sz: int, device: rl.device | str | int | None = None, dtype: rl.dtype | None = None
) -> Tensor:
    return rl.triu(rl.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    if src.is_nested:
        return None
    if src.dim() == 2:
        return src.size(0)
    return src.size(1 if batch_first else 0)


def _get_clones(module: Module, n: int) -> ModuleList:
    one = ModuleList([module])  # complains of what is no module
    values = sum(t.nbytes for t in (*one.parameters(), *one.buffers()) if t.device.type != "meta")
    check_memory("num_layers", n, values + OBJECT_BYTES * sum(1 for _ in one.modules()))
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _detect_is_causal_mask(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
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
    """Runs an encoder over src and a decoder over tgt that attends to the result: decoder(tgt, encoder(src)).

    The model of "Attention Is All You Need" without embeddings, positions and the output layer, which are yours to
    add. In training pass tgt shifted by one and its causal mask: else positions see what they are to predict.

    Args:
        d_model (int): width of the model, E. Default: 512
        nhead (int): attention heads, which divide d_model. Default: 8
        num_encoder_layers (int): layers of the encoder. Default: 6
        num_decoder_layers (int): layers of the decoder. Default: 6
        dim_feedforward (int): width of the hidden layer after attention. Default: 2048
        dropout (float): probability of all dropouts. Default: 0.1
        activation (str or callable): of the hidden layer: 'relu', 'gelu' or a function. Default: relu
        custom_encoder (Module): an encoder in place of the standard one. Default: None
        custom_decoder (Module): a decoder in place of the standard one. Default: None
        layer_norm_eps (float): eps of the layer norms. Default: 1e-5
        batch_first (bool): (N, L, E) rather than (L, N, E). Default: False
        norm_first (bool): normalises before attention and feed-forward, which eases training deep stacks, rather
            than after. Default: False
        bias (bool): whether linear layers and norms have biases. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        src (S, N, E), tgt (T, N, E) -> (T, N, E); also without N

    Attributes:
        encoder, decoder (Module): the two stacks; all matrices Xavier uniform.

    Example:
        >>> model = nn.Transformer(d_model=16, nhead=2, num_encoder_layers=1, num_decoder_layers=1)
        >>> mask = nn.Transformer.generate_square_subsequent_mask(4)
        >>> model(torch.randn(7, 3, 16), torch.randn(4, 3, 16), tgt_mask=mask).shape
        torch.Size([4, 3, 16])
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
        """Encodes src and decodes tgt. Masks are True (or -inf, added) where attention must not look.

        Args:
            src (Tensor): (S, N, E).
            tgt (Tensor): (T, N, E).
            src_mask (Tensor): (S, S) or (N nhead, S, S). Default: None
            tgt_mask (Tensor): (T, T) or (N nhead, T, T), usually the causal mask. Default: None
            memory_mask (Tensor): (T, S) or (N nhead, T, S). Default: None
            src_key_padding_mask (Tensor): (N, S), True at padding. Default: None
            tgt_key_padding_mask (Tensor): (N, T), True at padding. Default: None
            memory_key_padding_mask (Tensor): (N, S), usually src_key_padding_mask again. Default: None
            src_is_causal (bool): says whether src_mask is causal; None compares. Default: None
            tgt_is_causal (bool): says whether tgt_mask is causal; None compares. Default: None
            memory_is_causal (bool): says whether memory_mask is causal. Default: False

        Returns:
            (T, N, E)
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if any(x.shape[-1] != self.d_model for x in (src, tgt)):
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        out: Tensor = self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip
        return out

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: device | str | int | None = None, dtype: dtype | None = None
    ) -> Tensor:
        """Returns the causal mask (sz, sz): -inf above the diagonal, 0 elsewhere, so that position i sees up to i.

        Args:
            sz (int): length of the sequence.
            device (device): where. Default: the default device
            dtype (dtype): its type. Default: torch.get_default_dtype()

        Example:
            >>> nn.Transformer.generate_square_subsequent_mask(3)
            tensor([[0., -inf, -inf],
                    [0., 0., -inf],
                    [0., 0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)


class TransformerEncoder(Module):
    """Applies num_layers copies of an encoder layer one after the other: layer_n(... layer_1(src)).

    The copies start with the same values: for others, reset their parameters. In evaluation, without gradients
    and mask, a
    batch with src_key_padding_mask runs without its padding, whose outputs are then 0 (before norm).

    Args:
        encoder_layer (Module): a `nn.TransformerEncoderLayer` to copy.
        num_layers (int): number of copies.
        norm (Module): applied to the result, usually a layer norm with norm_first=True. Default: None
        enable_nested_tensor (bool): leaves padding out as said above, for layers with batch_first=True that norm
            last. Default: True
        mask_check (bool): makes sure that the padding is at the end before it is left out. Default: True

    Shape:
        src (S, N, E) -> (S, N, E), in the order of the layers

    Attributes:
        layers (ModuleList): the copies.

    Example:
        >>> layer = nn.TransformerEncoderLayer(d_model=16, nhead=2, batch_first=True)
        >>> encoder = nn.TransformerEncoder(layer, num_layers=2)
        >>> encoder(torch.randn(3, 5, 16)).shape
        torch.Size([3, 5, 16])
    """

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
        """Encodes src.

        Args:
            src (Tensor): (S, N, E), or (N, S, E) with batch_first.
            mask (Tensor): (S, S) or (N nhead, S, S), True (or -inf, added) where not to look. Default: None
            src_key_padding_mask (Tensor): (N, S), True at padding. Default: None
            is_causal (bool): says whether mask is causal; None compares. Default: None

        Returns:
            The shape of src.
        """
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

    def _may_nest(self, src: Tensor, padding: Tensor | None) -> bool:
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


def _are_booleans(*masks: Tensor | None) -> bool:
    """Whether masks are left as they are for attention's path of inference."""
    return all(m is None or m.dtype == rl.bool for m in masks)


def _takes_nested(layer: Any) -> bool:
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
    """Applies num_layers copies of a decoder layer one after the other: layer_n(... layer_1(tgt, memory), memory).

    The copies start with the same values: for others, reset their parameters.

    Args:
        decoder_layer (Module): a `nn.TransformerDecoderLayer` to copy.
        num_layers (int): number of copies.
        norm (Module): applied to the result. Default: None

    Shape:
        tgt (T, N, E), memory (S, N, E) -> (T, N, E), in the order of the layers

    Attributes:
        layers (ModuleList): the copies.

    Example:
        >>> layer = nn.TransformerDecoderLayer(d_model=16, nhead=2)
        >>> decoder = nn.TransformerDecoder(layer, num_layers=2)
        >>> decoder(torch.randn(4, 3, 16), torch.randn(5, 3, 16)).shape
        torch.Size([4, 3, 16])
    """

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
        """Decodes tgt with attention to memory. Masks are True (or -inf, added) where attention must not look.

        Args:
            tgt (Tensor): (T, N, E).
            memory (Tensor): (S, N, E), the encoder's result.
            tgt_mask (Tensor): (T, T) or (N nhead, T, T), usually the causal mask. Default: None
            memory_mask (Tensor): (T, S) or (N nhead, T, S). Default: None
            tgt_key_padding_mask (Tensor): (N, T), True at padding. Default: None
            memory_key_padding_mask (Tensor): (N, S), True at padding. Default: None
            tgt_is_causal (bool): says whether tgt_mask is causal; None compares. Default: None
            memory_is_causal (bool): says whether memory_mask is causal. Default: False

        Returns:
            (T, N, E)
        """
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


def _attend(
    attention: Any,
    x: Tensor,
    memory: Tensor,
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    is_causal: bool,
) -> Tensor:
    """Attention of x over memory, without its weights."""
    masks = {"attn_mask": attn_mask, "key_padding_mask": key_padding_mask, "is_causal": is_causal}
    out: Tensor = attention(x, memory, memory, need_weights=False, **masks)[0]
    return out


def _make_rest(
    layer: Any,
    d_model: int,
    dim_feedforward: int,
    dropout: float,
    activation: Any,
    eps: float,
    norm_first: bool,
    bias: bool,
    count: int,
    made: dict[str, Any],
) -> None:
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
    """Applies self-attention and a feed-forward network: x = norm1(x + attention(x)), y = norm2(x + network(x)).

    With norm_first=True it is x = x + attention(norm1(x)), y = x + network(norm2(x)). The network is
    linear2(dropout(activation(linear1(x)))); each branch ends in dropout.

    Args:
        d_model (int): width of the model, E.
        nhead (int): attention heads, which divide d_model.
        dim_feedforward (int): width of the hidden layer. Default: 2048
        dropout (float): probability of all dropouts. Default: 0.1
        activation (str or callable): 'relu', 'gelu' or a function. Default: relu
        layer_norm_eps (float): eps of the layer norms. Default: 1e-5
        batch_first (bool): (N, S, E) rather than (S, N, E). Default: False
        norm_first (bool): normalises before the branches rather than after the sums. Default: False
        bias (bool): whether linear layers and norms have biases. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        src (S, N, E) -> (S, N, E); also without N

    Attributes:
        self_attn (MultiheadAttention): over src.
        linear1, linear2 (Linear): (E to dim_feedforward) and back.
        norm1, norm2 (LayerNorm): over E.

    Example:
        >>> layer = nn.TransformerEncoderLayer(d_model=16, nhead=2, batch_first=True)
        >>> layer(torch.randn(3, 5, 16)).shape
        torch.Size([3, 5, 16])
    """

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
        self.activation: Callable[[Tensor], Tensor]
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
        """Encodes src by one layer.

        Args:
            src (Tensor): (S, N, E), or (N, S, E) with batch_first.
            src_mask (Tensor): (S, S) or (N nhead, S, S), True (or -inf, added) where not to look. Default: None
            src_key_padding_mask (Tensor): (N, S), True at padding. Default: None
            is_causal (bool): says that src_mask is causal. Default: False

        Returns:
            The shape of src.
        """
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
        out: Tensor = self.norm2(x + self._ff_block(x))
        return out

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        out: Tensor = self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))
        return out

    def _ff_block(self, x: Tensor) -> Tensor:
        out: Tensor = self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))
        return out


class TransformerDecoderLayer(Module):
    """Applies self-attention, attention to memory, and a feed-forward network, each as norm(x + branch(x)).

    With norm_first=True each is x + branch(norm(x)). The branches end in dropout.

    Args:
        d_model (int): width of the model, E.
        nhead (int): attention heads, which divide d_model.
        dim_feedforward (int): width of the hidden layer. Default: 2048
        dropout (float): probability of all dropouts. Default: 0.1
        activation (str or callable): 'relu', 'gelu' or a function. Default: relu
        layer_norm_eps (float): eps of the layer norms. Default: 1e-5
        batch_first (bool): (N, T, E) rather than (T, N, E). Default: False
        norm_first (bool): normalises before the branches rather than after the sums. Default: False
        bias (bool): whether linear layers and norms have biases. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        tgt (T, N, E), memory (S, N, E) -> (T, N, E); also without N

    Attributes:
        self_attn, multihead_attn (MultiheadAttention): over tgt, and over memory.
        linear1, linear2 (Linear): (E to dim_feedforward) and back.
        norm1, norm2, norm3 (LayerNorm): over E.

    Example:
        >>> layer = nn.TransformerDecoderLayer(d_model=16, nhead=2)
        >>> layer(torch.randn(4, 3, 16), torch.randn(5, 3, 16)).shape
        torch.Size([4, 3, 16])
    """

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
        self.activation: Callable[[Tensor], Tensor]
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
        """Decodes tgt by one layer. Masks are True (or -inf, added) where attention must not look.

        Args:
            tgt (Tensor): (T, N, E).
            memory (Tensor): (S, N, E), the encoder's result.
            tgt_mask (Tensor): (T, T) or (N nhead, T, T). Default: None
            memory_mask (Tensor): (T, S) or (N nhead, T, S). Default: None
            tgt_key_padding_mask (Tensor): (N, T), True at padding. Default: None
            memory_key_padding_mask (Tensor): (N, S), True at padding. Default: None
            tgt_is_causal (bool): says that tgt_mask is causal. Default: False
            memory_is_causal (bool): says that memory_mask is causal. Default: False

        Returns:
            (T, N, E)
        """
        x = tgt
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        cross = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *cross)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *cross))
        out: Tensor = self.norm3(x + self._ff_block(x))
        return out

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        out: Tensor = self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))
        return out

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        out: Tensor = self.dropout2(
            _attend(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal)
        )
        return out

    def _ff_block(self, x: Tensor) -> Tensor:
        out: Tensor = self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))
        return out
