"""Writes src/rushlight/_C.pyi from the registered ops: `python tools/make_stub.py FOLDER_OF_THE_EXTENSION OUTPUT`.

The build runs it on the extension it has just made, so the stub is never out of date and never edited by hand."""

import importlib.util
import keyword
import pathlib
import sys

HEADER = '''"""The C++ core of rushlight. Made by tools/make_stub.py from the registered ops."""

import builtins
from typing import Any

'''

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
)
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def load(folder):
    (file,) = pathlib.Path(folder).glob("_C.*.so")
    spec = importlib.util.spec_from_file_location("rushlight._C", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["rushlight._C"] = module
    spec.loader.exec_module(module)
    return module


def parameters(signature, skip_first):
    """A registration's signature as a Python parameter list."""
    parts, depth, item = [], 0, ""
    for c in signature + ",":
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(item.strip())
            item = ""
        else:
            item += c
    out, starred, optional = [], False, False
    for part in filter(None, parts):
        if part == "*":
            if not starred:
                out.append("*")
            starred = True
            continue
        name, _, default = part.partition("=")
        name = name.strip()
        if name.endswith("..."):
            out.append(f"*{name[:-3]}: Any")
            starred = True
            continue
        if keyword.iskeyword(name):
            name += "_"
        optional = optional or bool(default)
        needs_default = optional and not starred
        out.append(f"{name}: Any = ..." if default or needs_default else f"{name}: Any")
    if skip_first and out:
        out[0] = "self"
    if out and out[-1] == "*":
        out.pop()
    return ", ".join(out)


def function(name, op, indent="", method=False):
    signatures = list(dict.fromkeys(parameters(s, method) for s in op._signatures))
    text = op.__doc__.split("\n\n", 1)[-1].strip().replace("\\", "\\\\").replace('"""', "'''")
    # One permissive signature stands for an op with overloads.
    shown = (
        signatures[0]
        if len(signatures) == 1
        else ("self, *args: Any, **kwargs: Any" if method else "*args: Any, **kwargs: Any")
    )
    return f'{indent}def {name}({shown}) -> Any:\n{indent}    """{text}"""\n{indent}    ...\n'


def constants(kind):
    """The named numbers of a class: OpFlags.VIEW."""
    return "".join(
        f"    {name}: int\n" for name, value in vars(kind).items() if type(value) is int and name.isupper()
    )


def main(folder, output):
    core = load(folder)
    lines = [HEADER]
    for name, value in sorted(vars(core).items()):
        if name.startswith("__") or name in ("ops", "Tensor"):
            continue
        if isinstance(value, type):
            base = (
                "Exception"
                if issubclass(value, Exception)
                else "tuple[int, ...]"
                if issubclass(value, tuple)
                else "Any"
            )
            lines.append(
                f"class {name}({base}): ...\n"
                if base != "Any"
                else f"class {name}:\n{constants(value)}    def __getattr__(self, name: str) -> Any: ...\n"
                f"    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n"
            )
        elif callable(value):
            lines.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...\n")
        else:
            lines.append(
                f"{name}: {type(value).__name__ if type(value).__name__ in ('dtype', 'layout', 'memory_format') else 'Any'}\n"
            )
    lines.append("\nops: dict[str, Any]\n\nclass Tensor:\n")
    for name in sorted(vars(core.Tensor)):
        value = vars(core.Tensor)[name]
        if isinstance(value, core.OpMethod) and name.isidentifier() and not keyword.iskeyword(name):
            lines.append(function(name, value, "    ", method=True))
    lines.append("    def __getattr__(self, name: str) -> Any: ...\n")
    lines.append("    def __setattr__(self, name: str, value: Any) -> None: ...\n")
    own = {name for name, value in vars(core.Tensor).items() if not isinstance(value, core.OpMethod)}
    operators = [form + name for name in BINARY for form in ("", "r", "i") if f"__{form}{name}__" in own]
    for operator in (*operators, *COMPARISONS, "getitem"):
        ignore = "  # type: ignore[override]" if operator in ("eq", "ne") else ""
        lines.append(f"    def __{operator}__(self, other: Any) -> Tensor: ...{ignore}\n")
    for operator in ("neg", "pos", "invert", "abs"):
        lines.append(f"    def __{operator}__(self) -> Tensor: ...\n")
    lines.append("    def __setitem__(self, index: Any, value: Any) -> None: ...\n")
    lines.append("    def __iter__(self) -> Any: ...\n")
    # Tensor has methods by the names of these types.
    for name, result in (("len", "int"), ("bool", "bool"), ("float", "float"), ("int", "int")):
        lines.append(f"    def __{name}__(self) -> builtins.{result}: ...\n")
    pathlib.Path(output).write_text("".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
