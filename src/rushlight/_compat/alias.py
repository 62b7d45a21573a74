"""install_as_torch(): `import torch` gives rushlight, `import torchvision` rushlight.vision, and so on.

A finder at the front of sys.meta_path answers for those names with our own modules, which are then one object
under both names. An installed PyTorch is left as it is on disk, and nothing of it is loaded.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

_ROOTS = {
    "torch": "rushlight",
    "torchvision": "rushlight.vision",
    "functorch": "rushlight.functorch",
    "visdom": "rushlight.visdom",
}
TORCH_VERSION = "2.13.0"
TORCHVISION_VERSION = "0.28.0"


def _ours(name):
    """The name of our module that stands for a module of PyTorch; None for others."""
    head, dot, rest = name.partition(".")
    return _ROOTS[head] + dot + rest if head in _ROOTS else None


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        ours = _ours(fullname)
        if ours is None:
            return None
        if not _exists(ours):
            # importlib.util.find_spec only asks whether a module is there: no. An import statement gets the reason. A
            # torchvision that may be installed is built for PyTorch's binaries: it must not be loaded on top of ours.
            asked = sys._getframe(2).f_code.co_name == "_find_and_load_unlocked"
            if asked and (fullname.startswith("torch.") or fullname in _ROOTS):
                from .._core.unsupported import no_module

                raise no_module(fullname)
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(ours), is_package=True)

    def find_distributions(self, context=None):
        """Lets importlib.metadata.version("torch") and pkg_resources-like checks find a version."""
        name = getattr(context, "name", None)
        versions = {"torch": TORCH_VERSION, "torchvision": TORCHVISION_VERSION}
        for known, version in versions.items():
            if (name is None or name.lower() == known) and _exists(_ROOTS[known]):
                yield _distribution(known, version)


def _exists(name):
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


class _Loader(importlib.abc.Loader):
    """Gives an existing module under another name."""

    def __init__(self, ours):
        self.ours = ours

    def create_module(self, spec):
        module = importlib.import_module(self.ours)
        self.own_spec = module.__spec__  # the import system is about to overwrite it
        return module

    def exec_module(self, module):
        module.__spec__ = self.own_spec


def _distribution(name, version):
    import importlib.metadata

    class Distribution(importlib.metadata.Distribution):
        def read_text(self, filename):
            if filename == "METADATA":
                return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: by rushlight\n"
            return f"{name}\n" if filename == "top_level.txt" else None

        def locate_file(self, path):
            import pathlib

            return pathlib.Path(__file__).parents[1] / path

    return Distribution()


_finder = _Finder()


def _address(old, new):
    """Gives tensors, layers and the like the other address: programs compare type(x).__module__ with "torch"."""
    from .. import _C

    kinds = [v for v in vars(_C).values() if isinstance(v, type)]
    nn = sys.modules.get("rushlight.nn")
    if nn is not None and hasattr(nn, "Buffer"):  # not while it is being loaded
        kinds += [nn.Parameter, nn.Buffer]
        layers = [nn.Module]
        while layers:
            layer = layers.pop()
            kinds.append(layer)
            layers += [
                k for k in layer.__subclasses__() if k.__module__.split(".")[0] in ("torch", "rushlight")
            ]
    for kind in kinds:
        module = kind.__module__
        if module == old + ".vision" or module.startswith(old + ".vision."):
            continue  # torchvision's classes are known by ours
        if module == old or module.startswith(old + "."):
            address = new + module[len(old) :]
            try:
                kind.__module__ = address
            except TypeError:  # a type that can't be changed
                continue
            # Who evaluates a class's annotations looks its module up, without an import.
            if new in _ROOTS and address != new and module in sys.modules:
                sys.modules.setdefault(address, sys.modules[module])


class _Names(str):
    """The package's name, which equals "torch" too: programs compare torch.__name__ with it."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return str.__eq__(self, other) or other == "torch"

    def __ne__(self, other):
        return not self == other


def _package_name(name):
    sys.modules["rushlight"].__name__ = name


def _fill():
    """Loads what these modules would load when asked: programs go through vars(torch.optim)."""
    for name in ("rushlight.optim", "rushlight.nn.functional"):
        module = sys.modules.get(name)
        for member in getattr(module, "__all__", ()):
            getattr(module, member)


def renew():
    """After more of the library was loaded: its classes get their address too, and lazy modules their names."""
    if is_installed():
        _address("rushlight", "torch")
        _fill()


def is_installed():
    return _finder in sys.meta_path


def install_as_torch() -> None:
    """From here on, `import torch` in this process means rushlight.

    Raises:
        RuntimeError: PyTorch itself is loaded.

    Example:
        >>> "install_as_torch" in dir(torch)
        True
    """
    if is_installed():
        return
    loaded = sys.modules.get("torch")
    if loaded is not None and loaded is not sys.modules.get("rushlight"):
        raise RuntimeError(
            f"PyTorch itself is already imported (from {getattr(loaded, '__file__', 'somewhere')}): call "
            "rushlight.install_as_torch() before anything imports torch, or run `python -m rushlight "
            "script.py`"
        )
    sys.meta_path.insert(0, _finder)
    _address("rushlight", "torch")
    _package_name(_Names("rushlight"))
    _fill()


def follow_environment():
    """RUSHLIGHT_AS_TORCH=1 at `import rushlight`; a process that runs PyTorch itself already is left alone."""
    if sys.modules.get("torch") is None:
        install_as_torch()


def hook_folder():
    """The folder that makes Python processes call install_as_torch() by themselves: on PYTHONPATH, with
    RUSHLIGHT_AS_TORCH=1 in the environment."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")


def pass_on():
    """Sets the environment so that processes started from this one (workers, launchers) use rushlight too."""
    os.environ["RUSHLIGHT_AS_TORCH"] = "1"
    paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    if hook_folder() not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([hook_folder(), *paths])


def uninstall_as_torch():
    """Takes back what install_as_torch did; modules that were imported under those names are forgotten.

    Example:
        >>> torch.uninstall_as_torch()
    """
    if not is_installed():
        return
    sys.meta_path.remove(_finder)
    _address("torch", "rushlight")
    _package_name("rushlight")
    for name in [n for n in sys.modules if n.split(".")[0] in _ROOTS]:
        ours = _ours(name)
        if sys.modules[name] is sys.modules.get(ours):
            del sys.modules[name]
