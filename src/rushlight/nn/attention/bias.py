"""Causal masks for scaled_dot_product_attention, aligned with either corner of the scores."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Self
from warnings import warn

import rushlight as rl
from rushlight._C import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Says through which corner of the scores the diagonal of a causal mask goes, where L and S differ.

    Example:
        >>> nn.attention.bias.causal_lower_right(2, 3).variant.name
        'LOWER_RIGHT'
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """Holds a causal mask (L, S), True where a query may see a key; attention knows it by its class and makes no tensor.

    Made by `causal_upper_left` and `causal_lower_right`, it is given as attn_mask.

    Args:
        variant (CausalVariant): the corner.
        seq_len_q (int): number of queries, L.
        seq_len_kv (int): number of keys, S.

    Example:
        >>> q, kv = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 5, 8)
        >>> F.scaled_dot_product_attention(q, kv, kv, nn.attention.bias.causal_lower_right(3, 5)).shape
        torch.Size([1, 2, 3, 8])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    @staticmethod
    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Self:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"expected a CausalVariant, got {variant!r}")
        shift = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        made = rl.ones(seq_len_q, seq_len_kv, dtype=rl.bool).tril(shift).as_subclass(cls)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        if shift < 0:
            warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv: the first queries "
                "see no key",
                stacklevel=3,
            )
        return made

    def _materialize(self, device: rl.device | None = None) -> Tensor:
        """The mask as a plain tensor."""
        return self.as_subclass(Tensor).to(device)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            mask = kwargs.get("attn_mask", args[3] if len(args) > 3 else None)
            if isinstance(mask, cls):
                return _attention(mask, func, list(args), kwargs)
        before = rl._C.ops["_set_torch_function"](False)
        try:
            return func(*args, **kwargs)
        finally:
            rl._C.ops["_set_torch_function"](before)


def _attention(mask: CausalBias, func: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    causal = kwargs.get("is_causal", args[5] if len(args) > 5 else False)
    if causal:
        raise ValueError("CausalBias should not be used with causal=True: it is the mask itself")
    plain = None
    if mask.variant is CausalVariant.UPPER_LEFT or mask.seq_len_q == mask.seq_len_kv:
        kwargs["is_causal"] = True
        args = args[:5]
    else:
        plain = mask._materialize()
    if len(args) > 3:
        args[3] = plain
    else:
        kwargs["attn_mask"] = plain
    return func(*args, **kwargs)


def _sizes(size: tuple[Any, ...]) -> tuple[int, int]:
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0])
    if len(size) != 2:
        raise AssertionError("causal masks expect (seq_len_q, seq_len_kv)")
    return size


def causal_upper_left(*size: int) -> CausalBias:
    """Makes the causal mask in which query i sees the keys j <= i.

    Args:
        size (int): seq_len_q and seq_len_kv, or a tuple of both.

    Example:
        >>> nn.attention.bias.causal_upper_left(2, 3)._materialize()
        tensor([[ True, False, False],
                [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_sizes(size))


def causal_lower_right(*size: int) -> CausalBias:
    """Makes the causal mask in which the last query sees all keys, as in decoding with a cache.

    Args:
        size (int): seq_len_q and seq_len_kv, or a tuple of both.

    Example:
        >>> nn.attention.bias.causal_lower_right(2, 3)._materialize()
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_sizes(size))
