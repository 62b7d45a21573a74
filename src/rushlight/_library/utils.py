"""torch._library.utils: questions about operators and their schemas."""

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._dispatch.schema import FunctionSchema, parse


class Kernel:
    """A function that was registered, and where."""

    def __init__(self, func: Callable, source: str) -> None:
        self.func, self.source = func, source

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)


class RegistrationHandle:
    """What takes a registration back: destroy()."""

    def __init__(self, on_destroy: Callable[[], None]) -> None:
        self._on_destroy = on_destroy

    def destroy(self) -> None:
        self._on_destroy()


def get_source(stacklevel: int) -> str:
    """`file:line` of a caller."""
    frame = inspect.getframeinfo(sys._getframe(stacklevel))
    return f"{frame.filename}:{frame.lineno}"


def parse_namespace(qualname: str) -> tuple[str, str]:
    """("namespace", "name") of "namespace::name"."""
    space, colons, name = qualname.partition("::")
    if not colons or not space or "::" in name:
        raise ValueError(
            f"Expected `qualname` to be of the form 'namespace::name', but got {qualname}. The qualname passed to the "
            "torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    return space, name


def lookup_op(qualname: str) -> Any:
    """The overload of "namespace::name" or "namespace::name.overload"."""
    space, name = parse_namespace(qualname)
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(rl.ops, space), name), overload or "default")


def is_builtin(op: Any) -> bool:
    """Whether an overload is one of the library's own."""
    return op.namespace in ("aten", "prim", "prims")


def is_out(op: Any) -> bool:
    """Whether an overload writes to the argument `out`."""
    return any(a.is_out for a in op._schema.arguments)


def _schema_of(schema: Any) -> FunctionSchema:
    return schema if isinstance(schema, FunctionSchema) else parse(str(schema))


def is_functional_schema(schema: Any, *, allow_valid_view: bool = False) -> bool:
    """Whether an operator writes to no argument, has results, and these share memory with no argument.

    Args:
        schema: a schema, or its text.
        allow_valid_view: results may be views of the first argument.
    """
    schema = _schema_of(schema)
    if schema.is_mutable or not schema.returns:
        return False
    return allow_valid_view or all(r.alias_info is None for r in schema.returns)


def is_tensorlist_like_type(typ: Any) -> bool:
    """Whether a type of schemas is a list of tensors: Tensor[], Tensor?[], either of them optional."""
    return str(typ).rstrip("?").endswith("]") and str(typ).startswith("Tensor")


def is_tensor_like_type(typ: Any) -> bool:
    """Whether a type of schemas is Tensor or Tensor?."""
    return str(typ) in ("Tensor", "Tensor?")


def mutates_and_returns_first_arg(op: Any) -> bool:
    """Whether an overload writes to its first argument, to no other, and returns it: mul_."""
    if op.namespace != "aten":
        return False
    schema = op._schema
    written = [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    if len(schema.returns) != 1 or len(written) != 1 or not schema.arguments:
        return False
    returned = schema.returns[0].alias_info
    first = schema.arguments[0]
    return first is written[0] and not first.is_out and returned is not None and returned == first.alias_info


def fill_defaults(schema: FunctionSchema, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments of a call with all defaults."""
    positional, named = list(args), dict(kwargs)
    for i, argument in enumerate(schema.arguments):
        if argument.kwarg_only:
            named.setdefault(argument.name, argument.default_value)
        elif i >= len(args) and argument.name not in named:
            positional.append(argument.default_value)
    return tuple(positional), named


def zip_schema(schema: FunctionSchema, args: tuple, kwargs: dict) -> Iterator[tuple[Any, Any]]:
    """Pairs of (argument of the schema, value) of a call; those that were left out are left out."""
    for i, argument in enumerate(schema.arguments):
        if not argument.kwarg_only and i < len(args):
            yield argument, args[i]
        elif argument.name in kwargs:
            yield argument, kwargs[argument.name]


def has_kwarg_only_args(schema: FunctionSchema) -> bool:
    """Whether an argument is given by name alone."""
    return any(a.kwarg_only for a in schema.arguments)


def has_kwarg_only_tensors(schema: FunctionSchema) -> bool:
    """Whether a tensor is given by name alone."""
    return any(a.kwarg_only and str(a.type).startswith("Tensor") for a in schema.arguments)


def has_tensor_arg(schema: FunctionSchema) -> bool:
    """Whether an argument is a tensor, or a list of them."""
    return any(str(a.type).startswith("Tensor") for a in schema.arguments)


def get_device_arg_index(schema: FunctionSchema) -> int | None:
    """The position of the argument `device`, or None."""
    return next((i for i, a in enumerate(schema.arguments) if a.name == "device"), None)


def iter_tensors(args: tuple, kwargs: dict, allowed_nesting: int = 1) -> Iterator[Any]:
    """The tensors of a call, and those in lists."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, rl.Tensor):
            yield value
        elif allowed_nesting > 0 and isinstance(value, (tuple, list)):
            yield from iter_tensors(tuple(value), {}, allowed_nesting - 1)


def has_fake_kernel(op: Any) -> bool:
    """Whether an overload runs on tensors without memory."""
    if is_builtin(op):
        return True
    own = getattr(op._function, "_fake", None)
    return own is not None or getattr(op._function, "_through", False)


def mutated_args_kwargs(schema: FunctionSchema) -> tuple[list[int], list[str]]:
    """(positions, names of those given by name alone) of the arguments that are written to."""
    written = [
        (i, a) for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write
    ]
    return [i for i, a in written if not a.kwarg_only], [a.name for _, a in written if a.kwarg_only]


__getattr__ = _unsupported_attribute(__name__)
