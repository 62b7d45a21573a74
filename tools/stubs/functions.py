"""Signatures of functions written in Python, from their annotations; and how definitions look in a stub."""

import ast
import inspect

# Names that annotations may use; those of builtins are hidden by rushlight.float and Tensor.float, so each has an alias.
BUILTINS = {"int", "float", "bool", "complex", "str", "bytes", "object"}
ALIASES = {name: f"_{name}" for name in BUILTINS} | {
    "dtype": "_dtype", "device": "_device", "layout": "_layout", "memory_format": "_memory_format", "Size": "_Shape",
    "Generator": "_Generator", "Number": "_Number",
}  # fmt: skip
KNOWN = {
    "Any", "Callable", "Iterable", "Iterator", "Literal", "Mapping", "None", "Self", "Sequence", "Tensor", "dict", "list",
    "set", "tuple", "type", "_Tensors", "_Ints", "_DType", "_Device", "_Node", "RemovableHandle", "TypeIs", "UntypedStorage",
} | set(ALIASES.values())  # fmt: skip


class _Renamed(ast.NodeTransformer):
    def visit_Attribute(self, node):  # rl.Tensor, _C.dtype
        return self.visit(ast.Name(node.attr))

    def visit_Name(self, node):
        name = ALIASES.get(node.id, node.id)
        if name not in KNOWN:
            raise LookupError(name)
        return ast.Name(name)

    def visit_Constant(self, node):
        return node

    def visit_Subscript(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            return node
        return self.generic_visit(node)


def annotation_text(annotation, missing="Any"):
    """An annotation with the names that stubs have; Any for one whose names they lack."""
    if annotation is inspect.Parameter.empty:
        return missing
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    try:
        return ast.unparse(_Renamed().visit(ast.parse(text.strip(), mode="eval")))
    except (LookupError, SyntaxError):
        return "Any"


def _takes_out(function):
    """Whether `op` of rushlight._core.compose gave it an out=."""
    names = function.__code__.co_freevars
    return bool("out" in names and function.__closure__[names.index("out")].cell_contents)


def parameter_text(parameter, first, in_method):
    if first and in_method:
        return "self"
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(
        parameter.kind, ""
    )
    kind = annotation_text(parameter.annotation)
    if parameter.default is None and "None" not in kind and kind != "Any":
        kind += " | None"
    default = "" if parameter.default is inspect.Parameter.empty else " = ..."
    return f"{stars}{parameter.name}: {kind}{default}"


def signature_of(function, method=False, static=False):
    """(parameters, result) as text."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return ("self, " if method and not static else "") + "*args: Any, **kwargs: Any", "Any"
    parts, starred = [], False
    for index, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        parts.append(parameter_text(parameter, index == 0, method and not static))
    result = annotation_text(signature.return_annotation)
    if not method and _takes_out(function) and "out" not in signature.parameters:
        rest = [parts.pop()] if parts and parts[-1].startswith("**") else []
        parts += ([] if starred else ["*"]) + ["out: Any = ..."] + rest
    return ", ".join(parts), result


def definition(name, signatures, doc="", indent="", decorator=""):
    """The text of a function with these (parameters, result), and its documentation."""
    lines = []
    for parameters, result in signatures:
        if len(signatures) > 1:
            lines.append(f"{indent}@overload\n")
        if decorator:
            lines.append(f"{indent}@{decorator}\n")
        body = " ..."
        if doc:
            body, doc = f'\n{indent}    """{doc}"""', ""
        lines.append(f"{indent}def {name}({parameters}) -> {result}:{body}\n")
    return "".join(lines)


def documentation(value, name=""):
    """The first paragraph of its documentation, safe between triple quotes; none of what users do not call."""
    text = (getattr(value, "__doc__", "") or "").strip()
    if type(value).__name__ in ("Op", "OpMethod"):  # after the signatures
        text = text.split("\n\n", 1)[-1] if "\n\n" in text else ""
    text = text.split("\n\n")[0].strip()
    if name.startswith("_") or text.startswith("Args:"):
        return ""
    return text.replace("\\", "\\\\").replace('"""', "'''").rstrip('"')
