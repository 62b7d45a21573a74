"""Small helpers for arguments that stand for one or several values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "each") -> Callable[[Any], tuple[Any, ...]]:
    """A function: several values as a tuple, one number n times."""

    def each(value: Any) -> tuple[Any, ...]:
        return tuple(value) if isinstance(value, Iterable) else (value,) * n

    each.__name__ = name
    return each


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Sequence[int], n: int) -> tuple[int, ...]:
    """(a, b) -> (b, b, a, a) for n = 2: the order in which `pad` wants its sizes."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> int | list[int]:
    """out_size with None replaced by the trailing sizes of `defaults`."""
    if isinstance(out_size, int):
        return out_size
    ends = len(defaults) - len(out_size)
    if ends < 1:
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}, got {len(defaults)}")
    return [defaults[ends + i] if size is None else size for i, size in enumerate(out_size)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Removes a prefix from the keys of a state_dict, in place.

    For states saved from a wrapper: 'module.' of DataParallel, '_orig_mod.' of compile.

    Args:
        state_dict (dict): changed in place, with its metadata.
        prefix (str): what keys lose where they begin with it, the dot included.

    Example:
        >>> state = {"module.weight": 1, "bias": 2}
        >>> nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
        >>> state
        {'bias': 2, 'weight': 1}
    """
    for key in list(state_dict.keys()):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata.keys()):
            if key.startswith(prefix):
                metadata[key[len(prefix) :]] = metadata.pop(key)
            elif key == prefix.rstrip("."):
                metadata[""] = metadata.pop(key)
