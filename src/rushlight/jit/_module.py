"""Modules that were scripted or traced, and their files."""

import os

import rushlight as rl


class _KindOfModule(type(rl.nn.Module)):
    """Scripted modules are plain modules here, so no module is an instance of these classes by itself."""


class ScriptModule(rl.nn.Module, metaclass=_KindOfModule):
    """A base class that older code derives its scripted modules from."""

    def save(self, f, **kwargs):
        save(self, f)


class RecursiveScriptModule(ScriptModule):
    """What PyTorch's jit.script returns for a module."""


class TracedModule(ScriptModule):
    """What PyTorch's jit.trace used to return."""


class TopLevelTracedModule(ScriptModule):
    """What PyTorch's jit.trace returns for a module."""


def save(m, f, _extra_files=None):
    """Saves the whole module; jit.load reads it where its classes can be imported."""
    rl.save({"rushlight.jit": 1, "module": m, "extra_files": dict(_extra_files or {})}, f)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Loads what jit.save wrote. It holds Python classes, so load only files that you trust."""
    if isinstance(f, (str, os.PathLike)) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    saved = rl.load(f, map_location=map_location, weights_only=False)
    if not (isinstance(saved, dict) and "rushlight.jit" in saved):
        raise RuntimeError("the file was not written by jit.save; read it with load")
    for name in _extra_files or {}:
        _extra_files[name] = saved["extra_files"].get(name, "")
    return saved["module"]
