"""The methods of Module that find and list what is below it."""

from __future__ import annotations

import rushlight as rl
from rushlight.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from rushlight import Tensor
    from rushlight.nn.modules.module import Module
    from rushlight.nn.parameter import Parameter

    _M = TypeVar("_M", bound=Module)


def get_submodule(self: Module, target: str) -> Module:
    """Returns the module at a dotted path below this one.

    Args:
        target (str): the path, such as 'layers.0.linear'; '' is this module.

    Raises:
        AttributeError: there is nothing, or no module, at the path.

    Example:
        >>> nn.Sequential(nn.Sequential(nn.ReLU())).get_submodule("0.0")
        ReLU()
    """
    module = self
    for name in target.split(".") if target else ():
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        module = getattr(module, name)
        if not isinstance(module, rl.nn.Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
    return module


def set_submodule(self: Module, target: str, module: Module, strict: bool = False) -> None:
    """Puts a module at a dotted path, usually in place of another.

    Args:
        target (str): the path, such as 'layers.0.linear'.
        module (Module): what to put there.
        strict (bool): refuses a path whose last name is new. Default: False

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> model.set_submodule("1", nn.GELU())
        >>> model[1]
        GELU(approximate='none')
    """
    if target == "":
        raise ValueError("Cannot set the submodule without a target name!")
    path, _, name = target.rpartition(".")
    if not isinstance(module, rl.nn.Module):
        raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
    parent = self.get_submodule(path)
    if strict and not hasattr(parent, name):
        raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
    if hasattr(parent, name) and not isinstance(getattr(parent, name), rl.nn.Module):
        raise AttributeError(f"`{name}` is not an nn.Module")
    setattr(parent, name, module)


def _get_member(self: Module, target: str, kind: str) -> Any:
    path, _, name = target.rpartition(".")
    module = self.get_submodule(path)
    if not hasattr(module, name):
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    value = getattr(module, name)
    if kind == "parameter" and not isinstance(value, Parameter):
        raise AttributeError(f"`{name}` is not an nn.Parameter")
    if kind == "buffer" and name not in module._buffers:
        raise AttributeError(f"`{name}` is not a buffer")
    return value


def get_parameter(self: Module, target: str) -> Parameter:
    """Returns the parameter at a dotted path.

    Args:
        target (str): the path, such as 'layers.0.weight'.

    Raises:
        AttributeError: there is no parameter at the path.
    """
    result: Parameter = self._get_member(target, "parameter")
    return result


def get_buffer(self: Module, target: str) -> Tensor:
    """Returns the buffer at a dotted path.

    Args:
        target (str): the path, such as 'norm.running_mean'.

    Raises:
        AttributeError: there is no buffer at the path.
    """
    out: Tensor = self._get_member(target, "buffer")
    return out


def _named_members(
    self: Module,
    get_members_fn: Callable[[Module], Any],
    prefix: str = "",
    recurse: bool = True,
    remove_duplicate: bool = True,
) -> Iterator[tuple[str, Any]]:
    seen = set()
    for path, module in (
        self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
    ):
        for name, value in get_members_fn(module):
            if value is None or value in seen:
                continue
            if remove_duplicate:
                seen.add(value)
            yield path + ("." if path else "") + name, value


def parameters(self: Module, recurse: bool = True) -> Iterator[Parameter]:
    """Iterates over the parameters, each once however often it is used: what optimizers are given.

    Args:
        recurse (bool): those of modules below too. Default: True

    Example:
        >>> sum(p.numel() for p in nn.Linear(3, 2).parameters())
        8
    """
    for _, param in self.named_parameters(recurse=recurse):
        yield param


def named_parameters(
    self: Module, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
) -> Iterator[tuple[str, Parameter]]:
    """Iterates over (path, parameter) of the parameters.

    Args:
        prefix (str): put in front of the paths. Default: ''
        recurse (bool): those of modules below too. Default: True
        remove_duplicate (bool): gives a shared parameter under its first path only. Default: True

    Example:
        >>> for name, p in nn.Sequential(nn.Linear(3, 2)).named_parameters():
        ...     print(name, tuple(p.shape))
        0.weight (2, 3)
        0.bias (2,)
    """
    yield from self._named_members(
        lambda m: m._parameters.items(), prefix=prefix, recurse=recurse, remove_duplicate=remove_duplicate
    )


def buffers(self: Module, recurse: bool = True) -> Iterator[Tensor]:
    """Iterates over the buffers, each once.

    Args:
        recurse (bool): those of modules below too. Default: True
    """
    for _, buffer in self.named_buffers(recurse=recurse):
        yield buffer


def named_buffers(
    self: Module, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
) -> Iterator[tuple[str, Tensor]]:
    """Iterates over (path, buffer) of the buffers.

    Args:
        prefix (str): put in front of the paths. Default: ''
        recurse (bool): those of modules below too. Default: True
        remove_duplicate (bool): gives a shared buffer under its first path only. Default: True
    """
    yield from self._named_members(
        lambda m: m._buffers.items(), prefix=prefix, recurse=recurse, remove_duplicate=remove_duplicate
    )


def children(self: Module) -> Iterator[Module]:
    """Iterates over the modules directly below, each once."""
    for _, module in self.named_children():
        yield module


def named_children(self: Module) -> Iterator[tuple[str, Module]]:
    """Iterates over (name, module) of the modules directly below, each once.

    Example:
        >>> [name for name, _ in nn.Sequential(nn.ReLU(), nn.Tanh()).named_children()]
        ['0', '1']
    """
    seen = set()
    for name, module in self._modules.items():
        if module is not None and module not in seen:
            seen.add(module)
            yield name, module


def modules(self: Module, remove_duplicate: bool = True) -> Iterator[Module]:
    """Iterates over this module and all below it.

    Args:
        remove_duplicate (bool): gives a shared module once. Default: True

    Example:
        >>> [type(m).__name__ for m in nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh())).modules()]
        ['Sequential', 'ReLU', 'Sequential', 'Tanh']
    """
    for _, module in self.named_modules(remove_duplicate=remove_duplicate):
        yield module


def named_modules(
    self: Module, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
) -> Iterator[tuple[str, Module]]:
    """Iterates over (path, module) of this module, whose path is the prefix, and of all below it.

    Args:
        memo (set): modules to leave out; those met are added. Default: None
        prefix (str): the path of this module. Default: ''
        remove_duplicate (bool): gives a shared module under its first path only. Default: True

    Example:
        >>> [name for name, _ in nn.Sequential(nn.Sequential(nn.Tanh())).named_modules()]
        ['', '0', '0.0']
    """
    memo = set() if memo is None else memo
    if self in memo:
        return
    if remove_duplicate:
        memo.add(self)
    yield prefix, self
    for name, module in self._modules.items():
        if module is not None:
            yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)
