"""Expressions of pointwise arithmetic as programs."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight._C import OpMethod, Tensor, _Fused, ops

_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_POWERS = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}


def _fusable(op: Any) -> Any:
    """Whether a program can hold a call of it: one elementwise kernel with a derivative in such terms."""
    return op.traits.fusable and op.traits.result != "bool" and not op._op_name.endswith("_")


METHODS = {n: op._op_name for n, op in vars(Tensor).items() if isinstance(op, OpMethod) and _fusable(op)}
_OPERANDS = {op._op_name: op.traits.operands for op in ops.values() if _fusable(op)}
_MOST_TERMS, _MOST_LEAVES = 200, 32  # of a program
# Methods by which a tensor is asked for something.
_ASKING = {
    "amax", "amin", "chunk", "clone", "contiguous", "cumsum", "detach", "dim", "double", "expand", "expand_as",
    "flatten", "float", "item", "log_softmax", "max", "mean", "min", "numel", "permute", "prod", "reshape", "size",
    "softmax", "split", "squeeze", "std", "sum", "t", "transpose", "unsqueeze", "var", "view",
}  # fmt: skip


@functools.cache
def _functions() -> Any:
    """The ops by the functions that people call them by."""
    table = {id(op): op._op_name for op in ops.values() if _fusable(op)}
    # Of two tensors they are what another op is.
    return table | {id(rl.true_divide): "div", id(rl.max): "maximum", id(rl.min): "minimum"}


class NotPointwise(Exception):
    """An expression that is no pointwise arithmetic."""


def _number(node: Any) -> Any:
    """The number that a constant is, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand)
        return None if number is None else -number
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 2**53 else None


class Scope:
    """What names mean where the function was made."""

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        self.own = {*code.co_varnames, *code.co_cellvars}
        self.cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self.globals = function.__globals__

    def is_harmless(self, call: Any) -> Any:
        """Whether a call cannot change a tensor that the function has: those of rushlight's and math's functions, and of
        methods by which tensors are asked for something.
        """
        function = self.value_of(call.func)
        if isinstance(function, types.FunctionType | types.BuiltinFunctionType | type(rl.add)):
            written = [k for k in call.keywords if k.arg in ("inplace", "out")]
            written += [a for a in call.args if isinstance(a, ast.Constant) and a.value is True]
            return function.__module__.partition(".")[0] in ("rushlight", "math") and not written
        return (
            isinstance(call.func, ast.Attribute) and call.func.attr in _ASKING and _is_path(call.func.value)
        )

    def op_of(self, node: Any) -> Any:
        """The op that a called expression is, or None: torch.tanh, F.relu, tanh."""
        value = self.value_of(node)
        return None if value is None else _functions().get(id(value))

    def value_of(self, node: Any) -> Any:
        """What a name, or a name in a module, stands for; None if that is not known here."""
        if isinstance(node, ast.Name) and node.id not in self.own:
            if node.id not in self.cells:
                return self.globals.get(node.id)
            try:
                return self.cells[node.id].cell_contents
            except ValueError:
                return None
        if isinstance(node, ast.Attribute):
            module = self.value_of(node.value)
            return getattr(module, node.attr, None) if isinstance(module, types.ModuleType) else None
        return None


def _may_write(node: Any) -> bool:
    """Whether evaluating the expression may change a tensor, or a name: then it is not to be moved."""
    for part in ast.walk(node):
        if isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            name = part.func.attr
            if name.endswith("_") and not name.endswith("__"):
                return True
    return False


def _is_path(node: Any) -> Any:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_path(node.value))


class Group:
    """Expressions that become one program. Values are ("leaf", i) and ("term", i) until it is complete."""

    def __init__(self, scope: Any) -> None:
        self.scope = scope
        self.leaves: list[ast.expr] = []  # expressions that are evaluated as they are
        self.known: dict[str, Any] = {}  # leaves that are just names, by their text
        self.terms: list[Any] = []
        self.names: dict[str, Any] = {}  # variables that statements of the group set
        self.reads: dict[str, int] = {}  # how often the group reads what it set them to
        self.plain: list[ast.stmt] = []  # the same statements, in terms of the leaves
        self.held: set[int] = set()  # leaves that the function goes on holding: a call could change them
        self.read_held = False  # whether an op has read one
        self.ops: dict[str, Any] = {}  # functions that they call

    def count(self) -> int:
        return sum(isinstance(term, tuple) for term in self.terms)

    def add(self, node: Any) -> Any:
        """(value, the same expression in terms of the leaves) of an expression that is pointwise."""
        before = (
            len(self.leaves),
            len(self.terms),
            dict(self.known),
            set(self.held),
            self.read_held,
            dict(self.reads),
        )
        try:
            return self._build(node, must=True)
        except NotPointwise:
            del self.leaves[before[0] :], self.terms[before[1] :]
            self.known, self.held, self.read_held, self.reads = before[2:]
            raise

    def _term(self, *term: Any) -> tuple[str, int]:
        if len(self.terms) == _MOST_TERMS:
            raise NotPointwise
        self.read_held = self.read_held or any(v[0] == "leaf" and v[1] in self.held for v in term[1:])
        self.terms.append(term if len(term) > 1 else term[0])
        return ("term", len(self.terms) - 1)

    def _build(self, node: Any, must: bool = False) -> Any:
        number = _number(node)
        if number is not None and not must:
            return self._term(float(number)), node
        built = self._op(node)
        if built is not None:
            return built
        if must:
            raise NotPointwise
        return self._leaf(node)

    def _leaf(self, node: Any) -> Any:
        if _may_write(node) or isinstance(node, ast.Starred):
            raise NotPointwise
        if isinstance(node, ast.Name) and node.id in self.names:
            self.reads[node.id] = self.reads.get(node.id, 0) + 1
            return self.names[node.id], node
        if any(isinstance(part, ast.Name) and part.id in self.names for part in ast.walk(node)):
            raise NotPointwise  # it needs a value that the program has not computed yet
        calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
        if self.read_held and not all(map(self.scope.is_harmless, calls)):
            raise NotPointwise  # the op came before the call, and must see what was there before it
        text = ast.dump(node) if _is_path(node) else None
        if text in self.known:
            at = self.known[text]
        else:
            at = len(self.leaves)
            if at == _MOST_LEAVES:
                raise NotPointwise
            self.leaves.append(node)
            if not isinstance(node, ast.Call):
                self.held.add(at)
            if text is not None:
                self.known[text] = at
        return ("leaf", at), ast.copy_location(ast.Name(f"_leaf{at}", ast.Load()), node)

    def _op(self, node: Any) -> Any:
        """(value, plain) of an op, or None."""
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            (a, left), (b, right) = self._build(node.left), self._build(node.right)
            plain = ast.BinOp(left, node.op, right)
            return self._term(_OPERATORS[type(node.op)], a, b), ast.copy_location(plain, node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            exponent = _number(node.right)
            if exponent is None:
                return None
            a, left = self._build(node.left)
            return self._power(a, exponent), ast.copy_location(ast.BinOp(left, node.op, node.right), node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            a, operand = self._build(node.operand)
            return self._term("neg", a), ast.copy_location(ast.UnaryOp(node.op, operand), node)
        if isinstance(node, ast.Call):
            return self._call(node)
        return None

    def _power(self, a: Any, exponent: Any) -> tuple[str, int]:
        if exponent in _POWERS:
            return self._term(_POWERS[exponent], a)
        return self._term("pow", a, self._term(float(exponent)))

    def _call(self, node: Any) -> Any:
        name, args = self.scope.op_of(node.func), node.args
        if name is None and isinstance(node.func, ast.Attribute):
            # A method: of what is computed here, or of a leaf, which the program takes only if it is a tensor. Not of a
            # module: `math.sqrt(x)` looks the same.
            if self.scope.value_of(node.func.value) is not None or node.func.attr not in METHODS:
                return None
            name, args = METHODS[node.func.attr], [node.func.value, *node.args]
        if name is None or any(isinstance(a, ast.Starred) for a in args):
            return None
        bounds = {k.arg: k.value for k in node.keywords}
        if name == "clamp" and len(args) == 1 and set(bounds) == {"min", "max"}:
            args = [*args, bounds["min"], bounds["max"]]
        elif node.keywords:
            return None
        if len(args) != _OPERANDS[name]:
            return None
        if name == "pow":
            exponent = _number(args[1])
            if exponent is None:
                return None
            a, plain = self._build(args[0])
            return self._power(a, exponent), self._called(node, [plain, args[1]])
        if name == "where":
            built = [self._mask(args[0]), *map(self._build, args[1:])]
        else:
            built = [self._build(a) for a in args]
        return self._term(name, *(value for value, _ in built)), self._called(
            node, [plain for _, plain in built]
        )

    def _mask(self, node: Any) -> Any:
        if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS):
            raise NotPointwise
        (a, left), (b, right) = self._build(node.left), self._build(node.comparators[0])
        plain = ast.copy_location(ast.Compare(left, node.ops, [right]), node)
        return self._term(_COMPARISONS[type(node.ops[0])], a, b), plain

    def _called(self, node: Any, plain: Any) -> Any:
        """The call with operands that are already in terms of the leaves."""
        function = self.scope.value_of(node.func)
        if function is None:
            callee = ast.copy_location(ast.Attribute(plain[0], node.func.attr, ast.Load()), node)
            plain = plain[1:]
        else:
            name = f"_op{len(self.ops)}"
            self.ops[name] = function
            callee = ast.copy_location(ast.Name(name, ast.Load()), node)
        keywords = node.keywords
        if keywords:  # clamp(x, min=a, max=b): the bounds are the last two operands
            keywords = [ast.keyword(k.arg, plain[-2] if k.arg == "min" else plain[-1]) for k in node.keywords]
            plain = plain[:-2]
        return ast.copy_location(ast.Call(callee, plain, keywords), node)

    def program(self, results: Any, filename: str) -> _Fused:
        """The program that gives the values, whose plain forms are the last expressions of `plain`."""
        inputs = len(self.leaves)
        base = {"leaf": 0, "term": inputs}
        terms = [
            term if isinstance(term, float) else (term[0], *(base[kind] + i for kind, i in term[1:]))
            for term in self.terms
        ]
        return _Fused(inputs, terms, [base[kind] + i for kind, i in results], self._plain_function(filename))

    def _plain_function(self, filename: str) -> Any:
        definition = ast.parse(f"def plain({', '.join(f'_leaf{i}' for i in range(len(self.leaves)))}): pass")
        for node in ast.walk(definition):
            if hasattr(node, "lineno"):
                ast.copy_location(node, self.plain[-1])
        function: Any = definition.body[0]
        function.body = self.plain
        ast.fix_missing_locations(definition)
        namespace = dict(self.ops)
        exec(compile(definition, filename, "exec"), namespace)
        return namespace["plain"]
