"""Memory that a device could read: there is no such device, so `pin_memory` returns the data as they are, in new containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import rushlight as rl
from rushlight._C import device

from .collate import _is_namedtuple, _like_mapping, _like_sequence

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: device | str | None = None) -> Any:
    """The same structure with every tensor (and every object that has a method `pin_memory`) pinned."""
    if isinstance(data, (rl.Tensor, str, bytes)):
        return data
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: pin_memory(value, device) for key, value in data.items()})
    if _is_namedtuple(data):
        return type(data)(*(pin_memory(value, device) for value in data))
    if isinstance(data, tuple):
        return [pin_memory(value, device) for value in data]
    if isinstance(data, Sequence):
        return _like_sequence(data, [pin_memory(value, device) for value in data])
    return data
