"""Inputs to devices and outputs back, on one device."""

from __future__ import annotations

from typing import Any

from .data_parallel import gather as gather
from .data_parallel import scatter as scatter


def is_namedtuple(obj: Any) -> bool:
    return isinstance(obj, tuple) and hasattr(obj, "_fields")


_is_namedtuple = is_namedtuple


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Any, dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Returns the arguments for each device: of the one there is, all.

    Args:
        inputs (tuple): positional arguments.
        kwargs (dict): keyword arguments.
        target_gpus (list): accepted.
        dim (int): accepted. Default: 0
    """
    return (tuple(inputs),), (dict(kwargs or {}),)
