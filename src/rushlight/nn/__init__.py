"""Neural networks: layers, losses, initialisation and utilities, with PyTorch's names."""

from __future__ import annotations

from typing import Any

from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    *modules.__all__, "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter",
    "factory_kwargs", "functional", "init", "modules", "parallel", "parameter", "utils",
]  # fmt: skip


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Collects the arguments that make a tensor, device, dtype and memory_format, out of keyword arguments.

    Args:
        kwargs (dict): these arguments, or a dictionary of them under 'factory_kwargs'; None for none.

    Returns:
        A dictionary of those given.

    Raises:
        TypeError: there is another argument, or one is given twice.

    Example:
        >>> nn.factory_kwargs({"factory_kwargs": {"dtype": torch.float64}})
        {'dtype': torch.float64}
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    expected = simple | {"factory_kwargs"}
    unknown = kwargs.keys() - expected
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    out = dict(kwargs.get("factory_kwargs", {}))
    for key in simple & kwargs.keys():
        if key in out:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        out[key] = kwargs[key]
    return out


def __getattr__(name: str) -> Any:
    # What few programs use is loaded when asked for.
    from importlib import import_module

    if name in ("parallel", "grad", "attention", "common_types"):
        value = import_module(f"rushlight.nn.{name}")
    elif name == "DataParallel":
        value = import_module("rushlight.nn.parallel").DataParallel
    else:
        from rushlight._core.unsupported import no_name

        raise no_name(__name__, name)
    globals()[name] = value
    return value


def _under_torch() -> None:
    import sys

    alias = sys.modules.get("rushlight._compat.alias")
    if alias is not None:
        alias.renew()


_under_torch()
