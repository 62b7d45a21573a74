"""rushlight.ops.aten.<name>: every op by PyTorch's name of the primitive, overloads included."""

from . import _C
from ._compose import _composed


class Op:
    """One primitive. Its overloads are the same function, which matches its arguments itself."""

    def __init__(self, namespace, name, function):
        self._namespace, self.__name__, self._function = namespace, name, function
        self._qualified_op_name = f"{namespace}::{name}"
        self.__doc__ = getattr(function, "__doc__", None)

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def overloads(self):
        return ["default"]

    def __getattr__(self, overload):
        if overload.startswith("_"):
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{overload}'")
        return Overload(self, overload)

    def __str__(self):
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self):
        return f"<Op({self})>"


class Overload:
    """One overload of an op, aten.add.Tensor."""

    def __init__(self, op, name):
        self.overloadpacket, self._overloadname = op, name
        self.namespace = op._namespace
        self.__name__ = f"{op.__name__}.{name}"
        self._function = op._function

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __eq__(self, other):
        return (
            type(other) is Overload
            and other.overloadpacket is self.overloadpacket
            and other._overloadname == self._overloadname
        )

    def __hash__(self):
        return hash(self.__name__)

    def name(self):
        return f"{self.namespace}::{self.__name__}"

    def __str__(self):
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self):
        return f"<Overload({self})>"


def _slice(input, dim=0, start=None, end=None, step=1):
    """input[start:end:step] along a dimension."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if not -input.dim() <= dim < input.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but "
            f"got {dim})"
        )
    return input[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)]


def _find(name):
    if name == "slice":
        return _slice
    for table in (_composed, _C.ops):
        for key in (name, "_nn." + name, "nn.functional." + name):
            if key in table:
                return table[key]
    for prefix in ("linalg", "fft", "special"):  # aten has linalg.inv as linalg_inv
        if name.startswith(prefix + "_"):
            key = f"{prefix}.{name[len(prefix) + 1 :]}"
            for table in (_composed, _C.ops):
                if key in table:
                    return table[key]
    if name.startswith("__"):
        return None
    method = getattr(_C.Tensor, name, None)  # what is a method only: aten.view, aten.expand
    if callable(method):
        return method
    from . import _aten

    found = vars(_aten).get(name)
    if callable(found) and name != "missing":
        return found
    if name.startswith("_foreach_"):
        from . import _foreach

        return getattr(_foreach, name, None) or _aten.missing(name)
    return _aten.missing(name) if name.startswith("_") else None


class Namespace:
    """rushlight.ops.aten."""

    def __init__(self, name):
        self.__name__ = name

    def __getattr__(self, name):
        function = _find(name) if self.__name__ == "aten" else None
        if function is None:
            raise AttributeError(
                f"'_OpNamespace' '{self.__name__}' object has no attribute '{name}': rushlight has no operator "
                f"{self.__name__}::{name}, and the program has registered none (torch.library)"
            )
        found = Op(self.__name__, name, function)
        setattr(self, name, found)
        return found

    def __repr__(self):
        return f"<rushlight.ops.{self.__name__}>"


aten = Namespace("aten")
_spaces = {"aten": aten}


def namespace(name):
    """The operators of a namespace, made when first asked for: programs register their own in it."""
    if name not in _spaces:
        _spaces[name] = Namespace(name)
        globals()[name] = _spaces[name]
    return _spaces[name]


def load_library(path):
    """Compiled operators of PyTorch can't be loaded here."""
    raise OSError(
        f"torch.ops.load_library({path!r}): the file holds operators built for PyTorch, which rushlight can't run. Write "
        "them in Python with torch.library.custom_op"
    )


loaded_libraries: set = set()


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return namespace(name)
