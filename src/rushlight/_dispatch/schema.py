"""Schemas of operators: `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, read and printed."""

import re


class AliasInfo:
    """(a!): which of the other arguments and results share memory, and whether it is written to."""

    def __init__(self, letters, is_write):
        self.before_set = self.after_set = set(letters)
        self.is_write = is_write

    def __eq__(self, other):
        return isinstance(other, AliasInfo) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def __str__(self):
        return f"({'|'.join(sorted(self.before_set))}{'!' if self.is_write else ''})"


class Type:
    """The type of an argument by its name: Tensor, int[], Scalar?."""

    def __init__(self, text):
        self._text = text

    def __eq__(self, other):
        return isinstance(other, Type) and self._text == other._text

    def __hash__(self):
        return hash(self._text)

    def __str__(self):
        return self._text

    __repr__ = __str__

    def str(self):
        """The type as the interpreter of scripts has it: layouts and formats are numbers."""
        return re.sub(r"\b(MemoryFormat|Layout|ScalarType)\b", "int", self._text)

    def kind(self):
        if self._text.endswith("?"):
            return "OptionalType"
        return "ListType" if self._text.endswith("]") else f"{self._text}Type"

    def getElementType(self):
        return Type(self._text[:-1] if self._text.endswith("?") else re.sub(r"\[\d*\]$", "", self._text))

    def isSubtypeOf(self, other):
        return self == other


class Argument:
    """One argument or result."""

    def __init__(self, name, type, default=..., kwarg_only=False, alias=None, is_out=False):
        self.name, self.type, self.real_type = name, type, type
        self.default_value = None if default is ... else default
        self._has_default, self.kwarg_only, self.alias_info, self.is_out = (
            default is not ...,
            kwarg_only,
            alias,
            is_out,
        )
        found = re.search(r"\[(\d+)\]", str(type))
        self.N = int(found.group(1)) if found else None

    def has_default_value(self):
        return self._has_default

    def __eq__(self, other):
        return isinstance(other, Argument) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def __str__(self):
        kind = str(self.type)
        if self.alias_info:
            at = next(re.finditer(r"[\[?]|$", kind)).start()
            kind = kind[:at] + str(self.alias_info) + kind[at:]
        default = f"={_shown(self.default_value)}" if self._has_default else ""
        return f"{kind} {self.name}{default}".rstrip()


def _shown(value):
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)


class FunctionSchema:
    """The name of an operator, its arguments and results."""

    def __init__(self, name, overload_name, arguments, returns):
        self.name, self.overload_name = name, overload_name
        self.arguments, self.returns = arguments, returns
        self.is_vararg = self.is_varret = False

    @property
    def is_mutable(self):
        return any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    def _is_view_op(self):
        written = self.is_mutable
        return not written and any(r.alias_info is not None for r in self.returns)

    def is_backward_compatible_with(self, old):
        """Whether calls that the old schema took are taken by this one."""
        from .schema_changes import is_backward_compatible

        return is_backward_compatible(self, old)

    def check_forward_compatible_with(self, old):
        """(whether calls written for this schema are taken by the old one, else why not)."""
        from .schema_changes import forward_compatible

        return forward_compatible(self, old)

    def __eq__(self, other):
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def __str__(self):
        parts, star = [], False
        for a in self.arguments:
            if a.kwarg_only and not star:
                parts.append("*")
                star = True
            parts.append(str(a))
        results = ", ".join(str(r) for r in self.returns)
        results = results if len(self.returns) == 1 else f"({results})"
        dot = f".{self.overload_name}" if self.overload_name else ""
        return f"{self.name}{dot}({', '.join(parts)}) -> {results}"

    __repr__ = __str__


def _split(text):
    """The parts between commas that stand in no brackets."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return [p.strip() for p in (*parts, part) if p.strip()]


_NAMES = {"None": None, "True": True, "False": False, "contiguous_format": "contiguous_format"}


def _value(text):
    text = text.strip()
    if text in _NAMES:
        return _NAMES[text]
    if text[:1] in "\"'":
        return text[1:-1]
    if text.startswith("["):
        return [_value(t) for t in _split(text[1:-1])]
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


_TYPES = {"Tensor", "Scalar", "int", "float", "bool", "str", "SymInt", "SymFloat", "SymBool", "Device", "ScalarType", "Layout",
          "MemoryFormat", "Generator", "Dimname", "Stream", "Any", "complex", "number", "Storage", "QScheme", "t",
          "DeviceIndex"}  # fmt: skip
_TYPED = re.compile(r"^([\w.]+)((?:\s*\([^)]*\))?)((?:\?|\[\d*\]|\([^)]*\))*)\s*(\w*)$")


def _argument(text, kwarg_only, is_result=False):
    text, equal, default = text.partition("=")
    found = _TYPED.match(text.strip())
    if not found:
        raise RuntimeError(f"can't read the argument {text.strip()!r} of a schema")
    kind, alias, suffix, name = found.groups()
    if kind in ("int64_t", "double"):
        use = "Use `SymInt` or `int`" if kind == "int64_t" else "Use `float`"
        raise RuntimeError(f"{kind} is no type of schemas: {use} in the argument {text.strip()!r}")
    if kind == "None" and is_result:
        kind = "NoneType"
    elif kind not in _TYPES and not kind.startswith("__torch__"):
        raise RuntimeError(f"unknown type specifier: {kind!r} in the argument {text.strip()!r} of a schema")
    if not name and not is_result:
        raise RuntimeError(f"the argument {text.strip()!r} of a schema has no name")
    info = None
    marks = re.findall(r"\(([^)]*)\)", alias + suffix)
    if marks:
        before = marks[0].split("->")[0].strip()
        info = AliasInfo(
            [letter.strip() for letter in before.strip("! ").split("|") if letter.strip()], "!" in before
        )
    suffix = re.sub(r"\([^)]*\)", "", suffix)
    return Argument(name, Type(kind + suffix), _value(default) if equal else ..., kwarg_only, info)


def parse(text):
    """FunctionSchema of `name.overload(arguments) -> results`."""
    found = re.match(r"^\s*((?:\w+::)?\w+)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.*?)\s*$", text, re.S)
    if not found and re.search(r"=[^,]*,\s*\.\.\.\s*\)", text):
        raise RuntimeError("schemas with vararg (...) can't have default value args")
    if not found:
        raise RuntimeError(f"can't read the schema {text!r}: expected name(arguments) -> results")
    name, overload, inside, results = found.groups()
    arguments, kwarg_only, vararg = [], False, False
    for part in _split(inside):
        if part == "*":
            kwarg_only = True
        elif part == "...":
            vararg = True
        else:
            arguments.append(_argument(part, kwarg_only))
    whole = results.startswith("(") and results.endswith(")")
    returns = [_argument(r, False, True) for r in _split(results[1:-1] if whole else results)]
    for a in arguments:
        a.is_out = a.kwarg_only and a.alias_info is not None and a.alias_info.is_write
    if vararg and any(a.has_default_value() for a in arguments):
        raise RuntimeError("schemas with vararg (...) can't have default value args")
    made = FunctionSchema(name, overload or "", arguments, returns)
    made.is_vararg = vararg
    return made


# Types of the extension's registry in the words of schemas.
_WORDS = {"Tensor": "Tensor", "Number": "Scalar", "int": "int", "float": "float", "bool": "bool", "tuple of ints": "int[]",
          "tuple of Tensors": "Tensor[]", "torch.dtype": "ScalarType", "torch.device": "Device",
          "torch.memory_format": "MemoryFormat", "torch.layout": "Layout", "str": "str", "torch.Generator": "Generator",
          "object": "Any"}  # fmt: skip


def of_registry(name, overload, parameters, *, scalars=(), writes=False, view=False, out=False, results=1):
    """The schema of an op of the extension, from the parameters of its registration."""
    arguments = []
    for i, (parameter, kind, default, kwarg_only) in enumerate(parameters):
        word = "Scalar" if parameter in scalars else _WORDS.get(kind, "Any")
        if parameter == "indices" and kind == "object":
            word = "Tensor?[]"
        if default is None and not word.endswith("?"):
            word += "?"
        alias = AliasInfo("a", writes) if i == 0 and (writes or view) and word.startswith("Tensor") else None
        arguments.append(Argument("self" if i == 0 and parameter in ("input", "tensor") else parameter,
                                  Type(word), default, kwarg_only, alias))  # fmt: skip
    if out:
        arguments.append(Argument("out", Type("Tensor"), ..., True, AliasInfo("a", True), True))
    alias = AliasInfo("a", writes or out) if writes or view or out else None
    returns = [Argument("", Type("Tensor"), alias=alias if i == 0 else None) for i in range(results)]
    return FunctionSchema(name, overload if overload != "default" else "", arguments, returns)
