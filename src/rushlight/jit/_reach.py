"""What a function can read: the objects that are reached from it, as facts that must hold in a replay.

A replay does not run the function. So whatever the function reads must be what it was when its tape was recorded, and
whatever it changes must be tensors, which a tape changes too. Both are seen in the objects that the function can reach:
its cells, the globals it names, its arguments, and their attributes and items. They are compared before and after a
recording, and before each replay. An object that cannot be looked into ends the attempt.
"""

from __future__ import annotations

import collections
import dis
import enum
import functools
import os
import types

import rushlight as rl
from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


MISSING = object()
LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
OPTIM = os.path.join(LIBRARY, "optim") + os.sep

_SIMPLE = (
    int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented), slice, range,
    rl.dtype, rl.device, rl.Size, type(rl.strided), type(rl.contiguous_format),
)  # fmt: skip
_CALLABLE = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
    types.GetSetDescriptorType, types.MemberDescriptorType, property, staticmethod, classmethod, type(rl.relu),
)  # fmt: skip
# Modules whose functions have no state, or none that the program changes.
_MODULES = {"math", "operator", "functools", "itertools", "typing", "collections", "builtins", "enum", "types",
            "contextlib", "dataclasses", "abc", "cmath", "string", "warnings", "numbers", "copy"}  # fmt: skip
_MODULE_STATE = ("training", "_parameters", "_buffers", "_modules", "forward", "_compiled_call_impl")


_MADE_IN_PYTHON = 1 << 9  # of classes: Py_TPFLAGS_HEAPTYPE


class Break(Exception):
    """The function cannot be replayed; the message says why."""


def in_library(code: types.CodeType) -> bool:
    return code.co_filename.startswith(LIBRARY)


def trusted(code: types.CodeType, table: dict[str, Any]) -> bool:
    """Whether code is the library's, or of a module whose functions have no state."""
    return in_library(code) or (table.get("__name__") or "").partition(".")[0] in _MODULES


@functools.lru_cache(4096)
def names_of(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """The names that code reads: (globals, all names and strings, which attributes go by)."""
    loads, names = set(), set(code.co_names)
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            loads.add(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, str):
            names.add(constant)
        elif isinstance(constant, types.CodeType):
            inner, more = names_of(constant)
            loads |= inner
            names |= more
    return frozenset(loads), frozenset(names)


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code, and that of what is defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


def is_simple(value: Any) -> bool:
    if type(value) in (tuple, frozenset):
        return all(is_simple(v) for v in value)
    return type(value) in _SIMPLE


class Reach:
    """Facts about all that is reached from some objects, by code that reads these names."""

    def __init__(
        self,
        names: frozenset[str],
        codes: dict[types.CodeType, Any],
        all_names: bool = False,
        reads_options: bool = False,
    ) -> None:
        self.names, self.codes, self.all_names = names, codes, all_names
        self.reads_options = reads_options  # of optimizers
        self.facts: list[tuple[Any, ...]] = []
        self.watched: list[
            tuple[Any, ...]
        ] = []  # what the function may read and must not change, while others may change it
        self.tensors: list[Any] = []
        self.stepped: list[Any] = []  # optimizers and schedulers, whose step() replays call
        self.known_codes: set[types.CodeType] = set()
        self.seen: dict[int, Any] = {}
        self.globals_read: collections.defaultdict[int, set[str]] = collections.defaultdict(set)
        self.globals_of: dict[int, dict[str, Any]] = {}

    def visit(self, o: Any) -> None:
        kind = type(o)
        if kind in _SIMPLE or id(o) in self.seen:
            return
        self.seen[id(o)] = o
        if isinstance(o, rl.Tensor):
            self.tensor(o)
        elif kind is types.FunctionType:
            self.function(o)
        elif isinstance(o, (*_CALLABLE, rl.Generator, enum.Enum)):
            pass
        elif kind is types.MethodType:
            self.visit(o.__self__)
            self.visit(o.__func__)
        elif kind is types.ModuleType:
            self.module(o)
        elif isinstance(o, type):
            self.class_(o)
        elif kind in (tuple, frozenset):
            for item in o:
                self.visit(item)
        elif kind is list:
            self.facts.append(("list", o, tuple(o)))
            for item in o:
                self.visit(item)
        elif kind in (dict, collections.OrderedDict, types.MappingProxyType):
            self.dictionary(o)
        elif kind is set:
            if not all(is_simple(item) for item in o):
                raise Break("a set of objects")
            self.facts.append(("set", o, frozenset(o)))
        elif kind is functools.partial:
            for part in (o.func, o.args, o.keywords):
                self.visit(part)
        else:
            self.instance(o)

    def tensor(self, t: Any) -> None:
        if type(t) not in (rl.Tensor, rl.nn.Parameter):
            raise Break(f"a tensor of class {type(t).__name__}")
        self.tensors.append(t)
        if t.__dict__:
            self.visit(t.__dict__)

    def dictionary(self, d: Any) -> None:
        if type(d) is types.MappingProxyType:
            raise Break("a mapping proxy")
        if not all(is_simple(key) for key in d):
            raise Break("a dictionary with objects for keys")
        self.facts.append(("dict", d, tuple(d), tuple(d.values()), True))
        for value in tuple(d.values()):
            self.visit(value)

    def function(self, f: Any) -> Any:
        code = f.__code__
        if trusted(code, f.__globals__):
            for cell in f.__closure__ or ():  # of decorators
                content = _content(cell)
                if isinstance(
                    content, types.FunctionType | types.MethodType | rl.nn.Module | functools.partial
                ):
                    self.visit(content)
            return
        self.known_codes.update(nested(code))
        self.facts.append(("function", f, code, f.__defaults__))
        self.visit(f.__defaults__)
        if f.__kwdefaults__:
            self.visit(f.__kwdefaults__)
        for cell in f.__closure__ or ():
            content = _content(cell)
            self.facts.append(("cell", cell, content))
            if content is not MISSING:
                self.visit(content)
        self.read_globals(f.__globals__, names_of(code)[0])

    def read_globals(self, table: dict[str, Any], loads: frozenset[str]) -> None:
        self.globals_of[id(table)] = table
        fresh = loads - self.globals_read[id(table)]
        self.globals_read[id(table)] |= fresh
        for name in sorted(fresh):
            if name in table:
                self.visit(table[name])

    def module(self, m: Any) -> None:
        top = m.__name__.partition(".")[0]
        if top in ("rushlight", "torch") or getattr(m, "__file__", None) and m.__file__.startswith(LIBRARY):
            return
        if top in _MODULES:
            return
        if top in ("numpy", "scipy") or getattr(m, "__spec__", None) is None or is_standard(top):
            raise Break(f"the module {top} is used")
        self.read_globals(vars(m), self.names & vars(m).keys())

    def class_(self, cls: type) -> None:
        for c in cls.__mro__:
            if c.__module__ == "builtins" or id(c) in self.seen and c is not cls:
                continue
            self.seen[id(c)] = c
            top = c.__module__.partition(".")[0]
            if top in ("rushlight", "torch", *_MODULES):
                continue
            self.facts.append(("class", c))
            for name, value in tuple(vars(c).items()):
                function = getattr(value, "__func__", value)
                if isinstance(value, property):
                    for part in (value.fget, value.fset):
                        if isinstance(part, types.FunctionType) and part.__code__ in self.codes:
                            self.visit(part)
                elif isinstance(function, types.FunctionType):
                    if function.__code__ in self.codes or hasattr(function, "__wrapped__"):
                        self.visit(function)
                elif self.reads(name) and not name.startswith("__"):
                    self.visit(value)

    def reads(self, name: str) -> bool:
        return self.all_names or name in self.names

    def instance(self, o: Any) -> None:
        cls = type(o)
        if isinstance(o, rl.optim.Optimizer):
            return self.optimizer(o)
        if isinstance(o, rl.optim.lr_scheduler.LRScheduler):
            self.stepped.append(o)
            return None
        if not _is_plain(cls):
            raise Break(f"an object of class {cls.__module__}.{cls.__qualname__}")
        self.facts.append(("type", o, cls))
        self.visit(cls)
        table = o.__dict__
        is_module = isinstance(o, rl.nn.Module)
        keys = [key for key in table if self.reads(key) or (is_module and _is_state(key))]
        absent = [n for n in ("forward",) if is_module and n not in table]
        absent += [n for n in self.names if n not in table and hasattr(cls, n) and not n.startswith("__")]
        keys += sorted(absent)
        self.facts.append(("dict", table, tuple(keys), tuple(table.get(key, MISSING) for key in keys), False))
        for key in keys:
            if key in table:
                self.visit(table[key])
        return None

    def optimizer(self, o: Any) -> None:
        self.stepped.append(o)
        self.facts.append(("list", o.param_groups, tuple(o.param_groups)))
        for group in o.param_groups:
            everything = ("dict", group, tuple(group), tuple(group.values()), True)
            self.watched.append(everything)
            if self.reads_options:
                self.facts.append(everything)
            self.facts.append(("dict", group, ("params",), (group["params"],), False))
            self.visit(group["params"])

    def all_facts(self) -> list[tuple[Any, ...]]:
        """With the globals, one fact for each of their tables."""
        found = list(self.facts)
        for key, names in self.globals_read.items():
            table, keys = self.globals_of[key], tuple(sorted(names))
            found.append(("dict", table, keys, tuple(table.get(name, MISSING) for name in keys), False))
        return found


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _is_state(key: str) -> bool:
    return key in _MODULE_STATE or key.endswith("_hooks")


@functools.lru_cache(1024)
def is_standard(name: str) -> bool:
    import sys

    return name.partition(".")[0] in sys.stdlib_module_names and name != "__main__"


def _is_plain(cls: type) -> bool:
    """Whether objects of a class have their attributes in a __dict__, and nothing else."""
    for c in cls.__mro__[:-1]:
        if not c.__flags__ & _MADE_IN_PYTHON:
            return False
        if any(name not in ("__dict__", "__weakref__") for name in _slots(c)):
            return False
    return hasattr(cls, "__dict__") and cls.__dictoffset__ != 0


def _slots(cls: type) -> Any:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def facts(reach: Any) -> Any:
    return _C._Facts(reach.all_facts(), MISSING)


BUILTINS = frozenset((
    "abs", "all", "any", "ascii", "bin", "bool", "callable", "chr", "divmod", "enumerate", "filter",
    "float", "format", "getattr", "hasattr", "hash", "hex", "int", "isinstance", "issubclass", "iter",
    "len", "list", "map", "max", "min", "next", "oct", "ord", "pow", "range", "repr", "reversed", "round",
    "setattr", "sorted", "str", "sum", "tuple", "zip", "__build_class__", "globals", "locals", "vars",
    "dir", "id", "delattr",
))  # fmt: skip
BUILTIN_TYPES = (list, dict, tuple, str, bytes, set, frozenset, int, float, complex, bool, range, slice, type, object,
                 collections.OrderedDict, collections.deque, functools.partial, BaseException,
                 types.MappingProxyType)  # fmt: skip
TENSOR_METHODS = frozenset((
    "dim", "ndimension", "numel", "nelement", "element_size", "item", "size", "stride", "is_contiguous",
    "requires_grad_", "detach_", "_asks", "_type_name", "is_inference", "_is_view",
))  # fmt: skip
_OWN = frozenset((
    "Op", "OpMethod", "device", "dtype", "_Fused", "_Compiled",
))  # fmt: skip
EXTENSION = frozenset((
    "_find_op", "_module_scope", "_new_function_node", "_finish_function", "_save_inputs",
))  # fmt: skip


def allowed(callable_: Any) -> bool:
    """Whether a function written in C leaves no trace but in what it is given."""
    name = getattr(callable_, "__name__", "")
    owner = getattr(callable_, "__objclass__", None)
    own = getattr(callable_, "__self__", None)
    if owner is None and own is not None and not isinstance(own, types.ModuleType):
        owner = own if isinstance(own, type) else type(own)
    if owner is not None:
        if issubclass(owner, rl.Tensor):
            return name in TENSOR_METHODS
        return issubclass(owner, BUILTIN_TYPES) or (
            owner.__module__ == "rushlight._C" and owner.__name__ in _OWN
        )
    module = getattr(callable_, "__module__", None)
    if module == "builtins":
        return name in BUILTINS
    if module in (
        "math",
        "cmath",
        "_operator",
        "_functools",
        "_abc",
        "_collections",
        "itertools",
        "_typing",
        "_thread",
    ):
        return True
    own = name in EXTENSION or name.startswith(("_record_", "_watch_"))
    return own and getattr(_C, name, None) is callable_
