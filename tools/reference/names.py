"""The public names of the library, by namespace: what the reference shows, and the tests of docstrings ask for."""

import importlib
import inspect
import types

import rushlight

# Namespaces with a page of their own, in the order of the index. "torch" is the package itself.
NAMESPACES = (
    "torch", "Tensor",
    "autograd", "autograd.functional", "autograd.graph", "autograd.forward_ad", "func",
    "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations",
    "nn.utils.prune", "nn.attention", "nn.attention.bias", "nn.attention.flex_attention", "nn.grad", "nn.parallel",
    "optim", "optim.lr_scheduler", "optim.swa_utils",
    "utils.data", "utils.checkpoint",
    "linalg", "fft", "special", "signal.windows", "sparse", "nested", "masked",
    "distributions", "distributions.constraints",
    "amp", "jit", "fx", "profiler", "hub", "random", "serialization", "library", "overrides", "testing", "futures",
    "multiprocessing", "distributed",
)  # fmt: skip
# Public names that a module does not list, since PyTorch's does not.
ALSO = {
    "autograd": ("detect_anomaly", "gradcheck", "gradgradcheck", "set_detect_anomaly", "set_multithreading_enabled",
                 "set_site_recording", "site_recording_enabled", "why_no_grad"),
}  # fmt: skip
# Classes of the extension that programs meet but never name; PyTorch has them elsewhere or not at all.
UNNAMED = {"Op", "OpFlags", "OpMethod", "OpTraits", "FunctionNode", "Node", "SavedTensor"}


def space_of(namespace):
    """The module (or the class Tensor) that has the names of a namespace."""
    if namespace == "torch":
        return rushlight
    if namespace == "Tensor":
        return rushlight.Tensor
    return importlib.import_module(f"rushlight.{namespace}")


def names_of(namespace):
    """{name: object} of the callables that a namespace offers."""
    space = space_of(namespace)
    listed = getattr(space, "__all__", None)
    found = {}
    for name in (*(listed or dir(space)), *ALSO.get(namespace, ())):
        if name.startswith("_") or (namespace == "torch" and name in UNNAMED):
            continue
        value = getattr(space, name)
        if not callable(value) or isinstance(value, types.ModuleType | rushlight.dtype) or _is_absent(value):
            continue
        if (getattr(value, "__module__", None) or "").startswith("multiprocessing."):  # Python's own
            continue
        if not listed and not _belongs(space, name, value):
            continue
        found[name] = value
    return dict(sorted(found.items(), key=lambda item: (item[0].lower(), item[0])))


def _is_absent(value):
    """Whether a class only stands for one that is not there."""
    return isinstance(value, type) and vars(value).get("_absent", False)


def _belongs(space, name, value):
    """Whether a name of a module without __all__ is its own, not something that it imported."""
    if space is rushlight or space is rushlight.Tensor:
        return True
    if name == "Tensor" or getattr(value, "__module__", None) == "typing":
        return False
    home = getattr(value, "__module__", None) or ""
    return home.startswith("rushlight")


def attributes_of(cls):
    """{name: descriptor} of the public attributes of a class that are no methods."""
    found = {name: inspect.getattr_static(cls, name) for name in dir(cls) if not name.startswith("_")}
    return {name: value for name, value in found.items() if inspect.isdatadescriptor(value)}


def methods_of(cls):
    """{name: function} of the public methods that a class defines itself."""
    found = {}
    for name, value in vars(cls).items():
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        own = getattr(value, "__qualname__", "").rpartition(".")[0].endswith(cls.__name__)
        if not name.startswith("_") and inspect.isroutine(value) and own:
            found[name] = value
    return found


def is_derived(value):
    """Whether a callable is the in-place form that a registration derives: one line documents it."""
    return bool(getattr(value, "_form", None) == "inplace")
