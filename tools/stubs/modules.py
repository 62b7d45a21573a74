"""Stubs of whole modules: what a name of the module is found to be says how it is written down."""

import ast
import functools
import inspect
import pathlib
import sys
import types
import warnings

from stubs import ops
from stubs.functions import definition, documentation, signature_of

IMPORTS = '''import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

import rushlight.return_types as _return_types
from rushlight._C import Tensor as Tensor
from rushlight.utils.hooks import RemovableHandle
from rushlight._C import (
    _bool, _bytes, _complex, _device, _Device, _dtype, _DType, _float, _Generator, _int, _Ints, _layout, _memory_format, _Node,
    _Number, _object, _Shape, _str, _Tensors,
)

'''  # fmt: skip
BINARY = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
    "divmod",
)
# What every object has, and what the operators below are.
UNWRITTEN = {"__init_subclass__", "__repr__", "__format__", "__reduce_ex__", "__setstate__", "__dir__"} | {
    f"__{form}{name}__" for name in BINARY for form in ("", "r", "i")
}
# What a module imports for itself, which the stub imports too where it needs it.
HELPERS = {
    "functions_of", "rl", "Tensor", "annotations", "TYPE_CHECKING", "Any", "Callable", "Iterable", "Iterator", "Literal",
    "Mapping", "Sequence", "overload",
}  # fmt: skip
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def targets_of(assignment):
    """What an assignment assigns to, without tuples around it."""
    for target in assignment.targets:
        yield from target.elts if isinstance(target, ast.Tuple) else (target,)


@functools.cache
def defined_in(path):
    """The names of functions and classes that a file defines at its top level, and so an import can find them."""
    tree = ast.parse(pathlib.Path(path).read_text())
    found = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    assigned = {
        t.id for n in tree.body if isinstance(n, ast.Assign) for t in targets_of(n) if isinstance(t, ast.Name)
    }
    return found - assigned


def file_of(value):
    """The file of a function or class. __module__ says where PyTorch has it, code where it is."""
    parts = vars(value).values() if isinstance(value, type) else (value,)
    for part in parts:
        code = getattr(inspect.unwrap(part) if callable(part) else part, "__code__", None)
        if code is not None and pathlib.Path(code.co_filename).suffix == ".py":
            return pathlib.Path(code.co_filename)
    module = sys.modules.get(getattr(value, "__module__", None))
    return pathlib.Path(module.__file__) if getattr(module, "__file__", None) else None


def home_of(value, name, root):
    """The module whose file defines a function or class under this name, or None."""
    path = file_of(value)
    if path is None:
        return None
    if path.suffix != ".py" or root not in path.parents or name not in defined_in(path):
        return None
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def constant(name, value):
    kind = type(value).__name__
    if kind in ("dtype", "layout", "memory_format"):
        return f"{name}: _{kind}\n"
    if kind in ("int", "float", "bool", "str"):
        return f"{name}: _{kind}\n"
    if kind == "Generator":
        return f"{name}: _Generator\n"
    return f"{name}: None\n" if value is None else f"{name}: Any\n"


def entry(module, name, value, root, core, lazy_home=None):
    """What the stub says of one name of a module."""
    if isinstance(value, types.ModuleType):
        package, _, last = value.__name__.rpartition(".")
        return f"from {package} import {last} as {name}\n" if package else f"import {last} as {name}\n"
    if isinstance(value, (core.Op, core.OpMethod)):
        found = ops.overloads(value, inplace=isinstance(value, core.OpMethod))
        return definition(name, found, documentation(value, name))
    if isinstance(value, type) and vars(core).get(name) is value:
        return f"from rushlight._C import {name} as {name}\n"
    if isinstance(value, type) or inspect.isfunction(value):
        composed = getattr(value, "_differentiable", None) is not None
        home = None if composed else home_of(value, name, root)
        if home and home != module:
            return f"from {home} import {name} as {name}\n"
        if lazy_home and not inspect.isfunction(value):
            return f"from {lazy_home} import {name} as {name}\n"
        if inspect.isfunction(value):
            return definition(name, [signature_of(value)], documentation(value, name))
        return f"{name}: type[{'Tensor' if hasattr(value, 'dtype') else 'Any'}]\n"
    return f"from {lazy_home} import {name} as {name}\n" if lazy_home else constant(name, value)


def is_shown(module, name, root):
    """Whether the stub of a module has this name: its public ones, and functions that other modules of ours call."""
    if name.startswith("_"):
        value = None if name.startswith("__") else getattr(module, name, None)
        return inspect.isfunction(value) and home_of(value, name, root) is not None
    return name not in HELPERS


def module_stub(module, names, root, core, lazy=lambda name: None):
    """The stub of a module that has these names at run time. `lazy(name)`: the module that a name comes from later."""
    lines = [f'"""{(module.__doc__ or "").strip()}"""\n\n', IMPORTS]
    for name in names:
        if name == "Tensor":
            continue
        try:
            value = getattr(module, name)
        except (AttributeError, ImportError):  # a module that needs what is not installed
            continue
        lines.append(entry(module.__name__, name, value, root, core, lazy(name)))
    return "".join(grouped(lines))


def grouped(lines):
    """The lines with one import for all names of a module, where the first of them stood."""
    names, order = {}, []
    for line in lines:
        home, _, name = line.partition(" import ")
        if home.startswith("from rushlight.") and "\n" not in name[:-1]:
            if home not in names:
                order.append(home)
            names.setdefault(home, []).append(name[:-1])
        else:
            order.append(line)
    return [f"{line} import {', '.join(names[line])}\n" if line in names else line for line in order]


def return_types_stub(core):
    """The classes of named results."""
    lines = [
        "from typing import NamedTuple\n\nfrom rushlight._C import Tensor, _float, _int, _Number, _Shape, _bool\n"
    ]
    seen = set()
    for name, op in sorted(core.ops.items()):
        names = getattr(op, "_results", None)
        letters = [r for _, r in getattr(op, "_types", ()) if names and len(r) == len(names.split(","))]
        own = op._op_name.replace(".", "_") if names else name
        if not letters or own in seen:
            continue
        seen.add(own)
        fields = zip((f.strip() for f in names.split(",")), letters[0])
        lines.append(f"\nclass {own}(NamedTuple):\n")
        lines += [f"    {field}: {ops.RESULTS[letter.lower()]}\n" for field, letter in fields]
    return "".join(lines)


def tensor_methods(core, written):
    """The methods of Tensor that `written`, the hand-made part, does not have."""
    lines = []
    for name, value in sorted(vars(core.Tensor).items()):
        if name in written or not name.isidentifier() or name in UNWRITTEN:
            continue
        if isinstance(value, core.OpMethod):
            found = ops.overloads(value, method=True, inplace=name.endswith("_") and not name.endswith("__"))
            lines.append(definition(name, found, documentation(value, name), "    "))
        elif isinstance(value, (staticmethod, classmethod)):
            kind = type(value).__name__
            lines.append(f"    @{kind}\n    def {name}(*args: Any, **kwargs: Any) -> Any: ...\n")
        elif inspect.isfunction(value):
            if name in (
                "__init_subclass__",
                "__repr__",
                "__format__",
                "__reduce_ex__",
                "__setstate__",
                "__dir__",
            ):
                continue
            lines.append(
                definition(name, [signature_of(value, method=True)], documentation(value, name), "    ")
            )
        elif inspect.isdatadescriptor(value) and not name.startswith("__"):
            lines.append(f"    @property\n    def {name}(self) -> {observed(core, name)}: ...\n")
        elif type(value).__name__ == "method_descriptor":
            lines.append(f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...\n")
    own = vars(core.Tensor)
    for form in ("", "r", "i"):
        result = "Self" if form == "i" else "Tensor"
        lines += [
            f"    def __{form}{name}__(self, other: Tensor | _Number) -> {'tuple[Tensor, Tensor]' if name == 'divmod' else result}: ...\n"
            for name in BINARY
            if f"__{form}{name}__" in own
        ]
    lines += [
        f"    def __{name}__(self, other: Any) -> Tensor: ...{'  # type: ignore[override]' if name in ('eq', 'ne') else ''}\n"
        for name in COMPARISONS
    ]
    lines += [f"    def __{name}__(self) -> Tensor: ...\n" for name in ("neg", "pos", "invert", "abs")]
    return "".join(lines)


def observed(core, name):
    """The type of an attribute, as a tensor has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are there for old programs only
        try:
            value = getattr(core.ops["zeros"](1), name)
        except Exception:
            return "Any"
    kind = type(value).__name__
    return f"_{kind}" if kind in ("int", "bool", "str", "float") else "Any"
