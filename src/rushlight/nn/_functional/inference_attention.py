"""Self-attention of layers that are not being trained: what nn.MultiheadAttention calls its fast path. It knows nested
tensors, and a position whose keys are all masked gives NaN, where the other path gives 0.
"""

from __future__ import annotations

import math
from typing import Any, cast

import rushlight as rl
from rushlight._core.compose import public
from rushlight.nn import functional as F


def why_not(layer: Any, query: rl.Tensor, key: rl.Tensor, value: rl.Tensor, masks: Any) -> str | None:
    """Why a call of nn.MultiheadAttention cannot take the fast path, or None."""
    weights = (layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight, layer.out_proj.bias)
    reasons = (
        (
            any(m is not None and m.is_floating_point() for m in masks),
            "floating-point masks are not supported for fast path.",
        ),
        (
            not rl.backends.mha.get_fastpath_enabled(),
            "torch.backends.mha.get_fastpath_enabled() was not True",
        ),
        (query.dim() != 3, f"input not batched; expected query.dim() of 3 but got {query.dim()}"),
        (
            query is not key or key is not value,
            "non-self attention was used (query, key, and value are not the same Tensor)",
        ),
        (
            layer.in_proj_weight is None or layer.in_proj_bias is None,
            "the packed projection or its bias was None",
        ),
        (
            any(w is not None and w.dtype != query.dtype for w in weights),
            f"dtypes of query ({query.dtype}) and the weights and biases don't match",
        ),
        (layer.training, "training is enabled"),
        (layer.num_heads % 2 != 0, "self.num_heads is not even"),
        (not layer.batch_first, "batch_first was not True"),
        (layer.bias_k is not None or layer.bias_v is not None, "self.bias_k or self.bias_v was not None"),
        (layer.add_zero_attn, "add_zero_attn was enabled"),
        (not layer._qkv_same_embed_dim, "_qkv_same_embed_dim was not True"),
        (
            query.is_nested and any(m is not None for m in masks),
            "a mask is not supported with NestedTensor input",
        ),
        (rl.is_autocast_enabled("cpu"), "autocast is enabled"),
        (
            rl.overrides.has_torch_function((query, *(w for w in weights if w is not None))),
            "some Tensor argument has_torch_function",
        ),
        (
            rl.is_grad_enabled() and any(t is not None and t.requires_grad for t in (query, *weights)),
            "grad is enabled and at least one of query or the input/output projection weights or biases requires_grad",
        ),
    )
    return next((text for found, text in reasons if found), None)


@public
def _native_multi_head_attention(
    query: rl.Tensor, key: rl.Tensor, value: rl.Tensor, embed_dim: int, num_head: int, qkv_weight: rl.Tensor, qkv_bias: rl.Tensor | None, proj_weight: rl.Tensor, proj_bias: rl.Tensor | None, mask: rl.Tensor | None=None, need_weights: bool=True,
    average_attn_weights: bool=True, mask_type: int | None=None,
) -> tuple[rl.Tensor, rl.Tensor | None]:  # fmt: skip
    """(result, weights or None) of attention (N, L, E) -> (N, L, E); `mask` is True, or -inf, where attention must not look.

    Args:
        mask_type: 0 for a mask (L, L) of every sample and head, 1 for (N, L) of keys, 2 for one (N, heads, L, L).
    """
    if query.dim() != 3:
        raise RuntimeError(f"expected 3-D `query`, got {query.dim()}-D tensor")
    if embed_dim % num_head:
        raise RuntimeError(f"`embed_dim` must divide evenly by `num_heads`: {embed_dim} and {num_head}")
    if query.is_nested:
        return _nested(
            query,
            key,
            value,
            num_head,
            qkv_weight,
            qkv_bias,
            proj_weight,
            proj_bias,
            mask,
            need_weights,
            average_attn_weights,
        )
    if mask is not None:
        mask = mask if mask.dtype == rl.bool else mask != 0
        if mask_type == 1 or (mask_type is None and mask.shape == query.shape[:2] and mask.dim() == 2):
            mask = mask[:, None, None, :]
    q, k, v = (_heads(t, num_head) for t in _projections(query, key, value, qkv_weight, qkv_bias))
    out, weights = _attend(q, k, v, mask, need_weights)
    out = F.linear(out.transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    return out, weights


def _projections(
    query: rl.Tensor, key: rl.Tensor, value: rl.Tensor, weight: rl.Tensor, bias: rl.Tensor | None
) -> tuple[rl.Tensor, ...] | list[rl.Tensor]:
    if query is key and key is value:
        return F.linear(query, weight, bias).chunk(3, -1)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [F.linear(t, w, b) for t, w, b in zip((query, key, value), weight.chunk(3), biases, strict=True)]


def _heads(t: rl.Tensor, count: int) -> rl.Tensor:
    """(..., L, E) -> (..., heads, L, E / heads)"""
    return t.unflatten(-1, (count, -1)).transpose(-3, -2)


def _attend(
    q: rl.Tensor, k: rl.Tensor, v: rl.Tensor, mask: rl.Tensor | None, need_weights: bool
) -> tuple[rl.Tensor, None] | tuple[rl.Tensor, rl.Tensor]:
    if not need_weights:
        out = F.scaled_dot_product_attention(q, k, v, None if mask is None else ~mask)
        if mask is not None:
            out = out.masked_fill(mask.all(-1, keepdim=True), float("nan"))
        return out, None
    scores = (q / math.sqrt(q.size(-1))) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ v, weights


def _nested(
    query: Any,
    key: Any,
    value: Any,
    num_head: int,
    qkv_weight: rl.Tensor,
    qkv_bias: rl.Tensor | None,
    proj_weight: rl.Tensor,
    proj_bias: rl.Tensor | None,
    mask: rl.Tensor | None,
    need_weights: bool,
    average: bool,
) -> tuple[Any, Any]:
    """Attention of nested tensors: projections of all sequences at once, scores of one after the other."""
    from rushlight.nested._tensor import strided

    if mask is not None:
        raise RuntimeError("NestedTensor with mask is not supported yet: its sequences end where they end")
    if not (query is key and key is value):
        raise RuntimeError("NestedTensor attention expects query, key and value to be the same tensor")
    lengths = [n for n, _ in query._sizes]
    rows = query.contiguous().values().view(-1, query.size(-1))
    qkv = F.linear(rows, qkv_weight, qkv_bias)
    if need_weights or len(rows) >= _LONG * len(lengths):
        parts = [
            _attend(_heads(q, num_head), _heads(k, num_head), _heads(v, num_head), None, need_weights)
            for q, k, v in (p.chunk(3, -1) for p in qkv.split(lengths))
        ]
        out = rl.cat([t.transpose(0, 1).flatten(1) for t, _ in parts])
    else:
        out = _short(qkv, lengths, num_head)
    result = strided(
        F.linear(out, proj_weight, proj_bias).view(-1), [(n, proj_weight.size(0)) for n in lengths]
    )
    if not need_weights:
        return result, None
    longest = max(lengths)
    padded = [
        F.pad(cast(rl.Tensor, w), (0, longest - n, 0, longest - n))
        for (_, w), n in zip(parts, lengths, strict=True)
    ]
    stacked = rl.stack(padded)
    return result, stacked.mean(1) if average else stacked


_LONG = 64  # sequences of about this length take longer than the call that attends to one of them


def _short(qkv: rl.Tensor, lengths: list[int], num_head: int) -> rl.Tensor:
    """Attention of short sequences, side by side with a mask."""
    from rushlight.nested import _pad
    from rushlight.nested._tensor import jagged

    count = rl.tensor(lengths)
    x = jagged(qkv, F.pad(count.cumsum(0), (1, 0)))
    whole = _pad.padded(x, 0.0)
    keep = (rl.arange(whole.size(1)) < count[:, None])[:, None, None, :]
    q, k, v = (_heads(t, num_head) for t in whole.chunk(3, -1))
    out = F.scaled_dot_product_attention(q, k, v, keep)
    result: rl.Tensor = _pad.unpadded(out.transpose(1, 2).flatten(2), x._like(qkv[:, : qkv.size(-1) // 3]))
    return result
