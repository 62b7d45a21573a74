"""Names of PyTorch that rushlight lacks: what is said when one is asked for, and placeholders that say it on use.

A placeholder lets `from torch.x import Y` succeed where programs import a name that they may never use; the
error comes when it is called, subclassed aside, and says the same as the one for a missing name.
"""

import sys
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import

# What a part of PyTorch is for, and what to use instead here. The longest matching prefix speaks.
_PARTS = {
    "ao": ("quantization of models", "half precision: model.bfloat16(), or amp.autocast"),
    "classes": ("C++ classes registered with TorchScript", "a Python class"),
    "cuda": ("CUDA", "the CPU: check torch.cuda.is_available(), which is False"),
    "cudnn": ("cuDNN", "the CPU's own kernels, which need no choice"),
    "distributed.checkpoint": ("sharded checkpoints", "torch.save and torch.load"),
    "distributed.elastic": ("the launcher of elastic jobs", "multiprocessing.spawn"),
    "distributed.fsdp": ("training with sharded parameters", "nn.parallel.DistributedDataParallel"),
    "distributed.pipelining": ("pipeline parallel training", "nn.parallel.DistributedDataParallel"),
    "distributed.rpc": ("remote procedure calls between processes", "multiprocessing"),
    "distributed.tensor": ("tensors sharded over processes", "nn.parallel.DistributedDataParallel"),
    "distributed": ("communication between processes", "the collectives of torch.distributed"),
    "export": ("export of graphs", "torch.save for weights, or torch.fx for a graph in Python"),
    "_export": ("export of graphs", "torch.save for weights, or torch.fx for a graph in Python"),
    "fx.experimental": ("experimental passes over graphs", "torch.fx"),
    "fx.passes": ("passes over graphs", "a loop over graph.nodes of torch.fx"),
    "_inductor": ("the compiler behind torch.compile", "torch.compile, which keeps the code Python"),
    "_dynamo": ("the tracer behind torch.compile", "torch.compile, which keeps the code Python"),
    "_higher_order_ops": ("operators of the compiler", "plain Python control flow"),
    "mps": ("Apple's GPUs", "the CPU"),
    "mtia": ("an accelerator", "the CPU"),
    "onnx": ("export to ONNX", "torch.save for the weights"),
    "quantization": ("quantization of models", "half precision: model.bfloat16(), or amp.autocast"),
    "nn.quantized": ("quantized layers", "the layers of torch.nn"),
    "nn.intrinsic": ("fused layers for quantization", "the layers of torch.nn"),
    "nn.qat": ("layers for training with quantization", "the layers of torch.nn"),
    "utils.bundled_inputs": ("examples stored in TorchScript files", "a file of your own"),
    "utils.cpp_extension": ("building C++ and CUDA extensions", "autograd.Function in Python"),
    "package": ("archives of code and weights", "torch.save for the weights, beside the code"),
    "utils.mobile_optimizer": ("TorchScript for phones", "the model itself"),
    "vision": ("images: data sets, transforms, models", "pip install 'rushlight[vision]'"),
    "xpu": ("Intel's GPUs", "the CPU"),
}


def _path(name):
    """rushlight.nn.functional -> nn.functional; torch likewise."""
    head, _, rest = name.partition(".")
    return rest if head in ("rushlight", "torch") else name


def _part(path):
    while path:
        if path in _PARTS:
            return _PARTS[path]
        path = path.rpartition(".")[0]
    return None


def explain(path: str, known: Any = (), kind: str = "name") -> str:
    """The sentence for a missing name: `path` below the package, `known` the names of its module."""
    text = f"torch.{path}: rushlight has no such {kind}"
    part = _part(path)
    if part:
        return f"{text}. It belongs to {part[0]}; use instead: {part[1]}"
    import difflib

    last = path.rpartition(".")[2]
    near = difflib.get_close_matches(last, [n for n in known if not n.startswith("_")], 3, 0.75)
    if near:
        return f"{text}. Near it: {', '.join(near)}"
    return f"{text}. docs/compatibility.md says what is there; if it is a function, its formula can be composed of others"


def _importing(frame):
    """Whether the frame stands at `from x import name`."""
    import opcode

    code, at = frame.f_code.co_code, frame.f_lasti
    return 0 <= at < len(code) and code[at] == opcode.opmap["IMPORT_FROM"]


def no_name(module: str, name: str, depth: int = 2) -> AttributeError | ImportError:
    """The error for a name that a module of ours lacks: AttributeError, or ImportError for `from module import name`."""
    # Asked for by Python: `from module import name` looks for __path__, each time.
    if name[:2] == "__" == name[-2:]:
        return AttributeError(f"module '{module}' has no attribute '{name}'", name=name)
    known = vars(sys.modules[module]) if module in sys.modules else ()
    base = _path(module) if "." in module else ""
    message = explain(f"{base}.{name}" if base else name, known)
    if not name.startswith("__") and _importing(sys._getframe(depth)):
        return ImportError(f"{message} (from torch{'.' + base if base else ''} import {name})", name=name)
    return AttributeError(f"module '{module}' has no attribute '{name}'. {message}", name=name)


def unsupported_attribute(module: str, helpers: "str | None" = None) -> "Callable[[str], Any]":
    """A `__getattr__` for a module: `__getattr__ = unsupported_attribute(__name__)`. `helpers` names a module with further names,
    imported when a program asks for one that is not there.
    """

    def __getattr__(name):
        if name[:2] == "__" == name[-2:]:
            raise no_name(module, name)
        import importlib

        from rushlight._compat.placeholder_modules import MODULES

        if f"{_path(module)}.{name}" in MODULES:
            return importlib.import_module(f"{module}.{name}")
        if helpers and not name.startswith("__"):
            found = vars(importlib.import_module(helpers))
            if name in found:
                return found[name]
        raise no_name(module, name)

    return __getattr__


def submodules(module: str) -> "Callable[[str], Any]":
    """A `__getattr__` for a package whose modules are loaded when they are asked for."""
    missing = unsupported_attribute(module)

    def __getattr__(name):
        import importlib
        import importlib.util

        if not name.startswith("__") and importlib.util.find_spec(f"{module}.{name}") is not None:
            return importlib.import_module(f"{module}.{name}")
        return missing(name)

    return __getattr__


def no_module(name):
    """The error for `import torch.x` where there is no such module."""
    if name.partition(".")[0] not in (
        "rushlight",
        "torch",
    ):  # torchvision: one built for PyTorch must not be loaded
        text = f"No module named {name!r}: rushlight stands for torch in this process, and has no {name} of its own"
        return ModuleNotFoundError(text, name=name)
    return ModuleNotFoundError(explain(_path(name), kind="module"), name=name)


def placeholder(path: Any) -> Any:
    """A class that stands for a missing one: it can be imported, named in annotations, asked with isinstance (nothing is
    one) and derived from; making an instance or calling it raises NotImplementedError with the explanation."""
    name = path.rpartition(".")[2]

    def refuse(cls, *args, **kwargs):
        raise NotImplementedError(explain(path))

    space = {"__new__": refuse, "__doc__": explain(path), "__module__": "rushlight." + path[: -len(name) - 1]}
    space["__class_getitem__"] = classmethod(lambda cls, item: cls)
    space["_absent"] = True
    return type(name, (), space)


def add_placeholders(space: dict[str, Any], names: str) -> None:
    """Puts placeholders for missing names into a module's namespace."""
    home = _path(space["__name__"])
    space.update({name: placeholder(f"{home}.{name}") for name in names.split()})


def unchanged(function):
    """A decorator that changes nothing, for placeholders of decorators."""
    return function


def block(*args, **kwargs):
    """A block that changes nothing, for placeholders of context managers."""
    import contextlib

    return contextlib.nullcontext()


def nothing(*args, **kwargs):
    return None


def never(*args, **kwargs):
    return False


def always(*args, **kwargs):
    return True


def truth(value):
    return bool(value)
