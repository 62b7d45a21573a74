"""The learned scale and shift that end every normalisation."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.nn import init
from rushlight.nn.parameter import Parameter


def add_scale(
    module: rl.nn.Module,
    shape: Any,
    wanted: bool,
    device: rl.device | str | int | None,
    dtype: rl.dtype | None,
) -> None:
    """Registers `weight`, or None in its place; its values are for reset_affine to set."""
    _add(module, "weight", shape, wanted, device, dtype)


def add_shift(
    module: rl.nn.Module,
    shape: Any,
    wanted: bool,
    device: rl.device | str | int | None,
    dtype: rl.dtype | None,
) -> None:
    """Registers `bias`, or None in its place."""
    _add(module, "bias", shape, wanted, device, dtype)


def _add(
    module: rl.nn.Module,
    name: str,
    shape: Any,
    wanted: bool,
    device: rl.device | str | int | None,
    dtype: rl.dtype | None,
) -> None:
    value = Parameter(rl.empty(shape, device=device, dtype=dtype)) if wanted else None
    module.register_parameter(name, value)


def reset_affine(module: Any) -> None:
    """Scale 1 and shift 0, as far as there are any."""
    if module.weight is not None:
        init.ones_(module.weight)
    if getattr(module, "bias", None) is not None:
        init.zeros_(module.bias)
