"""hubconf.py: the file in a repository that makes its models."""

from __future__ import annotations

import ast
import contextlib
import os
import sys
from typing import Any

MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
# Packages that pip knows by another name than Python does.
_PIP_NAMES = {
    "cv2": "opencv-python", "PIL": "pillow", "yaml": "pyyaml", "sklearn": "scikit-learn", "skimage": "scikit-image",
    "bs4": "beautifulsoup4", "Crypto": "pycryptodome", "attr": "attrs", "dateutil": "python-dateutil",
    "git": "gitpython", "google.protobuf": "protobuf", "pkg_resources": "setuptools",
}  # fmt: skip


@contextlib.contextmanager
def hubconf(folder: Any) -> Any:
    """The module hubconf.py of a folder, which can import its neighbours while the block runs."""
    import importlib.util

    path = os.path.join(folder, MODULE_HUBCONF)
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"{folder} has no {MODULE_HUBCONF}, the file that lists a repository's models"
        )
    if "torch" not in sys.modules:
        # The repository's code says `import torch`.
        from rushlight._compat.alias import install_as_torch

        install_as_torch()
    _check_dependencies(_declared(path), folder)
    _forget_others(folder)
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        assert spec is not None and spec.loader is not None  # the file's name says how it is loaded
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except ModuleNotFoundError as e:
            if not e.name:
                raise
            raise ModuleNotFoundError(
                f"{folder} needs the module {e.name}, which is not installed: {_pip_line([e.name])}",
                name=e.name,
            ) from e
        _check_dependencies(getattr(module, VAR_DEPENDENCY, None) or [], folder)
        yield module
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def entry_points(module: Any) -> Any:
    return [n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("_")]


def entry(module: Any, model: str, folder: Any) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, model, None)
    if not callable(function):
        raise RuntimeError(
            f"Cannot find callable {model} in hubconf of {folder}; it has {', '.join(entry_points(module))}"
        )
    return function


def _declared(path: str) -> Any:
    """The list `dependencies = [...]` of a hubconf, read before its imports fail."""
    try:
        with open(path, encoding="utf-8") as f:
            body = ast.parse(f.read()).body
    except (SyntaxError, ValueError):
        return []  # running it says more
    for line in body:
        if isinstance(line, ast.Assign) and any(
            getattr(t, "id", None) == VAR_DEPENDENCY for t in line.targets
        ):
            with contextlib.suppress(ValueError):
                return [d for d in ast.literal_eval(line.value) if isinstance(d, str)]
    return []


def _check_dependencies(names: Any, folder: Any) -> None:
    missing = [name for name in names if not _is_there(name)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}; {_pip_line(missing)}")


def _is_there(name: str) -> Any:
    import importlib.util

    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _pip_line(names: Any) -> Any:
    return "pip install " + " ".join(
        dict.fromkeys(_PIP_NAMES.get(n, n.split(".")[0].replace("_", "-")) for n in names)
    )


_used_folders: set[Any] = set()


def _forget_others(folder: Any) -> None:
    """Drops modules of other repositories whose names (models, utils ...) this one uses for its own."""
    _used_folders.add(os.path.join(folder, ""))
    own = {name.removesuffix(".py") for name in os.listdir(folder)}
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None) or ""
        if name.split(".")[0] in own and any(
            file.startswith(f) for f in _used_folders if f != folder + os.sep
        ):
            del sys.modules[name]
