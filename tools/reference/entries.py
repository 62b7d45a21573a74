"""What the reference says of each name: signatures, docstring, source, and what its registration tells a user."""

import inspect
import re
from typing import NamedTuple

from stubs.functions import _takes_out

import rushlight
from rushlight._C import OpFlags

from . import docstring, names, signatures, sources


class Entry(NamedTuple):
    name: str  # in its namespace; "Adam.step" for a method
    full: str  # as programs write it: "torch.optim.Adam"
    anchor: str  # of its page
    kind: str  # "function", "class", "method", "property" or "attribute"
    signatures: list[signatures.Signature]
    doc: docstring.Docstring
    source: sources.Source | None
    facts: list[tuple[str, str]]  # (what, text) for ops
    mirrors: str  # the full name of the function whose documentation this one shows
    bases: list[str]
    members: list["Entry"]


def full_name(namespace, name):
    return f"torch.{name}" if namespace == "torch" else f"torch.{namespace}.{name}"


def of_namespace(namespace):
    found = [_entry(namespace, name, value) for name, value in names.names_of(namespace).items()]
    if namespace == "Tensor":
        found += [_attribute(name, value) for name, value in names.attributes_of(rushlight.Tensor).items()]
        found.sort(key=lambda e: (e.name.lower(), e.name))
    return found


def _entry(namespace, name, value):
    is_class = isinstance(value, type)
    in_tensor = namespace == "Tensor"
    return Entry(
        name,
        full_name(namespace, name),
        name,
        "class" if is_class else "method" if in_tensor else "function",
        signatures.of(value, method=in_tensor),
        docstring.of(value),
        sources.source_of(value),
        list(_facts(namespace, name, value)),
        _mirrored(namespace, name, value),
        _bases(value) if is_class else [],
        _members(namespace, name, value) if is_class else [],
    )


def _bases(cls):
    """The nearest base that programs may name: those between are the library's own affair."""
    for base in cls.__mro__[1:-1]:
        path = f"{base.__module__}.{base.__qualname__}"
        if not re.search(r"(^|\.)_|^(abc|typing|collections\.abc)\b", path):
            return [re.sub(r"^rushlight", "torch", path)]
    return []


def _members(namespace, name, cls):
    found = []
    for method, function in names.methods_of(cls).items():
        is_property = isinstance(vars(cls).get(method), property)
        doc = docstring.of(function)
        if not doc.summary and not is_property:  # what it overrides says it
            doc = docstring.parse(inspect.getdoc(getattr(cls, method)) or "")
        static = isinstance(vars(cls).get(method), staticmethod)
        own = f"{name}.{method}"
        found.append(
            Entry(
                own,
                full_name(namespace, own),
                own,
                "property" if is_property else "method",
                [] if is_property else signatures.of(function, method=not static),
                doc,
                sources.source_of(function),
                [],
                "",
                [],
                [],
            )
        )
    return sorted(found, key=lambda e: e.name.lower())


def _attribute(name, value):
    doc = docstring.parse(value.__doc__ or "")
    return Entry(name, f"torch.Tensor.{name}", name, "attribute", [], doc, None, [], "", [], [])


def _mirrored(namespace, name, value):
    """The function whose documentation a method of Tensor, or an alias, shows again."""
    if names.is_derived(value):
        base = name.removesuffix("_")
        return full_name(namespace, base)
    if namespace == "Tensor":
        function = getattr(rushlight, name, None)
        if function is not None and docstring.of(function).text == docstring.of(value).text:
            return f"torch.{name}"
    return ""


def _facts(namespace, name, value):
    """What users ask of an op."""
    if names.is_derived(value):
        return
    inplace = getattr(names.space_of(namespace), f"{name}_", None)
    if inplace is not None and names.is_derived(inplace):
        yield "in place", full_name(namespace, f"{name}_")
    elif namespace == "torch" and names.is_derived(getattr(rushlight.Tensor, f"{name}_", None)):
        yield "in place", f"torch.Tensor.{name}_"
    if hasattr(value, "_signatures"):
        yield from _registered_facts(value)
    elif getattr(value, "_differentiable", None) is not None:
        if namespace != "Tensor" and _takes_out(value):
            yield "out=", "accepted"
        yield "differentiable", "yes, composed of other ops" if value._differentiable else "no"


def _registered_facts(op):
    flags = op._flags
    registered = sources.registrations().get(op._op_name)
    if registered and registered.formula:
        formula, _, derivative = (part.strip() for part in registered.formula.partition("        "))
        yield "formula", formula
        if derivative:
            yield "gradient", derivative
    if op._form == "function" and not flags & (OpFlags.NO_OUT | OpFlags.VIEW):
        yield "out=", "accepted"
    if flags & OpFlags.VIEW:
        yield "result", "a view of the input's memory where it can be"
    if flags & OpFlags.RANDOM:
        yield "random", "draws from the generator"
    node = registered.node if registered else ""
    if flags & OpFlags.NOT_DIFFERENTIABLE or flags & OpFlags.FACTORY:
        yield "differentiable", "no"
    elif node:
        yield "differentiable", f"yes: {node}"
    else:
        yield "differentiable", "yes"
