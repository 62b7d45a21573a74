"""Modules whose parameters are recomputed by a forward pre-hook: weight_norm, spectral_norm, pruning."""

from __future__ import annotations

from typing import Any

from rushlight.nn.modules.module import Module


def pre_hooks(module: Module, caller: str) -> dict[int, Any]:
    """The forward pre-hooks of a module; anything else is refused by the caller's name."""
    if not isinstance(module, Module):
        raise TypeError(
            f"{caller}(): argument 'module' must be a torch.nn.Module, not {type(module).__name__}"
        )
    return module._forward_pre_hooks
