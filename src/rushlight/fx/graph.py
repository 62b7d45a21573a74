"""A program as a list of nodes, and the Python source that it stands for."""

from __future__ import annotations

import builtins
import keyword
import math
import operator
import re
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.fx.immutable_collections import immutable_dict, immutable_list
from rushlight.fx.node import Node, map_arg, qualified_name
from rushlight.ops import Op, Overload

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=",
}  # fmt: skip
_SYMBOLS = {getattr(operator, name): symbol for name, symbol in _BINARY.items()}


class PythonCode:
    """Source text and the global names that it uses."""

    def __init__(self, src, globals):
        self.src, self.globals = src, globals


class CodeGen:
    """How source is written; PyTorch lets programs replace it, here it is only carried.

    Example:
        >>> torch.fx.Graph().set_codegen(torch.fx.CodeGen())
    """


class _Names:
    """Names of nodes: each once, and none that Python has for itself."""

    def __init__(self):
        self.used = {}

    def take(self, candidate):
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if name[0].isdigit():
            name = "_" + name
        match = re.match(r"(.*)_(\d+)$", name)
        base, number = (match[1], int(match[2])) if match else (name, None)
        candidate = name if number is None else f"{base}_{number}"
        number = number or 0
        while (
            candidate in self.used
            or keyword.iskeyword(candidate)
            or hasattr(builtins, candidate)
            or candidate == "self"
        ):
            number += 1
            candidate = f"{base}_{number}"
        self.used[candidate] = True
        return candidate


class _NodeList:
    """The nodes in order, and `reversed(...)`; safe to change the graph while going through it."""

    def __init__(self, graph, backwards=False):
        self._graph, self._backwards = graph, backwards

    def __iter__(self):
        step = "_prev" if self._backwards else "_next"
        node = getattr(self._graph._root, step)
        while node is not self._graph._root:
            following = node
            if not node._erased:
                yield node
            node = getattr(following, step)

    def __reversed__(self):
        return iter(_NodeList(self._graph, not self._backwards))

    def __len__(self):
        return sum(1 for _ in self)


class _InsertPoint:
    """Where new nodes go, from its making on; as a block: until its end."""

    def __init__(self, graph, before):
        self._graph, self._before = graph, graph._insert
        graph._insert = before

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        self._graph._insert = self._before


class Graph:
    """The steps of a function, from placeholders to one output, each of them a Node.

    `nodes` are in the order in which they run. Methods named after kinds of nodes make them, at the end or at
    the point that inserting_before and inserting_after set; lint() checks the graph.

    Args:
        owning_module (GraphModule): accepted. Default: None
        tracer_cls (type): accepted. Default: None
        tracer_extras (dict): accepted. Default: None

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(torch.add, (x, 1))
        >>> _ = graph.output(y)
        >>> torch.fx.GraphModule(nn.Module(), graph)(torch.ones(2))
        tensor([2., 2.])
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._names = _Names()
        self._insert = self._root.prepend
        self.owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self.meta = {}

    @property
    def nodes(self):
        """The nodes in their order; the graph may be changed while going through them."""
        return _NodeList(self)

    @property
    def output_node_or_none(self):
        """The output, if there is one."""
        return next((n for n in reversed(self.nodes) if n.op == "output"), None)

    def output_node(self):
        """The output."""
        node = self.output_node_or_none
        if node is None:
            raise AssertionError("the graph has no output")
        return node

    def set_codegen(self, codegen):
        """Accepts another way of writing source."""
        self._codegen = codegen

    def find_nodes(self, *, op, target=None, sort=True):
        """The nodes of a kind.

        Args:
            op (str): the kind.
            target (object): what they call; None takes all. Default: None
            sort (bool): accepted. Default: True
        """
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # making nodes

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """A new node at the point of insertion."""
        node = Node(
            self,
            self._names.take(name or self._suggest(op, target)),
            op,
            target,
            args or (),
            kwargs or {},
            type_expr,
        )
        self._insert(node)
        return node

    @staticmethod
    def _suggest(op, target):
        if isinstance(target, (Op, Overload)):  # torch.ops.aten.add.Tensor is add
            packet = target if isinstance(target, Op) else target.overloadpacket
            return packet.__name__
        if op == "call_function":
            return getattr(target, "__name__", "function").strip("_") or "function"
        return target.replace(".", "_") if isinstance(target, str) else str(target)

    def placeholder(self, name, type_expr=None, default_value=...):
        """A new argument of the function."""
        return self.create_node(
            "placeholder", name, () if default_value is ... else (default_value,), type_expr=type_expr
        )

    def get_attr(self, qualified_name, type_expr=None):
        """A new node that reads an attribute of the module, by its path."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """A new node that calls a submodule, by its path."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """A new node that calls a method of its first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """A new node that calls a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result, type_expr=None):
        """A new node that returns a value."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda n: n):
        """A copy of a node, of this or another graph, with its inputs replaced."""
        args, kwargs = map_arg((node.args, dict(node.kwargs)), arg_transform)
        copy = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copy.meta = dict(node.meta)
        return copy

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copies the nodes of another graph here; the value of its output."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], val_map.__getitem__)
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo=None):
        copy = Graph(tracer_cls=self._tracer_cls)
        values: dict[Node, Node] = {}
        for node in self.nodes:
            values[node] = copy.node_copy(node, values.__getitem__)
        return copy

    # changing the graph

    def erase_node(self, to_erase):
        """Removes a node that has no users."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{list(to_erase.users)}!"
            )
        if to_erase._erased:
            return
        to_erase._set((), {})
        to_erase._unlink()
        to_erase._erased = True

    def inserting_before(self, n=None):
        """A block in which new nodes go before n (without n: to the beginning)."""
        return self.inserting_after(self._root) if n is None else _InsertPoint(self, n.prepend)

    def inserting_after(self, n=None):
        """A block in which new nodes go after n (without n: to the end)."""
        if n is None:
            return _InsertPoint(self, self._root.prepend)
        last = [n]

        def point(node):
            last[0].append(node)
            last[0] = node

        return _InsertPoint(self, point)

    def eliminate_dead_code(self, is_impure_node=None):
        """Removes the steps whose results nobody uses; whether there were any."""
        changed = False
        for node in reversed(self.nodes):
            impure = is_impure_node(node) if is_impure_node else node.is_impure()
            if not impure and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def on_generate_code(self, make_transformer):
        raise NotImplementedError(
            "Graph.on_generate_code: rushlight writes the source of graphs in one way only"
        )

    def lint(self):
        """Raises where a node is used before it is made, belongs to another graph, or names what its module lacks."""
        seen, names = set(), set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined!"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op == "call_module":
                self.owning_module.get_submodule(node.target)

    # showing

    def __str__(self):
        return "\n".join(["graph():", *("    " + n.format_node() for n in self.nodes)])

    def print_tabular(self):
        """Prints the nodes as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2], "-" * widths[3], "-" * widths[4]))
        print(
            "\n".join(
                "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
            )
        )

    # source

    def python_code(self, root_module="self", **options):
        """`def forward(self, ...)` that does what the graph says."""
        return _Writer(self, root_module).write()


def last_uses(graph):
    """{node: the nodes whose results nobody takes after it}."""
    seen: set[Node] = set()
    result: dict[Node, list[Node]] = {}
    for node in reversed(graph.nodes):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                result.setdefault(node, []).append(used)
    return result


_OF_TORCH = (rl.dtype, rl.memory_format, rl.layout)  # a constant's repr is its name


def _resolve(path):
    value: Any = rl
    for part in path.split(".")[1:]:
        value = getattr(value, part, None)
    return value


class _Writer:
    """Writes a graph as the source of a function, and collects the globals that it needs."""

    def __init__(self, graph, root):
        self.graph, self.root = graph, root
        self.given, self.parameters, self.lines = {}, [], []

    def name_of(self, value):
        """A global name for an object that has no literal form."""
        if isinstance(value, (Op, Overload)):
            self.given["torch"] = rl
            return f"torch.ops.{value}"
        if isinstance(value, _OF_TORCH):
            self.given["torch"] = rl
            return repr(value)
        path = qualified_name(value) if callable(value) else ""
        if path.startswith("builtins."):
            return path[len("builtins.") :]
        if path.startswith("torch.") and _resolve(path) is value:
            self.given["torch"] = rl
            return path
        wanted = re.sub(r"\W", "_", qualified_name(value) if callable(value) else type(value).__name__)
        name, number = wanted, 0
        while self.given.get(name, value) is not value or self.is_taken(name):
            number += 1
            name = f"{wanted}_{number}"
        self.given[name] = value
        return name

    def is_taken(self, name):
        return hasattr(builtins, name) or name in self.graph._names.used

    def text(self, value):
        """An argument as an expression."""
        text, kind = self.text, type(value)
        if isinstance(value, Node):
            return value.name
        if kind in (int, bool, str, bytes, type(None), type(...)):
            return repr(value)
        if kind is float:
            if value != value or abs(value) == math.inf:
                self.given.update(inf=math.inf, nan=math.nan)
            return repr(value)
        if kind is rl.device:
            self.given["device"] = rl.device
            return repr(value)
        if kind in (list, immutable_list):
            return f"[{', '.join(map(text, value))}]"
        if kind is tuple:
            return f"({', '.join(map(text, value))}{',' if len(value) == 1 else ''})"
        if kind in (dict, immutable_dict):
            return "{" + ", ".join(f"{text(k)}: {text(v)}" for k, v in value.items()) + "}"
        if kind is slice:
            return f"slice({text(value.start)}, {text(value.stop)}, {text(value.step)})"
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{self.name_of(kind)}({', '.join(map(text, value))})"
        return self.name_of(value)

    def call(self, args, kwargs):
        return ", ".join([*map(self.text, args), *(f"{k} = {self.text(v)}" for k, v in kwargs.items())])

    def attribute(self, path):
        result = self.root
        for part in path.split("."):
            result = f"{result}.{part}" if part.isidentifier() else f'getattr({result}, "{part}")'
        return result

    def value(self, node):
        """What a node computes, as an expression."""
        text, args = self.text, node.args
        if node.op == "get_attr":
            return self.attribute(node.target)
        if node.op == "call_module":
            return f"{self.attribute(node.target)}({self.call(args, node.kwargs)})"
        if node.op == "call_method":
            return f"{text(args[0])}.{node.target}({self.call(args[1:], node.kwargs)})"
        if node.target in _SYMBOLS and len(args) == 2 and not node.kwargs:
            return f"{text(args[0])} {_SYMBOLS[node.target]} {text(args[1])}"
        if node.target is operator.neg:
            return f"-{text(args[0])}"
        if node.target is operator.getitem and len(args) == 2:
            return f"{text(args[0])}[{text(args[1])}]"
        if node.target is getattr and len(args) == 2 and str(args[1]).isidentifier():
            return f"{text(args[0])}.{args[1]}"
        return f"{self.name_of(node.target)}({self.call(args, node.kwargs)})"

    def begin(self):
        """The parameters, from the placeholders."""
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        if hasattr(self.graph._codegen, "header"):
            from rushlight.fx import _pytree as fx_pytree

            self.parameters, self.lines = self.graph._codegen.header([n.name for n in placeholders])
            self.given.update(fx_pytree=fx_pytree, pytree=rl.utils._pytree)
            return
        for node in placeholders:
            default = f" = {self.text(node.args[0])}" if node.args else ""
            kind = f" : {self.name_of(node.type)}" if isinstance(node.type, type) else ""
            self.parameters.append(node.target + kind + default)
            raw = node.target.lstrip("*")
            if raw != node.name:
                self.lines.append(f"{node.name} = {raw}")

    def result(self, value):
        """The line that returns."""
        text = self.text(value)
        if hasattr(self.graph._codegen, "result"):
            return self.graph._codegen.result(text, isinstance(value, (list, tuple)))
        return f"return {text}"

    def write(self):
        last, returned = last_uses(self.graph), ""
        self.begin()
        for node in self.graph.nodes:
            if node.op == "output":
                self.lines.append(self.result(node.args[0]))
                if isinstance(node.type, type):
                    returned = f" -> {self.name_of(node.type)}"
            elif node.op != "placeholder":
                unused = [] if node.users else [node]
                dead = " = ".join(n.name for n in (*last.get(node, ()), *unused))
                self.lines.append(f"{node.name} = {self.value(node)}" + (f";  {dead} = None" if dead else ""))
        body = "\n    ".join(self.lines or ["pass"])
        head = f"def forward({', '.join([self.root, *self.parameters])}){returned}"
        # As PyTorch has it, with room for globals in front and an empty line of the body behind.
        return PythonCode(f"\n\n\n{head}:\n    {body}\n    ", self.given)


__getattr__ = _unsupported_attribute(__name__)
