"""Reading files of compiled modules without running anything in them.

TorchScript archives hold a program in a text of its own; there is no interpreter for it here. What is read is the
data: parameters, buffers, submodules and attributes.
"""

from __future__ import annotations

import enum
import functools
import re
import sys
from typing import Any

import rushlight as rl
from rushlight.jit._module import ArchivedModule
from rushlight.serialization._allowed import SafeHooks, file_name
from rushlight.serialization._load import storages_of
from rushlight.serialization._read import run_safely
from rushlight.serialization._vm import UnpicklingError, globals_of, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.serialization._read import Reader
    from rushlight.serialization._zip import ZipReader


_MOST_TEXT = 64 << 20  # bytes of one source file in an archive


def read(archive: ZipReader, reader: Reader) -> ArchivedModule:
    """The module tree of a TorchScript archive; its modules have weights but cannot be called."""
    data = archive.read("data.pkl")
    hooks = _ScriptHooks(archive, len(data), lambda: globals_of(data))
    result: ArchivedModule = run_safely(hooks, data, 0, storages_of(archive, reader))[0]
    return result


class _ScriptClass:
    """A class of the archive's program: its name, and which of its attributes are parameters and buffers."""

    def __init__(self, name: Any, text: str) -> None:
        self.name = name.rpartition(".")[2]
        body = re.search(rf"^class {re.escape(self.name)}\((\w+)\):\n((?:  .*\n?|\n)*)", text, re.MULTILINE)
        self.is_module = body is not None and body[1] == "Module"
        self.parameters, self.buffers = (
            set(re.findall(r'"([^"]*)"', found[1]))
            if body and (found := re.search(rf"^  {field} = \[(.*)\]", body[2], re.MULTILINE))
            else set()
            for field in ("__parameters__", "__buffers__")
        )


class ScriptObject:
    """A value of a TorchScript class that is not a module: its attributes."""


class _ScriptHooks(SafeHooks):
    """The names that TorchScript's pickles use, besides those of every checkpoint."""

    def __init__(self, archive: Any, size: Any, pickled: Any) -> None:
        super().__init__(size, pickled)
        self.archive = archive
        self.classes: dict[str, Any] = {}  # by name
        self.kinds: dict[int, Any] = {}  # by id of a made object
        for name in ("build_intlist", "build_doublelist", "build_boollist", "build_tensorlist"):
            self.callables[f"torch.jit._pickle.{name}"] = _the_list
        self.callables["torch.jit._pickle.restore_type_tag"] = _the_value
        self.functions = {id(f): f for f in self.callables.values()}

    def find(self, module: Any, name: Any) -> Any:
        full = f"{module}.{name}"
        if not full.startswith("__torch__."):
            return super().find(module, name)
        if full not in self.classes:
            entry = f"code/{module.replace('.', '/')}.py"
            text = (
                self.archive.read(entry, most=_MOST_TEXT).decode("utf-8", "replace")
                if entry in self.archive
                else ""
            )
            self.classes[full] = _ScriptClass(full, text)
        return self.classes[full]

    def new(self, cls: Any, args: Any, kwargs: Any) -> Any:
        if not isinstance(cls, _ScriptClass):
            return super().new(cls, args, kwargs)
        made = ArchivedModule() if cls.is_module or cls.name == "PlaceholderModule" else ScriptObject()
        made.__dict__["original_name"] = cls.name
        self.kinds[id(made)] = (made, cls)
        return made

    def build(self, obj: Any, state: Any) -> Any:
        made, cls = self.kinds.get(id(obj), (None, None))
        if made is not obj or obj is None:
            return super().build(obj, state)
        if type(state) is not dict:
            raise UnpicklingError("the state of a module must be a dict")
        self.spend((state,))
        for name, value in state.items():
            _set(obj, cls, name, value)
        return obj


def _set(obj: Any, cls: Any, name: Any, value: Any) -> None:
    if type(name) is not str or not re.fullmatch(r"\w+", name):
        raise UnpicklingError(f"{shown(name)} is not the name of an attribute")
    if isinstance(obj, ScriptObject):
        obj.__dict__[name] = value
    elif name in cls.parameters and isinstance(value, (rl.Tensor, type(None))):
        obj._parameters[name] = (
            None if value is None else rl.nn.Parameter(value.detach(), value.requires_grad)
        )
    elif name in cls.buffers and isinstance(value, (rl.Tensor, type(None))):
        obj._buffers[name] = value
    elif isinstance(value, rl.nn.Module):
        obj._modules[name] = value
    elif name == "training":
        obj.training = value is True
    elif not hasattr(type(obj), name) and not name.startswith("_"):
        obj.__dict__[name] = value


def _the_list(value: Any) -> Any:
    if type(value) is not list:
        raise UnpicklingError(f"{shown(value)} where a list should be")
    return value


def _the_value(value: Any, type_name: Any) -> Any:
    return value


class ModuleHooks(SafeHooks):
    """For files of jit.save: besides data, modules whose classes this process has imported already."""

    def find(self, module: Any, name: Any) -> Any:
        full = file_name(module, name)
        if self.knows(full):
            return super().find(module, name)
        home = sys.modules.get("rushlight" + full.removeprefix("torch").removesuffix(f".{name}"))
        if module.partition(".")[0] == "torchvision":  # the name that rushlight.vision has in files
            home = sys.modules.get("rushlight.vision" + module.removeprefix("torchvision"))
        elif not full.startswith("torch.nn."):
            home = sys.modules.get(module)
        found = home
        for part in name.split("."):
            found = getattr(found, part, None)
        if isinstance(found, type) and issubclass(found, rl.nn.Module):
            return found
        if _own_enum(found) or _own_record(found) or found is functools.partial:
            return found
        return super().find(module, name)

    def call(self, function: Any, args: Any) -> Any:
        if function is functools.partial and len(args) == 1 and _is_layer(args[0]):
            return function(*args)
        return function(*args) if _own_enum(function) else super().call(function, args)

    def new(self, cls: Any, args: Any, kwargs: Any) -> Any:
        if (_is_layer(cls) or _own_record(cls)) and not args and not kwargs:
            return cls.__new__(cls)
        return super().new(cls, args, kwargs)

    def build(self, obj: Any, state: Any) -> Any:
        if isinstance(obj, functools.partial):
            return _rebuilt_partial(obj, state)
        if _own_record(type(obj)) and type(state) is dict and all(type(name) is str for name in state):
            self.spend((state,))
            obj.__dict__.update(state)
            return obj
        if isinstance(obj, rl.nn.Module) and type(state) is dict:
            self.spend((state,))
            _check_members(obj, state)
            obj.__setstate__(state)
            return obj
        return super().build(obj, state)


def _is_layer(value: Any) -> Any:
    return isinstance(value, type) and issubclass(value, rl.nn.Module)


def _own_record(value: Any) -> Any:
    """Whether a value is a class of the package's models that has settings and no state beyond them (BoxCoder ...)."""
    return (
        isinstance(value, type)
        and value.__module__.startswith("rushlight.vision.models.")
        and all(base is object or _own_record(base) for base in value.__bases__)
        and not {"__reduce__", "__setstate__", "__new__", "__del__"} & vars(value).keys()
    )


def _rebuilt_partial(made: Any, state: Any) -> Any:
    """functools.partial(LayerNorm, eps=1e-6): a class of layers and named arguments, which nothing is called with here."""
    if type(state) is tuple and len(state) == 4:
        function, args, named, rest = state
        if function is made.func and args == () and type(named) in (dict, type(None)) and rest is None:
            made.__setstate__(
                (function, (), dict(named or {}), None)
            )  # in place: the pickle may refer to it again
            return made
    raise UnpicklingError("a partial of a class of layers has named arguments only")


def _own_enum(value: Any) -> Any:
    """Whether a value is one of the package's enumerations, whose members are data."""
    return (
        isinstance(value, type) and issubclass(value, enum.Enum) and value.__module__.startswith("rushlight.")
    )


def _check_members(module: Any, state: Any) -> None:
    """What every method of a module relies on."""
    for name, kinds in (("_parameters", rl.Tensor), ("_buffers", rl.Tensor), ("_modules", rl.nn.Module)):
        members = state.get(name)
        if not isinstance(members, dict) or not all(
            type(key) is str and isinstance(value, (kinds, type(None))) for key, value in members.items()
        ):
            raise UnpicklingError(f"the {name} of a {type(module).__name__} are not what they should be")
    for name, value in state.items():
        if type(name) is not str or (name.endswith("_hooks") and not isinstance(value, dict)):
            raise UnpicklingError(f"{shown(name)} of a {type(module).__name__} is not what it should be")
