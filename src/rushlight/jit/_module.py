"""Modules that were scripted or traced, and their files."""

from __future__ import annotations

import functools
import inspect
import io
import os
import pickle
import textwrap
import threading
from typing import Any

import rushlight as rl
from rushlight.nn.parameter import UninitializedTensorMixin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module


# Errors of Python that TorchScript has no classes for.
_PYTHONS = (AssertionError, ValueError, TypeError, IndexError, KeyError)


_calls = threading.local()  # .depth: how many scripted modules this thread is in


def is_scripting() -> Any:
    """Tells whether this call comes from a module that jit.script made; one that jit.trace made does not count.

    Example:
        >>> class Model(nn.Module):
        ...     def forward(self):
        ...         return torch.jit.is_scripting()
        >>> Model()(), torch.jit.script(Model())()
        (False, True)
    """
    return getattr(_calls, "depth", 0) > 0


@functools.cache
def _error_class(kind: Any) -> Any:
    return type(kind.__name__, (rl.jit.Error, kind), {"__module__": rl.jit.Error.__module__})


class ScriptModule(rl.nn.Module):
    """A module that was scripted or traced: it runs as Python, with the methods that PyTorch gives it.

    Older code derives its modules from this class.

    Args:
        *args (object): as for nn.Module.

    Example:
        >>> model = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        >>> isinstance(model, torch.jit.ScriptModule), model.original_name
        (True, 'Sequential')
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        inside = getattr(_calls, "depth", 0)
        _calls.depth = inside + (getattr(type(self), "_scripted_as", None) is RecursiveScriptModule)
        try:
            return super().__call__(*args, **kwargs)
        except (
            _PYTHONS
        ) as error:  # programs catch torch.jit.Error, or the class of the code itself: it is both
            if isinstance(error, RuntimeError) or "_scripted_as" not in type(self).__dict__:
                raise
            kind: Any = type(error)
            made = _error_class(kind)(*error.args)
            made.__dict__.update(error.__dict__)
            raise made.with_traceback(error.__traceback__) from error.__cause__
        finally:
            _calls.depth = inside

    @property
    def original_name(self) -> Any:
        """The name of the class that was scripted."""
        return type(_plain(self)).__name__

    @property
    def code(self) -> Any:
        """The source of forward."""
        try:
            return textwrap.dedent(inspect.getsource(type(_plain(self)).forward))
        except OSError:
            return ""

    @property
    def graph(self) -> Any:
        """The operations of forward, as torch.fx sees them."""
        return rl.fx.symbolic_trace(_plain(self)).graph

    inlined_graph = graph

    def save(self, f: Any, **kwargs: Any) -> None:
        """Saves the whole module, as jit.save does.

        Args:
            f (str, path or file): where to.
            **kwargs (object): as for jit.save.
        """
        save(self, f, **kwargs)

    def save_to_buffer(self) -> Any:
        """The bytes that save() would write."""
        buffer = io.BytesIO()
        save(self, buffer)
        return buffer.getvalue()

    def __reduce_ex__(self, protocol: Any) -> Any:
        if "_scripted_as" not in type(self).__dict__:
            return super().__reduce_ex__(protocol)
        return scripted, (_plain(self), type(self).__dict__["_scripted_as"])


class RecursiveScriptModule(ScriptModule):
    """What jit.script returns for a module: the same parameters, and the methods of a ScriptModule.

    Args:
        *args (object): it is made by jit.script.

    Example:
        >>> type(torch.jit.script(nn.ReLU())).__name__
        'RecursiveScriptModule'
    """

    def extra_repr(self) -> Any:
        """The name of the class that was scripted."""
        return f"original_name={self.original_name}"


class ArchivedModule(RecursiveScriptModule):
    """What jit.load reads from a TorchScript archive: weights, and no code to run."""

    original_name = ""

    def _get_name(self) -> Any:
        return "RecursiveScriptModule"

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{self.original_name or 'this module'} comes from a TorchScript archive, whose program "
            "rushlight cannot run. Its weights are here: make the model in Python and give it "
            "load_state_dict(this.state_dict())"
        )

    def extra_repr(self) -> Any:
        return f"original_name={self.original_name}" if self.original_name else ""


class TracedModule(ScriptModule):
    """What PyTorch's jit.trace used to return; the base of TopLevelTracedModule.

    Args:
        *args (object): it is made by jit.trace.

    Example:
        >>> isinstance(torch.jit.trace(nn.ReLU(), torch.ones(1)), torch.jit.TracedModule)
        True
    """

    extra_repr = RecursiveScriptModule.extra_repr


class TopLevelTracedModule(TracedModule):
    """What jit.trace returns for a module.

    Args:
        *args (object): it is made by jit.trace.

    Example:
        >>> type(torch.jit.trace(nn.ReLU(), torch.ones(1))).__name__
        'TopLevelTracedModule'
    """


@functools.cache
def _kind(base: Any, cls: Any) -> Any:
    return type(
        base.__name__, (base, cls), {"_scripted_as": base, "_plain_class": cls, "__module__": base.__module__}
    )


def scripted(module: Module, base: type[ScriptModule] = RecursiveScriptModule) -> ScriptModule:
    """The same module, parameters and all, as an instance of `base` too; what is scripted already stays."""
    if isinstance(module, ScriptModule):
        return module
    if any(
        isinstance(t, UninitializedTensorMixin)
        for t in (*module._parameters.values(), *module._buffers.values())
    ):
        raise RuntimeError(
            f"'{type(module).__name__}' has uninitialized parameters. Did you forget to run a forward pass?"
        )
    new: ScriptModule = object.__new__(_kind(base, type(module)))  # type: ignore[arg-type]  # metaclasses hash
    new.__dict__.update(module.__dict__)
    return new


def _plain(module: rl.nn.Module) -> Any:
    """The module that was scripted."""
    cls = getattr(type(module), "_plain_class", None)
    if cls is None:
        return module
    new = object.__new__(cls)
    new.__dict__.update(module.__dict__)
    return new


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Saves a whole module; jit.load reads it where its classes have been imported.

    Args:
        m (nn.Module): the module, scripted or not.
        f (str, path or file): where to.

    Example:
        >>> torch.jit.save(torch.jit.script(nn.Linear(2, 1)), "model.pt")
        >>> torch.jit.load("model.pt")(torch.ones(3, 2)).shape
        torch.Size([3, 1])
    """
    if not isinstance(m, rl.nn.Module):
        raise TypeError(
            f"jit.save: expected a module, got {type(m).__name__}; a function is saved as Python source"
        )
    rl.save({"rushlight.jit": 1, "module": _plain(m), "extra_files": dict(_extra_files or {})}, f)


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Loads a module. Nothing in the file is run.

    Of what jit.save wrote, the classes must have been imported by the program. A TorchScript archive of PyTorch
    gives a module with the weights, for state_dict(), that cannot be called.

    Args:
        f (str, path or file): where from.
        map_location (object): as for torch.load. Default: None

    Example:
        >>> torch.jit.save(nn.Linear(2, 1), "model.pt")
        >>> sorted(torch.jit.load("model.pt").state_dict())
        ['bias', 'weight']
    """
    if isinstance(f, str | os.PathLike):
        if not os.path.isfile(f):
            raise ValueError(
                f"The provided filename {f} {'is a directory' if os.path.isdir(f) else 'does not exist'}"
            )
        with open(f, "rb") as opened:
            return _load(opened, os.fspath(f), map_location, _extra_files)
    return _load(f, getattr(f, "name", None) or type(f).__name__, map_location, _extra_files)


def _load(f: Any, name: str, map_location: Any, extra_files: Any) -> Any:
    from rushlight.jit import _archive
    from rushlight.serialization._load import storages_of
    from rushlight.serialization._read import Reader, run_safely
    from rushlight.serialization._vm import globals_of
    from rushlight.serialization._zip import ZipReader

    archive = ZipReader(f, name)
    reader = Reader(map_location, True, pickle, {})
    if "constants.pkl" in archive:
        for key in extra_files or {}:
            entry = f"extra/{key}"
            extra_files[key] = archive.read(entry) if entry in archive else extra_files[key]
        return _archive.read(archive, reader)
    data = archive.read("data.pkl")
    hooks = _archive.ModuleHooks(len(data), lambda: globals_of(data))
    saved, _ = run_safely(hooks, data, 0, storages_of(archive, reader))
    if not (
        isinstance(saved, dict) and "rushlight.jit" in saved and isinstance(saved.get("module"), rl.nn.Module)
    ):
        raise RuntimeError(f"{name} was not written by jit.save; read it with load")
    for key in extra_files or {}:
        extra_files[key] = (saved.get("extra_files") or {}).get(key, "")
    return scripted(saved["module"])
