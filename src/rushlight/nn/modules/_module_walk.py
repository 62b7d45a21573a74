"""The methods of Module that find and list what is below it."""

import rushlight as rl
from rushlight.nn.parameter import Parameter


def get_submodule(self, target):
    """The module at a dotted path; '' is this one."""
    module = self
    for name in target.split(".") if target else ():
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        module = getattr(module, name)
        if not isinstance(module, rl.nn.Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
    return module


def set_submodule(self, target, module, strict=False):
    """Puts a module at a dotted path; strict refuses to make a new name."""
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


def _get_member(self, target, kind):
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


def get_parameter(self, target):
    """The parameter at a dotted path."""
    return self._get_member(target, "parameter")


def get_buffer(self, target):
    """The buffer at a dotted path."""
    return self._get_member(target, "buffer")


def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
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


def parameters(self, recurse=True):
    """All parameters, each once."""
    for _, param in self.named_parameters(recurse=recurse):
        yield param


def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
    """(path, parameter) of all parameters."""
    yield from self._named_members(
        lambda m: m._parameters.items(), prefix=prefix, recurse=recurse, remove_duplicate=remove_duplicate
    )


def buffers(self, recurse=True):
    """All buffers, each once."""
    for _, buffer in self.named_buffers(recurse=recurse):
        yield buffer


def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
    """(path, buffer) of all buffers."""
    yield from self._named_members(
        lambda m: m._buffers.items(), prefix=prefix, recurse=recurse, remove_duplicate=remove_duplicate
    )


def children(self):
    """The modules directly below, each once."""
    for _, module in self.named_children():
        yield module


def named_children(self):
    """(name, module) of the modules directly below."""
    seen = set()
    for name, module in self._modules.items():
        if module is not None and module not in seen:
            seen.add(module)
            yield name, module


def modules(self, remove_duplicate=True):
    """This module and all below it, each once unless remove_duplicate is False."""
    for _, module in self.named_modules(remove_duplicate=remove_duplicate):
        yield module


def named_modules(self, memo=None, prefix="", remove_duplicate=True):
    """(path, module) of this module, whose path is the prefix, and of all below it."""
    memo = set() if memo is None else memo
    if self in memo:
        return
    if remove_duplicate:
        memo.add(self)
    yield prefix, self
    for name, module in self._modules.items():
        if module is not None:
            yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)
