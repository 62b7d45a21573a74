"""skip_init."""

from __future__ import annotations

from typing import Any

import rushlight as rl

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module of the class without the work of filling its parameters: their values are undefined."""
    if not issubclass(module_cls, rl.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    from inspect import signature

    if "device" not in signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    place = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=place)
