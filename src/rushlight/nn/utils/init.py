"""skip_init."""

from __future__ import annotations

from typing import Any

import rushlight as rl

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Makes a module without filling its parameters, whose values are undefined: for those that are loaded anyway.

    Args:
        module_cls (type): the class, whose constructor takes `device`.
        args (any): for the constructor.
        kwargs (any): for the constructor; device says where the module is made.

    Example:
        >>> nn.utils.skip_init(nn.Linear, 5, 1).weight.shape
        torch.Size([1, 5])
    """
    if not issubclass(module_cls, rl.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    from inspect import signature

    if "device" not in signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
