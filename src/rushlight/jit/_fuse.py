"""Functions whose pointwise arithmetic runs as one op.

The code stays Python: it is read as a tree, and where it computes expressions like `x * torch.sigmoid(y) + 1`, or
several of them in successive statements, the arithmetic becomes one call of a `_Fused` program. That takes the values
of the names at that moment, so control flow, attributes and everything else mean what they meant; and for all it is not
made for (integers, other classes, ...) it runs the same arithmetic op by op.
"""

from __future__ import annotations

import ast
import collections
import functools
import types
from collections.abc import Callable
from typing import Any, cast

import rushlight as rl
from rushlight.jit import _source
from rushlight.jit._expressions import METHODS, Group, NotPointwise, Scope


class _Rewriter:
    """Rewrites the statements of one function."""

    def __init__(self, function: Callable[..., Any], definition: Any) -> None:
        self.scope = Scope(function)
        self.filename = function.__code__.co_filename
        self.programs: dict[str, Any] = {}
        self.loops = 0  # around the statements at hand
        self.loads = collections.Counter(  # how often each name is read in the function
            node.id
            for node in ast.walk(definition)
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
        )
        # Names that more than the statements can see: their values must always be there.
        self.shared = {*function.__code__.co_cellvars, *function.__code__.co_freevars}
        for node in ast.walk(definition):
            if isinstance(node, ast.Global | ast.Nonlocal):
                self.shared |= set(node.names)
        self.looks_at_all = any(name in self.loads for name in ("locals", "vars", "eval", "exec", "dir"))

    def _named(self, program: Any) -> str:
        name = f"_rushlight_fused{len(self.programs)}"
        self.programs[name] = program
        return name

    def body(self, statements: Any) -> Any:
        result: list[ast.stmt] = []
        while statements:
            taken, made = self._group(statements)
            if not taken:
                taken, made = 1, [self._inside(statements[0])]
            result += made
            statements = statements[taken:]
        return result

    def _group(self, statements: Any) -> Any:
        """Successive statements as one program: (how many, what they become), or (0, []) if there is no gain."""
        group, taken, joined = Group(self.scope), 0, []
        for statement in statements:
            name, value = _assignment(statement)
            if name is None or name in self.shared:
                break
            try:
                built, plain = group.add(value)
            except NotPointwise:
                break
            group.names[name] = built
            joined.append(value)
            target = ast.copy_location(ast.Name(name, ast.Store()), statement)
            group.plain.append(ast.copy_location(ast.Assign([target], plain), statement))
            taken += 1
        head: Any
        holder: Any
        head, holder = _first_part(statements[taken]) if taken < len(statements) else (None, None)
        last = None
        if taken and head is not None:
            try:
                last, plain_last = group.add(head)
                joined.append(head)
            except NotPointwise:
                pass
        if not taken or group.count() < 2:
            return 0, []
        # In a loop also what only the group reads, but before it sets it: that is the value of the turn before.
        reads = group.reads if self.loops else _names_in(joined)
        kept = [name for name in group.names if self.loads[name] > reads.get(name, 0)]
        results = [group.names[name] for name in kept] + ([last] if last else [])
        if not results:
            return 0, []
        where = statements[taken if last else taken - 1]
        parts: list[ast.expr] = [ast.copy_location(ast.Name(name, ast.Load()), where) for name in kept]
        parts += [plain_last] if last else []
        group.plain.append(
            ast.copy_location(
                ast.Return(parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())), where
            )
        )
        name = self._named(group.program(results, self.filename))
        targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in kept]
        if last:
            targets.append(ast.Name(f"{name}_last", ast.Store()))
        call = self._call(name, group, where)
        target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
        made = [ast.copy_location(ast.Assign([target], call), where)]
        if last:
            holder(ast.copy_location(ast.Name(f"{name}_last", ast.Load()), where))
            made.append(self._inside(statements[taken]))
        return taken + bool(last), made

    def _call(self, name: str, group: Any, where: Any) -> Any:
        leaves = [self._inside(leaf) for leaf in group.leaves]
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), leaves, []), where)

    def _inside(self, node: Any) -> Any:
        """A statement or expression with the expressions inside it rewritten, each as a program of its own."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return node
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call):
            group = Group(self.scope)
            try:
                value, plain = group.add(node)
            except NotPointwise:
                pass
            else:
                if group.count() > 1 and group.leaves:
                    group.plain.append(ast.copy_location(ast.Return(plain), node))
                    return self._call(self._named(group.program([value], self.filename)), group, node)
        is_loop = isinstance(node, ast.For | ast.AsyncFor | ast.While)
        self.loops += is_loop
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, field, self.body(value))
            elif isinstance(value, list):
                setattr(node, field, [self._inside(v) if isinstance(v, ast.AST) else v for v in value])
            elif isinstance(value, ast.AST):
                setattr(node, field, self._inside(value))
        self.loops -= is_loop
        return node


def _names_in(expressions: Any) -> Any:
    """How often each name is read."""
    return collections.Counter(
        node.id for e in expressions for node in ast.walk(e) if isinstance(node, ast.Name)
    )


def _assignment(statement: Any) -> Any:
    """(name, value) of `name = value`, else (None, None)."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign) and statement.simple and statement.value is not None:
        target = statement.target
    else:
        return None, None
    return (target.id, statement.value) if isinstance(target, ast.Name) else (None, None)


def _first_part(statement: Any) -> Any:
    """The part of a statement that is evaluated first, if the rest only calls its methods and reads its items, and a
    function that replaces it by another expression.
    """
    if not isinstance(statement, ast.Return | ast.Expr | ast.Assign) or statement.value is None:
        return None, None
    holder, field = statement, "value"
    node = statement.value
    while not isinstance(node, ast.BinOp | ast.UnaryOp):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in METHODS and not node.keywords:
                break
            holder, field, node = node.func, "value", node.func.value
        elif isinstance(node, ast.Attribute | ast.Subscript):
            holder, field, node = node, "value", node.value
        else:
            break
    return node, functools.partial(setattr, holder, field)


def fuse_function(function: Callable[..., Any]) -> Any:
    """The function with its pointwise arithmetic as programs; itself if there is none, or its source is not known."""
    if not isinstance(function, types.FunctionType) or hasattr(function, "_fused_from"):
        return function
    own = function.__dict__
    if "_fused_as" not in own:
        own["_fused_as"] = _fused_as(function)
    return own["_fused_as"] or function


def _fused_as(function: Callable[..., Any]) -> Any:
    try:
        definition = _source.tree_of(function)
        rewriter = _Rewriter(function, definition)
        if rewriter.looks_at_all:
            return None
        definition.body = rewriter.body(definition.body)
        if not rewriter.programs:
            return None
        made = _source.rebuilt(function, definition, rewriter.programs)
    except (_source.Unknown, RecursionError):
        return None
    made._fused_from = function
    return made


def fuse_module(module: rl.nn.Module) -> Any:
    """Gives the modules in a module, where their classes are not rushlight's own, forward methods with programs."""
    for part in module.modules():
        cls = getattr(
            type(part), "_plain_class", type(part)
        )  # of a scripted module, the class that was scripted
        forward = getattr(cls, "forward", None)
        own = part.__dict__.get("forward")
        if cls.__module__.partition(".")[0] == "rushlight" or (own and not hasattr(own, "_fused_from")):
            continue
        made = fuse_function(cast(Any, forward))
        if made is not forward:
            part.__dict__["forward"] = types.MethodType(made, part)
    return module


def fuse(obj: Any) -> Any:
    """What jit.script and compile give back for a function, a method or a module."""
    if isinstance(obj, rl.nn.Module):
        return fuse_module(obj)
    if isinstance(obj, types.MethodType):
        made = fuse_function(obj.__func__)
        return obj if made is obj.__func__ else types.MethodType(made, obj.__self__)
    return fuse_function(obj)
