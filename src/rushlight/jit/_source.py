"""A function's source as a tree, and a function from a changed tree, which is otherwise the same: its names, defaults,
cells and lines.
"""

from __future__ import annotations

import ast
import dis
import inspect
import types
from collections.abc import Callable
from typing import Any

_FACTORY = "__rushlight_factory"
_PLAIN = (str, int, float, complex, bool, bytes, type(None))  # of constants, what can be compared


class Unknown(Exception):
    """The function's source is not to be had, or is not what it was compiled from."""


def tree_of(function: Callable[..., Any]) -> Any:
    """The function's definition, with the line numbers of its file."""
    if hasattr(function, "__wrapped__") or function.__name__ == "<lambda>":
        raise Unknown
    try:
        lines, first = inspect.getsourcelines(function)
        # A method's source is indented: it becomes the body of an `if`, so that texts of several lines stay as they are.
        indented = lines[0][:1].isspace()
        module = ast.parse("if True:\n" * indented + "".join(lines))
    except (OSError, TypeError, SyntaxError) as error:
        raise Unknown from error
    definition: Any = module.body[0]
    if indented:
        definition = definition.body[0]
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        raise Unknown
    ast.increment_lineno(module, first - 1 - indented)
    definition.decorator_list = []
    definition.returns = None
    arguments = definition.args
    for argument in [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]:
        if argument is not None:
            argument.annotation = None
    code = function.__code__
    if _steps(_code_of(definition, function, code.co_freevars)) != _steps(code):
        raise Unknown  # the file was changed since
    return definition


def _steps(code: Any) -> list[tuple[str, Any | None]]:
    """What the code does, but for jump targets, and how a method is looked up: of names that the file imports it is
    done otherwise.
    """
    return [
        (
            step.opname.replace("LOAD_METHOD", "LOAD_ATTR"),
            step.argval if type(step.argval) in _PLAIN else None,
        )
        for step in dis.get_instructions(code)
        if step.opcode not in dis.hasjrel and step.opname != "PUSH_NULL"
    ]


def _code_of(definition: Any, function: Callable[..., Any], cells: Any) -> Any:
    """The code of the definition, compiled where the names of `cells` are an outer function's variables."""
    arguments = definition.args
    defaults, keyword_defaults = arguments.defaults, arguments.kw_defaults
    arguments.defaults = [ast.Constant(None) for _ in defaults]
    arguments.kw_defaults = [d and ast.Constant(None) for d in keyword_defaults]
    # Within a class, names like __x are the class's own.
    owner = function.__qualname__.split(".")[-2:-1]
    body = [definition]
    if owner and owner[0] != "<locals>":
        body = [ast.ClassDef(name=owner[0], bases=[], keywords=[], body=body, decorator_list=[])]
    outer = [
        ast.Assign(targets=[ast.Name(c, ast.Store())], value=ast.Constant(None))
        for c in cells
        if c != "__class__"
    ]
    factory = ast.parse(f"def {_FACTORY}(): pass")
    made: Any = factory.body[0]
    made.body = [*outer, *body]
    try:
        code = compile(
            ast.fix_missing_locations(factory), function.__code__.co_filename, "exec", dont_inherit=True
        )
    finally:
        arguments.defaults, arguments.kw_defaults = defaults, keyword_defaults
    for _ in range(2 + (len(body[0].body) > 0 and isinstance(body[0], ast.ClassDef))):
        code = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    return code


def rebuilt(function: Callable[..., Any], definition: Any, values: Any) -> Any:
    """The function with the definition for its body, in which `values` are further variables."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: types.CellType(value) for name, value in values.items()}
    code = _code_of(definition, function, cells)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    for name in ("__module__", "__qualname__", "__doc__", "__kwdefaults__", "__annotations__"):
        setattr(made, name, getattr(function, name))
    made.__dict__.update(function.__dict__)
    return made
