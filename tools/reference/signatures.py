"""Signatures with types: of ops from their registration, of Python's functions and classes from their annotations."""

import inspect
import re
from typing import NamedTuple

from stubs import functions, ops

# What the aliases of the stubs stand for.
SPELLED = {
    "_Ints": "int | Sequence[int]", "_Tensors": "Sequence[Tensor]", "_DType": "dtype", "_Device": "device | str",
    "_Number": "Number", "_Shape": "Size", "_Generator": "Generator", "_Node": "Node",
}  # fmt: skip


class Parameter(NamedTuple):
    name: str  # with its stars; "*" and "/" are themselves
    type: str = ""
    default: str = ""


class Signature(NamedTuple):
    parameters: list[Parameter]
    result: str = ""


def spelled(annotation):
    """A type as a reader writes it."""
    text = re.sub(r"\b(?:rl|_C|rushlight|torch|builtins|_?return_types|typing)\.", "", annotation)
    return re.sub(r"\b_\w+", lambda m: SPELLED.get(m[0], m[0][1:]), text)


def of(value, method=False, result=True):
    """The signatures of a callable; of a class, those that its calls have."""
    if hasattr(value, "_signatures"):
        return _of_op(value, method)
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return [Signature([Parameter("...")])]
    return [_of_python(value, signature, method, result and not isinstance(value, type))]


def _of_op(op, method):
    form = getattr(op, "_form", "function")
    rows = [types for types, (_, flags) in zip(op._types, op._overloads) if not flags & ops.OLD]
    found = []
    for text, (letters, results) in zip(op._signatures, rows):
        one = _parsed(text, letters)
        names = [p.name for p in one]
        if method or form == "inplace":
            one.pop(names.index("input") if "input" in names else 0)
        elif results and set(results.lower()) <= {"t"} and not op._flags & (ops.NO_OUT | ops.VIEW):
            star = [] if any(n.startswith("*") for n in names) else [Parameter("*")]
            one += star + [Parameter("out", "Tensor" if len(results) == 1 else "tuple[Tensor, ...]", "None")]
        own = ops.result_type(results, op._op_name, op._results, op._flags & ops.FACTORY)
        signature = Signature(one, "Tensor" if form == "inplace" else spelled(own))
        if signature not in found:
            found.append(signature)
    return found


def _parsed(text, letters):
    parameters, index = [], 0
    for piece in ops.split(text):
        if piece == "*":
            if not any(p.name.startswith("*") for p in parameters):
                parameters.append(Parameter("*"))
            continue
        name, _, default = (part.strip() for part in piece.partition("="))
        letter = letters[index]
        index += 1
        if name.endswith("..."):
            parameters.append(Parameter(f"*{name[:-3]}", spelled(ops.ITEMS.get(letter, "Any"))))
        else:
            parameters.append(Parameter(name, spelled(ops.parameter_type(letter)), default))
    return parameters


def _of_python(value, signature, method, result):
    found, starred = [], False
    for index, p in enumerate(signature.parameters.values()):
        if index == 0 and (method or p.name in ("self", "cls")):
            continue
        if p.kind is p.KEYWORD_ONLY and not starred:
            found.append(Parameter("*"))
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else _default(p.default)
        found.append(Parameter(stars + p.name, _annotation(p.annotation), default))
    if (
        not method
        and inspect.isfunction(value)
        and functions._takes_out(value)
        and "out" not in signature.parameters
    ):
        found += ([] if starred else [Parameter("*")]) + [Parameter("out", "Tensor", "None")]
    return Signature(found, _annotation(signature.return_annotation) if result else "")


def _annotation(annotation):
    if annotation is inspect.Parameter.empty:
        return ""
    return spelled(annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))


def _default(value):
    if isinstance(value, type) or callable(value):
        return getattr(value, "__name__", repr(value))
    text = repr(value).replace("rushlight.", "torch.")
    return text if len(text) < 60 and " at 0x" not in text else "..."
