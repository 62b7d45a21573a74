"""Parameters, buffers and tensors of a module, exchanged by name without asking the module."""

from __future__ import annotations

from typing import Any, cast

from rushlight._C import Tensor
from rushlight._core.unsupported import add_placeholders as _add_placeholders
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.nn.modules.module import Module

_MISSING = object()


def _home(module: Module, name: str) -> Any:
    """The dictionary that holds a member."""
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    for home in (module._parameters, module._buffers):
        if name in home:
            return home
    return module.__dict__


def swap_tensor(module: Module, name: str, tensor: Tensor, allow_missing: bool = False) -> Tensor:
    """Replaces a tensor by another (or by None) and returns it."""
    home = _home(module, name)
    before = home.get(name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute {name!r}")
    if before is not _MISSING and not isinstance(before, Tensor) and before is not None:
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is _MISSING:
        home.pop(name, None)
    else:
        home[name] = tensor
    return cast(Tensor, before)


def set_tensor(module: Module, name: str, tensor: Tensor) -> None:
    """Sets a tensor, whether or not there was one."""
    swap_tensor(module, name, tensor, allow_missing=True)


_add_placeholders(globals(), "NamedMemberAccessor")
__getattr__ = _unsupported_attribute(__name__)
