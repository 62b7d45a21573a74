"""Modules whose parameters are recomputed by a forward pre-hook: weight_norm, spectral_norm, pruning."""


def pre_hooks(module, caller: str) -> dict:
    """The forward pre-hooks of a module; anything else is refused by the caller's name."""
    from rushlight.nn import Module

    if not isinstance(module, Module):
        raise TypeError(
            f"{caller}(): argument 'module' must be a torch.nn.Module, not {type(module).__name__}"
        )
    return module._forward_pre_hooks
