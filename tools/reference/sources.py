"""Where a name is defined: the file and line of a function or class, the registration of an op in C++."""

import functools
import inspect
import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Source(NamedTuple):
    file: str  # from the top of the repository
    line: int


class Registration(NamedTuple):
    source: Source
    formula: str  # the comment at the op's block: "y = e^x        dx = dy * y"
    node: str  # the name of its grad_fn


@functools.cache
def registrations():
    """{name of an op: Registration}, read from csrc/ops."""
    found = {}
    for path in sorted((ROOT / "csrc" / "ops").rglob("*.cpp")):
        text = path.read_text()
        formulas = dict(re.findall(r"^// ([\w.]+): (\S.*=.*)$", text, re.M))
        for match in re.finditer(r'ops\.(?:def|alias)\(\s*"([\w.]+)",\s*"?(\w+)', text):
            name, function = match.groups()
            line = text.count("\n", 0, match.start()) + 1
            source = Source(path.relative_to(ROOT).as_posix(), line)
            formula = formulas.get(name.rpartition(".")[2], formulas.get(function, ""))
            found.setdefault(name, Registration(source, formula, _node(text, function)))
    return found


def _node(text, function):
    """The name of the node that a C++ function records, if its body says so."""
    body = re.search(rf"^(?:static )?[\w:<>, ]+ {re.escape(function)}\((?:.|\n)*?^}}", text, re.M)
    struct = re.search(r"<(\w+Backward\w*)[,>]", body[0]) if body else None
    if not struct:
        return ""
    name = re.search(rf"struct {struct[1]}\b(?:.|\n)*?kName = \"(\w+)\"", text)
    return name[1] if name else ""


def source_of(value):
    """The Source of a function or class, None for what is made at run time or built into the extension."""
    if hasattr(value, "_op_name"):
        registered = registrations().get(value._op_name) or registrations().get(
            value._op_name.removesuffix("_")
        )
        return registered.source if registered else _mentioned(value._op_name.removesuffix("_"))
    try:
        value = inspect.unwrap(value)
        path = pathlib.Path(_file(value))
        line = _line(value, path)
    except (TypeError, OSError, KeyError):
        return None
    if "rushlight" not in path.parts:
        return None
    below = path.parts[len(path.parts) - path.parts[::-1].index("rushlight") :]
    return Source("/".join(("src/rushlight", *below)), line) if below else None


@functools.cache
def _mentioned(name):
    """Where csrc/ops names an op that is registered by a macro or a loop."""
    for pattern in (f'"{name}"', rf"\b{name.rpartition('.')[2]}\b"):
        for path in sorted((ROOT / "csrc" / "ops").rglob("*.cpp")):
            text = path.read_text()
            match = re.search(pattern, text) if "Register registered" in text else None
            if match:
                return Source(path.relative_to(ROOT).as_posix(), text.count("\n", 0, match.start()) + 1)
    return None


def _file(value):
    """The file of a function or class. __module__ says where PyTorch has it, code where it is."""
    if isinstance(value, type):
        for part in vars(value).values():
            code = getattr(getattr(part, "__func__", part), "__code__", None)
            if code is not None and _classes(pathlib.Path(code.co_filename)).get(value.__name__):
                return code.co_filename
    return inspect.getsourcefile(value) or ""


def _line(value, path):
    if isinstance(value, type):  # inspect would parse the file for each class
        return _classes(path)[value.__name__]
    return value.__code__.co_firstlineno


@functools.cache
def _classes(path):
    found = {}
    if path.suffix != ".py":
        return found
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r"class (\w+)\b", line)
        if match:
            found.setdefault(match[1], number)
    return found
