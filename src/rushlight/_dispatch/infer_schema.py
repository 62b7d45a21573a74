"""The schema of an operator from the annotations of its function (torch.library.infer_schema)."""

import collections.abc
import inspect
import types
import typing

import rushlight as rl
from rushlight.types import Number

_WORDS = {
    rl.Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", rl.dtype: "ScalarType",
    rl.device: "Device", Number: "Scalar",
}  # fmt: skip


def _word(kind, what):
    """The word of schemas for a type of Python."""
    try:
        if kind in _WORDS:
            return _WORDS[kind]
    except TypeError:
        pass
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        inner = [a for a in args if a is not type(None)]
        if len(inner) < len(args):
            word = _word(inner[0] if len(inner) == 1 else typing.Union[tuple(inner)], what)  # noqa: UP007
            return word + "?"
        if set(inner) <= {int, float, bool, complex}:
            return "Scalar"
    if origin in (list, collections.abc.Sequence) and len(args) == 1:
        return _word(args[0], what) + "[]"
    raise ValueError(
        f"infer_schema(func): {what} has unsupported type {kind}. The valid types are Tensor, int, float, bool, str, "
        "torch.dtype, torch.device, numbers, and Optional and Sequence of them"
    )


def _returns(kind):
    if kind is None or kind is type(None):
        return "()"
    if typing.get_origin(kind) is tuple:
        return "(" + ", ".join(_word(a, "a return") for a in typing.get_args(kind)) + ")"
    return _word(kind, "the return")


def infer_schema(prototype_function, /, *, mutates_args=(), op_name=None):
    """`name(Tensor x, ...) -> Tensor` of a function with annotations.

    Args:
        prototype_function: the function; every parameter and the return have annotations.
        mutates_args: names of the arguments that it writes to, or "unknown".
        op_name: the name in front of the parenthesis.
    """
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            f"infer_schema(func): mutates_args is a set of names, or the string 'unknown', got the string {mutates_args!r}"
        )
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    parts, star = [], False
    for number, (name, p) in enumerate(signature.parameters.items()):
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            raise ValueError(
                f"infer_schema(func): We do not support positional-only args, varargs, or varkwargs: {name}"
            )
        if p.annotation is p.empty:
            raise ValueError(
                f"infer_schema(func): Parameter {name} must have a type annotation. {prototype_function}"
            )
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        word = _word(hints[name], f"Parameter {name}")
        if name in mutates_args or (mutates_args == "unknown" and word.startswith("Tensor")):
            if not word.startswith("Tensor"):
                raise ValueError(
                    f"infer_schema(func): Parameter {name} is in mutates_args but only Tensors or collections of Tensors can be "
                    "mutated"
                )
            word = f"Tensor(a{number}!){word[len('Tensor') :]}"
        default = ""
        if p.default is not p.empty:
            quoted = isinstance(p.default, (str, rl.device))
            value = f'"{p.default}"' if quoted else str(p.default).removeprefix("torch.")
            default = f"={value}"
        parts.append(f"{word} {name}{default}")
    if mutates_args != "unknown":
        unknown = set(mutates_args) - set(signature.parameters)
        if unknown:
            raise ValueError(
                f"infer_schema(func): {unknown} in mutates_args were not found among the parameters of the function"
            )
    if signature.return_annotation is signature.empty:
        raise ValueError(
            "infer_schema(func): No return type annotation was provided. Please add one. (None if there is nothing)"
        )
    return f"{op_name or ''}({', '.join(parts)}) -> {_returns(hints.get('return'))}"
