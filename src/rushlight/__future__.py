"""Choices about how modules convert their parameters, as in torch.__future__."""

from __future__ import annotations

_overwrite = _swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether Module.to() and its like put new Parameters instead of the old ones; else these get new data."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether Module.to() and load_state_dict() swap the old Parameters with the new ones (utils.swap_tensors)."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    return _swap
