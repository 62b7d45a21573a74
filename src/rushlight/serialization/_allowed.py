"""The names that a file may ask for when nothing in it may run: tensors, storages, plain containers, what
the user adds.
"""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Callable
from typing import Any, Self

import rushlight as rl
from rushlight import _utils
from rushlight.serialization import _plain
from rushlight.serialization._storage import STORAGE_NAMES, StorageType
from rushlight.serialization._vm import UnpicklingError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.serialization._vm import Machine


_DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64", "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2",
    "quint8", "qint8", "qint32", "quint4x2", "quint2x4",
]  # fmt: skip
_OLD_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}

_SCHEMES = ("per_tensor_affine", "per_tensor_symmetric", "per_channel_affine", "per_channel_symmetric",
            "per_channel_affine_float_qparams")  # fmt: skip

# Modules whose functions act on the system: no list of safe globals lets them in.
_BLOCKED_MODULES = frozenset(("sys", "os", "posix", "nt"))

_local = threading.local()


def file_name(module: str, name: str) -> str:
    """The name "module.name" as PyTorch files spell it."""
    module = _OLD_MODULES.get(module, module)
    if module == "rushlight" or module.startswith("rushlight."):
        module = "torch" + module[len("rushlight") :]
    return f"{module}.{name}"


def storage_types() -> dict[str, StorageType]:
    """{"torch.FloatStorage": StorageType, ...}, with the names that storages on a GPU had."""
    types = {}
    for name, dtype in STORAGE_NAMES.items():
        kind = StorageType(f"torch.{name}", dtype)
        for module in ("torch", "torch.cuda", "torch.storage"):
            types[f"{module}.{name}"] = kind
        types[f"torch.{name.replace('Storage', 'Tensor')}"] = kind  # in files of 2016 and 2017
        types[f"torch.cuda.{name.replace('Storage', 'Tensor')}"] = kind
    types["torch.storage.UntypedStorage"] = types["torch.UntypedStorage"] = StorageType(
        "torch.UntypedStorage", None
    )
    types["torch.storage._UntypedStorage"] = types["torch.UntypedStorage"]
    return types


class _NestedName:
    """Stands for the class of jagged tensors, which its rebuilder loads."""


def plain_names() -> dict[str, Any]:
    """{name: object} of everything that is data by itself."""
    names: dict[str, Any] = dict(storage_types())
    for dtype in _DTYPES:
        if hasattr(rl, dtype):
            names[f"torch.{dtype}"] = getattr(rl, dtype)
    names.update({f"torch.{name}": getattr(rl, name) for name in _SCHEMES})
    names["torch.Tensor"] = rl.Tensor
    names["torch.nested._internal.nested_tensor.NestedTensor"] = _NestedName
    names["torch.nn.parameter.Parameter"] = names["torch.nn.Parameter"] = rl.nn.Parameter
    return names


def callables() -> dict[str, Callable[..., Any]]:
    """{name: function} of what a file may call."""
    table = dict(_plain.MAKERS)
    table["torch._tensor._rebuild_from_type_v2"] = _utils._rebuild_from_type_v2
    for name in _utils.REBUILDERS:
        table[f"torch._utils.{name}"] = getattr(_utils, name)
    table["torch.nested._internal.nested_tensor._rebuild_njt"] = _utils._rebuild_njt
    table["torch._dynamo.decorators._DimRange"] = _plain.make_dim_range
    return table


def known_names() -> dict[str, Any]:
    """Every name that a weights_only load accepts."""
    return {**plain_names(), **callables(), **user_names()}


def _user_globals() -> list[Any]:
    if not hasattr(_local, "given"):
        _local.given = []
    given: list[Any] = _local.given
    return given


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets weights_only loads in this thread create and call further classes and functions.

    Args:
        safe_globals (list): classes and functions, or pairs (object, "module.name") for another name in the
            files.

    Example:
        >>> class Mine: ...
        >>> torch.serialization.add_safe_globals([Mine])
        >>> torch.serialization.get_safe_globals() == [Mine]
        True
        >>> torch.serialization.clear_safe_globals()
    """
    given = _user_globals()
    given.extend(g for g in safe_globals if g not in given)


def get_safe_globals() -> list[Any]:
    """The classes and functions that add_safe_globals has allowed.

    Example:
        >>> torch.serialization.get_safe_globals()
        []
    """
    return list(_user_globals())


def clear_safe_globals() -> None:
    """Takes back what add_safe_globals has allowed.

    Example:
        >>> torch.serialization.clear_safe_globals()
        >>> torch.serialization.get_safe_globals()
        []
    """
    _user_globals().clear()


class safe_globals(contextlib.ContextDecorator):
    """Within the block, weights_only loads may create and call these classes and functions, too.

    Args:
        safe_globals (list): as for add_safe_globals.

    Example:
        >>> class Mine: ...
        >>> with torch.serialization.safe_globals([Mine]):
        ...     print(torch.serialization.get_safe_globals() == [Mine])
        True
        >>> torch.serialization.get_safe_globals()
        []
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> Self:
        self.before = get_safe_globals()
        add_safe_globals(self.safe_globals)
        return self

    def __exit__(self, *exc: Any) -> None:
        _user_globals()[:] = self.before


def user_names() -> dict[str, Any]:
    names = {}
    for entry in _user_globals():
        if isinstance(entry, tuple):
            entry, name = entry
            module, _, name = name.rpartition(".")
        else:
            module, name = entry.__module__, entry.__qualname__
        names[file_name(module, name)] = entry
        if type(entry) is type(rl.relu):  # an op: files also have the name that it is called by
            names[f"torch.{entry.__reduce__()[1][0]}"] = entry
    return names


class InvalidTensor(UnpicklingError, RuntimeError):
    """The parts of a tensor in a file do not fit together: PyTorch raises what its constructor raises."""


class SafeHooks:
    """The hooks of a Machine that runs nothing but the functions named here."""

    def __init__(self, size: int, pickled: Callable[[], list[str]]) -> None:
        self.size = size  # of the pickle, in bytes
        self.pickled = pickled  # () -> names the pickle asks for, to list all that are missing at once
        self.plain, self.callables, self.user = plain_names(), callables(), user_names()
        self.functions = {id(f): f for f in self.callables.values()}
        self.spent = 0
        self.machine: Machine  # set by run_safely

    def find(self, module: str, name: str) -> Any:
        if module in _BLOCKED_MODULES:
            raise UnpicklingError(
                f"Weights only load failed. Trying to load unsupported GLOBAL {module}.{name} whose module {module} is "
                "blocked: its functions act on the system, and no list of safe globals allows them"
            )
        full = file_name(module, name)
        for table in (self.plain, self.callables, self.user):
            if full in table:
                return table[full]
        refused = [n for n in dict.fromkeys(file_name(*n.rpartition(".")[::2]) for n in self.pickled())]
        raise UnpicklingError(refusal(full, [n for n in refused if not self.knows(n)]))

    def knows(self, full: str) -> bool:
        return full in self.plain or full in self.callables or full in self.user

    def is_users(self, value: object) -> bool:
        return any(value is u for u in self.user.values())

    def spend(self, values: Any) -> None:
        """Counts what is copied: a short pickle could ask for the same long list a million times."""
        for value in values:
            if isinstance(value, (str, bytes, bytearray, list, tuple, dict, set)):
                self.spent += len(value)
        if self.spent > 2 * self.size + 65536:
            raise UnpicklingError("the pickle copies more than it holds, as no checkpoint does")

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        if self.functions.get(id(function)) is function:
            self.spend(args)
            self.machine.check_keys(_plain.keys_among(function, args))
        elif not self.is_users(function):
            raise UnpicklingError(f"the file calls {shown(function)}, which is not allowed")
        try:
            return function(*args)
        except UnpicklingError:
            raise
        except Exception as e:
            kind = InvalidTensor if isinstance(e, RuntimeError) else UnpicklingError
            raise kind(f"{getattr(function, '__name__', function)}: {e}") from e

    def new(self, cls: Any, args: Any, kwargs: Any) -> Any:
        if type(args) is not tuple or type(kwargs) is not dict:
            raise UnpicklingError("an object whose arguments are not a tuple and a dict")
        if cls is _plain.make_ordered_dict and not args and not kwargs:
            return collections.OrderedDict()
        if cls is _plain.make_dim_range:
            return cls()
        if isinstance(cls, type) and self.is_users(cls):
            return cls.__new__(cls, *args, **kwargs)
        raise UnpicklingError(f"the file creates {shown(cls)}, which is not allowed")

    def build(self, obj: Any, state: Any) -> Any:
        if type(obj) is collections.OrderedDict or isinstance(obj, rl.Tensor):
            plain = isinstance(obj, rl.Tensor) and (type(obj) is rl.Tensor or obj.is_nested)
            if type(state) in (dict, collections.OrderedDict) and not plain:
                self.spend((state,))
                obj.__dict__.update(state)
            return obj
        if type(obj) is _plain.DimRange:
            return obj
        if not self.is_users(type(obj)):
            raise UnpicklingError(
                f"the file sets the attributes of a {type(obj).__name__}, which is not allowed"
            )
        if hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
        elif isinstance(state, tuple) and len(state) == 2:
            for part in state:
                for key, value in (part or {}).items():
                    setattr(obj, key, value)
        else:
            obj.__dict__.update(state)
        return obj


def refusal(first: str, names: list[str]) -> str:
    names = names or [first]
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    classes = ", ".join(n.rpartition(".")[2] for n in names[:20])
    return (
        f"Weights only load failed. Unsupported global: GLOBAL {first} was not an allowed global by default. "
        f"The file asks for {len(names)} name{'s' * (len(names) != 1)} that could run code: {shown}. "
        f"If you trust them, please use `torch.serialization.add_safe_globals([{classes}])` or the "
        f"`torch.serialization.safe_globals([{classes}])` context manager to allowlist them; or, if you trust the whole file, load it with "
        "`weights_only=False`, which can run any code that the file contains."
    )
