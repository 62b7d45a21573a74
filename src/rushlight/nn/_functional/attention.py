"""Attention: softmax(q k' / sqrt(d)) v, and the multi-head form of the Transformer."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.nn import _core as core
from rushlight.nn import functional as F


def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether the input has a batch; raises where the numbers of dimensions do not fit together."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    name = "batched (3-D)" if batched else "unbatched (2-D)"
    if key.dim() != query.dim() or value.dim() != query.dim():
        raise AssertionError(
            f"For {name} `query`, expected `key` and `value` to be {query.dim()}-D but found {key.dim()}-D "
            f"and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != query.dim() - 1:
        raise AssertionError(
            f"For {name} `query`, expected `key_padding_mask` to be `None` or {query.dim() - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {name} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        if (
            not batched
            and attn_mask.dim() == 3
            and attn_mask.shape != (num_heads, query.shape[0], key.shape[0])
        ):
            raise AssertionError(
                f"Expected `attn_mask` shape to be {(num_heads, query.shape[0], key.shape[0])} but got "
                f"{attn_mask.shape}"
            )
    return batched


def _none_or_dtype(x: Tensor | None) -> rl.dtype | None:
    if x is None:
        return None
    if isinstance(x, rl.Tensor):
        return x.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: rl.dtype | None,
    other_name: str,
    target_type: rl.dtype,
    check_other: bool = True,
) -> Tensor | None:
    """A mask as values to be added to scores: boolean True becomes -inf."""
    if mask is None:
        return None
    floating = mask.is_floating_point()
    if mask.dtype != rl.bool and not floating:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        import warnings

        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both "
            "instead.",
            stacklevel=2,
        )
    if floating:
        return mask
    return rl.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _project(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    """linear of (L, N, E), in the order in which x lies in memory: no copy where it is a transposed (N, L, E)."""
    transposed = x.transpose(0, 1)
    same = b is None or b.dtype == x.dtype  # of another type it is only added to products of x as it lies
    if same and transposed.is_contiguous() and not x.is_contiguous():
        out: Tensor = core.linear(transposed, w, b).transpose(0, 1)
        return out
    result: Tensor = core.linear(x, w, b)
    return result


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, ...]:
    """q, k and v through one weight (3E, E); one product where they are the same tensor."""
    e = q.size(-1)
    if k is v:
        if q is k:
            return _project(q, w, b).chunk(3, -1)
        w_q, w_kv = w.split([e, 2 * e])
        b_q, b_kv = (None, None) if b is None else b.split([e, 2 * e])
        return (_project(q, w_q, b_q), *_project(k, w_kv, b_kv).chunk(2, -1))
    w_q, w_k, w_v = w.chunk(3)
    b_q, b_k, b_v = (None, None, None) if b is None else b.chunk(3)
    return _project(q, w_q, b_q), _project(k, w_k, b_k), _project(v, w_v, b_v)


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v through three weights."""
    e = q.size(-1)
    if w_q.shape != (e, e):
        raise AssertionError(f"expecting query weights shape of {(e, e)}, but got {w_q.shape}")
    for name, w, x in (("key", w_k, k), ("value", w_v, v)):
        if w.shape != (e, x.size(-1)):
            raise AssertionError(f"expecting {name} weights shape of {(e, x.size(-1))}, but got {w.shape}")
    return _project(q, w_q, b_q), _project(k, w_k, b_k), _project(v, w_v, b_v)


def _check_masks(
    attn_mask: Tensor | None, key_padding_mask: Tensor | None, need_weights: bool, is_causal: bool
) -> None:
    if (
        key_padding_mask is not None
        and key_padding_mask.dtype != rl.bool
        and not key_padding_mask.is_floating_point()
    ):
        raise AssertionError("only bool and floating types of key_padding_mask are supported")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None, need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
    static_v: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attends with several heads from query over key and value; `nn.MultiheadAttention` calls it with its parameters.

    Args:
        query (Tensor): (L, N, E) or (L, E).
        key (Tensor): (S, N, kdim) or (S, kdim).
        value (Tensor): (S, N, vdim) or (S, vdim).
        embed_dim_to_check (int): E, which the query must have.
        num_heads (int): number of heads, which divides E.
        in_proj_weight (Tensor): (3 E, E), or None with use_separate_proj_weight.
        in_proj_bias (Tensor): (3 E,), or None.
        bias_k (Tensor): (1, 1, E), a key appended to each sequence, or None.
        bias_v (Tensor): its value, or None.
        add_zero_attn (bool): appends a key and value of zeros.
        dropout_p (float): probability of dropping an attention weight in training.
        out_proj_weight (Tensor): (E, E).
        out_proj_bias (Tensor): (E,), or None.
        training (bool): whether weights are dropped. Default: True
        key_padding_mask (Tensor): (N, S), True (or -inf, added) at keys to leave out. Default: None
        need_weights (bool): whether to return the attention weights. Default: True
        attn_mask (Tensor): (L, S) or (N num_heads, L, S), True (or -inf, added) where not to look. Default: None
        use_separate_proj_weight (bool): takes the three weights below. Default: False
        q_proj_weight (Tensor): (E, E). Default: None
        k_proj_weight (Tensor): (E, kdim). Default: None
        v_proj_weight (Tensor): (E, vdim). Default: None
        static_k (Tensor): projected keys (N num_heads, S, E / num_heads) in place of key's. Default: None
        static_v (Tensor): likewise for values. Default: None
        average_attn_weights (bool): averages the weights over heads. Default: True
        is_causal (bool): says that attn_mask is the causal mask, which must be given. Default: False

    Returns:
        (output (L, N, E), weights (N, L, S) or None)

    Example:
        >>> x, w = torch.randn(5, 2, 8), torch.randn(24, 8)
        >>> y, _ = F.multi_head_attention_forward(
        ...     x, x, x, 8, 2, w, None, None, None, False, 0.0, torch.eye(8), None, need_weights=False
        ... )
        >>> y.shape
        torch.Size([5, 2, 8])
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        # Tensors that were one object stay one, so that their projections are one product.
        same_kv, same_qk = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_qk else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)

    tgt_len, bsz, embed_dim = query.shape
    src_len = key.shape[0]
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    _check_masks(attn_mask, key_padding_mask, need_weights, is_causal)
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the kernel makes it
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        if key_padding_mask is not None:
            is_causal = False

    if embed_dim != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}"
        )
    head_dim, rest = divmod(embed_dim, num_heads)
    if rest:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if not use_separate_proj_weight:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    else:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        separate: list[Any] = [q_proj_weight, k_proj_weight, v_proj_weight]
        for name, w in zip("qkv", separate, strict=True):
            if w is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = _in_projection(query, key, value, *separate, *biases)

    if attn_mask is not None:
        if attn_mask.dim() == 2:
            if attn_mask.shape != (tgt_len, src_len):
                raise RuntimeError(
                    f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {(tgt_len, src_len)}."
                )
            attn_mask = attn_mask.unsqueeze(0)
        elif attn_mask.dim() == 3:
            if attn_mask.shape != (bsz * num_heads, tgt_len, src_len):
                raise RuntimeError(
                    f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be "
                    f"{(bsz * num_heads, tgt_len, src_len)}."
                )
        else:
            raise RuntimeError(f"attn_mask's dimension {attn_mask.dim()} is not supported")

    if bias_k is not None and bias_v is not None:
        for name, fixed in (("key", static_k), ("value", static_v)):
            if fixed is not None:
                raise AssertionError(f"bias cannot be added to static {name}.")
        k = rl.cat([k, bias_k.repeat(1, bsz, 1)])
        v = rl.cat([v, bias_v.repeat(1, bsz, 1)])
        attn_mask = None if attn_mask is None else F.pad(attn_mask, (0, 1))
        key_padding_mask = None if key_padding_mask is None else F.pad(key_padding_mask, (0, 1))
    elif bias_k is not None or bias_v is not None:
        raise AssertionError("bias_k and bias_v must be given together")

    for t, fixed in ((k, static_k), (v, static_v)):
        if fixed is None and t.shape[1] != bsz:
            raise RuntimeError(
                f"shape '[{t.shape[0]}, {bsz * num_heads}, {head_dim}]' is invalid for input of size {t.numel()}: "
                f"query has a batch of {bsz}, key and value one of {t.shape[1]}"
            )
    # (N, heads, length, head_dim), read where the projections lie
    q, k, v = (
        t.unflatten(-1, (num_heads, head_dim)).permute(1, 2, 0, 3)
        if fixed is None
        else _static(fixed, name, bsz * num_heads, head_dim).unflatten(0, (bsz, num_heads))
        for t, fixed, name in ((q, None, ""), (k, static_k, "static_k"), (v, static_v, "static_v"))
    )
    if add_zero_attn:
        zero = (bsz, num_heads, 1, head_dim)
        k = rl.cat([k, k.new_zeros(zero)], 2)
        v = rl.cat([v, v.new_zeros(zero)], 2)
        attn_mask = None if attn_mask is None else F.pad(attn_mask, (0, 1))
        key_padding_mask = None if key_padding_mask is None else F.pad(key_padding_mask, (0, 1))
    src_len = k.size(2)

    if key_padding_mask is not None and key_padding_mask.shape != (bsz, src_len):
        raise AssertionError(
            f"expecting key_padding_mask shape of {(bsz, src_len)}, but got {key_padding_mask.shape}"
        )
    if attn_mask is not None:
        attn_mask = attn_mask.unflatten(0, (1, 1) if attn_mask.size(0) == 1 else (bsz, num_heads))
    if key_padding_mask is not None:
        key_padding_mask = key_padding_mask.view(bsz, 1, 1, src_len)
        attn_mask = key_padding_mask if attn_mask is None else attn_mask + key_padding_mask
    dropout_p = dropout_p if training else 0.0

    if need_weights:
        scores = (q * head_dim**-0.5) @ k.transpose(-2, -1)
        if attn_mask is not None:
            scores = scores + attn_mask
        weights = scores.softmax(-1)
        if dropout_p > 0.0:
            weights = F.dropout(weights, dropout_p)
        out = (weights @ v).permute(2, 0, 1, 3).reshape(tgt_len * bsz, embed_dim)
        out = core.linear(out, out_proj_weight, out_proj_bias).view(tgt_len, bsz, out_proj_weight.size(0))
        if average_attn_weights:
            weights = weights.mean(1)
        return (out, weights) if batched else (out.squeeze(1), weights.squeeze(0))

    out = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    # A transposed (N, L, E): the heads of out lie in that order too. In training the result is laid out as PyTorch's, since
    # a dropout that follows draws its values in the order of memory.
    if not training and query.stride(0) < query.stride(1):
        out = core.linear(out.transpose(1, 2).flatten(2), out_proj_weight, out_proj_bias).transpose(0, 1)
    else:
        out = out.permute(2, 0, 1, 3).reshape(tgt_len * bsz, embed_dim)
        out = core.linear(out, out_proj_weight, out_proj_bias).view(tgt_len, bsz, out_proj_weight.size(0))
    return (out if batched else out.squeeze(1)), None


def _static(x: Tensor, name: str, batch: int, head_dim: int) -> Tensor:
    if x.size(0) != batch:
        raise AssertionError(f"expecting {name}.size(0) of {batch}, but got {x.size(0)}")
    if x.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {x.size(2)}")
    return x
