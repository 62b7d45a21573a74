"""Modules that were scripted or traced, and their files."""

import os

import rushlight as rl


class _KindOfModule(type):
    """Scripted modules are plain modules here, so no module is an instance of these classes by itself."""


class ScriptModule(rl.nn.Module, metaclass=_KindOfModule):
    """A base class that older code derives its scripted modules from."""

    def save(self, f, **kwargs):
        save(self, f)


class RecursiveScriptModule(ScriptModule):
    """What PyTorch's jit.script returns for a module; here, what jit.load reads from a TorchScript archive."""

    def forward(self, *args, **kwargs):
        raise NotImplementedError(
            f"{self.__dict__.get('original_name', 'this module')} comes from a TorchScript archive, whose program "
            "rushlight cannot run. Its weights are here: make the model in Python and give it "
            "load_state_dict(this.state_dict())"
        )

    def extra_repr(self):
        name = self.__dict__.get("original_name")
        return f"original_name={name}" if name else ""


class TracedModule(ScriptModule):
    """What PyTorch's jit.trace used to return."""


class TopLevelTracedModule(ScriptModule):
    """What PyTorch's jit.trace returns for a module."""


def save(m, f, _extra_files=None):
    """Saves the whole module; jit.load reads it where its classes have been imported."""
    if not isinstance(m, rl.nn.Module):
        raise TypeError(
            f"jit.save: expected a module, got {type(m).__name__}; a function is saved as Python source"
        )
    rl.save({"rushlight.jit": 1, "module": m, "extra_files": dict(_extra_files or {})}, f)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Loads a module. Nothing in the file is run: of what jit.save wrote, the classes must have been imported by the
    program; of a TorchScript archive, the module has its weights (state_dict()) but cannot be called.
    """
    if isinstance(f, str | os.PathLike):
        if not os.path.isfile(f):
            raise ValueError(
                f"The provided filename {f} {'is a directory' if os.path.isdir(f) else 'does not exist'}"
            )
        with open(f, "rb") as opened:
            return _load(opened, os.fspath(f), map_location, _extra_files)
    return _load(f, getattr(f, "name", None) or type(f).__name__, map_location, _extra_files)


def _load(f, name, map_location, extra_files):
    from rushlight.jit import _archive
    from rushlight.serialization._load import storages_of
    from rushlight.serialization._read import Reader, run_safely
    from rushlight.serialization._vm import globals_of
    from rushlight.serialization._zip import ZipReader

    archive = ZipReader(f, name)
    reader = Reader(map_location, True, None, {})
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
    return saved["module"]
