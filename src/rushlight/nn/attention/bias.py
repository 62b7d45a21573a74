"""Causal masks for scaled_dot_product_attention, aligned with either corner of the scores."""

import enum
from warnings import warn

import rushlight as rl
from rushlight._C import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner of the scores the diagonal goes through."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A boolean mask (queries, keys), True where a query may see a key; attention knows it by its class."""

    variant: CausalVariant

    @staticmethod
    def __new__(cls, variant, seq_len_q, seq_len_kv):
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

    def _materialize(self, device=None):
        """The mask as a plain tensor."""
        return self.as_subclass(Tensor).to(device)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
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


def _attention(mask, func, args, kwargs):
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


def _sizes(size):
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0])
    if len(size) != 2:
        raise AssertionError("causal masks expect (seq_len_q, seq_len_kv)")
    return size


def causal_upper_left(*size):
    """True where query i may see key j: j <= i."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_sizes(size))


def causal_lower_right(*size):
    """The same with the last query seeing all keys."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_sizes(size))
