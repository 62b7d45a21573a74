"""Scaled dot product attention."""

from __future__ import annotations

import math
from typing import Any, cast

import rushlight as rl
from rushlight._C import Tensor
from rushlight._core import autocast as _autocast
from rushlight.nn import _core as core
from rushlight.nn import functional as F

_KERNEL_TYPES = (rl.float32, rl.float64, rl.bfloat16, rl.float16)


def _mask_fits(mask: Tensor, query: Tensor) -> bool:
    """Whether the kernel takes this mask."""
    return mask is None or (
        mask.dtype in (rl.bool, query.dtype) and not mask.requires_grad and mask.dim() <= 4
    )


@_autocast.low
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Computes attention: softmax(query key^T scale + mask) value.

    4-d tensors without dropout run in a fused kernel that never holds the L x S scores.

    Args:
        query (Tensor): (*, L, E), usually (N, heads, L, E / heads).
        key (Tensor): (*, S, E).
        value (Tensor): (*, S, Ev).
        attn_mask (Tensor): broadcasts to (*, L, S): booleans, True where a key takes part (the opposite of
            `nn.MultiheadAttention`'s masks), or floats to add to the scores. Default: None
        dropout_p (float): probability of dropping a weight, in evaluation too: pass 0.0 there. Default: 0.0
        is_causal (bool): query i sees keys up to i. Default: False
        scale (float): factor of the scores. Default: None, 1 / sqrt(E)
        enable_gqa (bool): query may have a multiple of the heads (dimension -3) of key and value. Default: False

    Returns:
        A tensor (*, L, Ev); a query that sees no key gives zeros.

    Example:
        >>> q, k, v = (torch.randn(2, 4, 5, 8) for _ in range(3))
        >>> F.scaled_dot_product_attention(q, k, v, is_causal=True).shape
        torch.Size([2, 4, 5, 8])
    """
    for name, t in (("query", query), ("key", key), ("value", value)):
        if t.dim() < 2:
            raise RuntimeError(
                f"scaled_dot_product_attention: expected {name} to have at least 2 dimensions, got {t.dim()}"
            )
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    if enable_gqa:
        heads = query.size(-3)
        if heads % key.size(-3) or heads % value.size(-3):
            raise RuntimeError("Number of heads in key and value must divide the number of heads in query")
        # The kernel reads a head of keys and values for all its queries, if it need not add up their gradients.
        shared = (
            key.dim() == value.dim() == query.dim() == 4 and key.size(1) == value.size(1) and dropout_p == 0.0
        )
        if (
            not shared
            or any(t.requires_grad for t in (query, key, value))
            or not _mask_fits(attn_mask, query)
        ):
            key = key.repeat_interleave(heads // key.size(-3), -3)
            value = value.repeat_interleave(heads // value.size(-3), -3)
    if scale is None:
        width = query.size(-1)
        scale = 1.0 / math.sqrt(width) if width else 0.0
    if is_causal and attn_mask is not None and query.dim() == 4 and not attn_mask.requires_grad:
        seen = rl.ones(query.size(-2), key.size(-2), dtype=rl.bool, device=query.device).tril()
        both = attn_mask & seen if attn_mask.dtype == rl.bool else attn_mask.masked_fill(~seen, float("-inf"))
        attn_mask, is_causal = both, False
    if (
        (attn_mask is None or (not is_causal and _mask_fits(attn_mask, query)))
        and dropout_p == 0.0
        and query.dim() == key.dim() == value.dim() == 4
        and query.dtype in _KERNEL_TYPES
        and query.size(0) == key.size(0) == value.size(0)
        and key.size(1) == value.size(1)
        and (enable_gqa or query.size(1) == key.size(1))
        and query.size(3) == key.size(3)
        and 0 < key.size(2) == value.size(2)
    ):
        if attn_mask is None:
            out: Tensor = core.attention(query, key, value, is_causal, float(scale))
            return out
        if attn_mask.dtype in (rl.bfloat16, rl.float16):
            attn_mask = attn_mask.float()
        result: Tensor = core.attention(query, key, value, is_causal, float(scale), attn_mask)
        return result
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("Explicit attn_mask should not be set when is_causal=True")
        attn_mask = rl.ones(query.size(-2), key.size(-2), dtype=rl.bool, device=query.device).tril()
    given = query.dtype
    if given in (rl.bfloat16, rl.float16):
        # Scores are exponents: rounded to a few bits, they would change the weights by far more than that.
        query, key, value = query.float(), key.float(), value.float()
    scores = (query * scale) @ key.transpose(-2, -1)
    if attn_mask is None:
        weights = scores.softmax(-1)
    elif attn_mask.dtype == rl.bool:
        weights = scores.masked_fill(~attn_mask, float("-inf")).softmax(-1)
        # A row that may see nothing is 0, not NaN.
        if not is_causal:
            weights = weights.masked_fill(~attn_mask.any(-1, keepdim=True), 0.0)
    else:
        weights = (scores + attn_mask).softmax(-1)
        weights = weights.masked_fill((attn_mask == float("-inf")).all(-1, keepdim=True), 0.0)
    if dropout_p > 0.0:
        weights = F.dropout(weights, dropout_p)
    return cast(Tensor, (weights @ value).to(given))


def _fused_sdp_choice(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> int:
    """Which of nn.attention.SDPBackend PyTorch would take: 1, the fused kernel, where ours is fused too, or 0."""
    plain = not (query.is_nested or key.is_nested or value.is_nested) and query.dim() == 4
    mask_graph = attn_mask is not None and attn_mask.requires_grad
    return int(plain and dropout_p == 0 and query.is_floating_point() and not mask_graph)
