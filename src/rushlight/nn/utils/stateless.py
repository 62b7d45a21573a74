"""Calling a module with other parameters than its own: the older home of torch.func.functional_call."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight as rl
from rushlight._transforms.functional_call import call
from rushlight._transforms.functional_call import replaced as _replaced

__all__ = ["functional_call"]


def _reparametrize_module(
    module: rl.nn.Module,
    parameters_and_buffers: dict[str, rl.Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Any:
    """Within the block, the module has the given tensors in place of its own."""
    return _replaced(module, parameters_and_buffers, tie_weights, strict)


def functional_call(
    module: rl.nn.Module,
    parameters_and_buffers: dict[str, rl.Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers than its own: the deprecated home of `torch.func.functional_call`.

    Args:
        module (Module): its own tensors are left alone.
        parameters_and_buffers (dict): tensors by their paths.
        args (tuple or any): positional arguments; what is no tuple is the only one. Default: None
        kwargs (dict): keyword arguments. Default: None
        tie_weights (bool): a tensor given under one of its names stands for all of them. Default: True
        strict (bool): all of them, and no others, must be given. Default: False

    Example:
        >>> layer = nn.Linear(2, 1, bias=False)
        >>> torch.func.functional_call(layer, {"weight": torch.ones(1, 2)}, torch.tensor([2.0, 3.0]))
        tensor([5.])
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated. Please use `torch.func.functional_call` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module: rl.nn.Module,
    parameters_and_buffers: dict[str, rl.Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if not isinstance(module, rl.nn.Module):
        raise TypeError(f"functional_call: expected a Module, got {type(module).__name__}")
    return call(module, parameters_and_buffers, args, kwargs, tie_weights, strict)
