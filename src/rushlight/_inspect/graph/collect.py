"""The recorded graph as a tree of groups: modules in modules, ops in them, in the order they ran."""

from __future__ import annotations

import math
from typing import Any

from rushlight.nn import Parameter

GROUP_LIMIT = 120  # parts of one group that are drawn singly; more are folded by line, then in the middle


class Op:
    """A node of the graph, or a leaf that is no parameter of a known module."""

    def __init__(self, title, shapes, site, order, kind="op", tooltip=""):
        self.title, self.shapes, self.site, self.order, self.kind = title, shapes, site, order, kind
        self.tooltip = tooltip
        self.parameters = []  # (name, shape) of leaves that only feed ops directly
        self.group = None

    ops = 1


class Group:
    """The ops of one call of a module (`kind` "module"), of one line ("line"), or too many to draw ("fold")."""

    def __init__(self, name, title, parent, kind="module"):
        self.name, self.title, self.group, self.kind = name, title, parent, kind
        self.children = []
        self.order = math.inf
        self.ops = 0
        self.site = None
        self.shapes = []
        self.elements = {}  # id of a parameter -> its number of elements
        self.library = False  # a class of rushlight's own

    @property
    def path(self):
        names, at = [], self
        while at is not None and at.group is not None:
            names.append(at.name)
            at = at.group
        return ".".join(n for n in reversed(names) if n)


class Collected:
    """`root` holds everything; `edges` are (from op, to op), data flowing forward; `outputs` the last ops."""

    def __init__(self, outputs, model=None):
        self.root = Group("", "", None)
        self.edges = []
        self.leaves = 0
        self._scopes = {}
        self._kept = []  # what ids in tables stand for stays alive
        self._names: dict[Any, str] = {}
        nodes = self._walk(outputs)
        self._name_parameters(model, nodes)
        made = {node: self._op(node) for node in nodes if type(node).__name__ != "AccumulateGrad"}
        leaf_ops = {}
        for node, op in made.items():
            for parent, _ in node.next_functions:
                if parent is None:
                    continue
                if parent in made:
                    self.edges.append((made[parent], op))
                    continue
                leaf = parent.variable
                name = self._names.get(id(leaf))
                if name is None and isinstance(leaf, Parameter):  # of a module that is gone
                    name = "parameter"
                if name is not None:
                    op.parameters.append((self._short(name, op.group), tuple(leaf.shape)))
                    at = op.group
                    while at is not None:
                        at.elements[id(leaf)] = leaf.numel()
                        at = at.group
                else:
                    if parent not in leaf_ops:
                        leaf_ops[parent] = self._leaf(leaf)
                    self.edges.append((leaf_ops[parent], op))
        self.leaves = sum(1 for node in nodes if type(node).__name__ == "AccumulateGrad")
        ops = [*leaf_ops.values(), *made.values()]
        for t in outputs:
            if t.grad_fn is None:
                ops.append(self._leaf(t))
        self.ops = len(made)
        self._fill(ops)
        self.outputs = [made[t.grad_fn] for t in outputs if t.grad_fn is not None]
        _fold(self.root)

    def _walk(self, outputs):
        stack = [t.grad_fn for t in outputs if t.grad_fn is not None]
        seen = dict.fromkeys(stack)
        while stack:
            for parent, _ in stack.pop().next_functions:
                if parent is not None and parent not in seen:
                    seen[parent] = None
                    stack.append(parent)
        return list(seen)

    def _name_parameters(self, model, nodes):
        roots = {} if model is None else {id(model): model}
        if model is None:
            for node in nodes:
                scope = node._scope
                if scope is None:
                    continue
                while scope[0] is not None:
                    scope = scope[0]
                module = scope[1]() if scope[1] is not None else None
                if module is not None:
                    roots.setdefault(id(module), module)
        for module in roots.values():
            prefix = f"{type(module).__name__}." if len(roots) > 1 else ""
            for name, parameter in module.named_parameters():
                self._kept.append(parameter)
                self._names.setdefault(id(parameter), prefix + name)

    @staticmethod
    def _short(name, group):
        """A parameter's name as seen from inside the module that owns it."""
        path = group.path.split(".")
        for start in range(len(path)):
            prefix = ".".join(path[start:]) + "."
            if len(prefix) > 1 and name.startswith(prefix):
                return name[len(prefix) :]
        return name

    def _op(self, node):
        shapes = [(tuple(m.shape), str(m.dtype).rpartition(".")[2]) for m in node._input_metadata]
        name = type(node).__name__
        title, kind = name.rstrip("0123456789"), "op"
        if title.endswith("Backward"):
            title = title[:-8]
        if name == "CopySlices":
            title, kind = "write into a view", "inplace"
        elif hasattr(node, "_forward_cls"):
            kind = "function"
        op = Op(title, shapes, node._site, node._sequence_nr(), kind, name)
        op.group = self._group(node._scope)
        return op

    def _leaf(self, tensor):
        op = Op("leaf", [(tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2])], None, -1, "leaf")
        op.tooltip = "a leaf that requires grad: its gradient arrives in .grad"
        op.group = self.root
        return op

    def _group(self, scope):
        missing = []
        while scope is not None and id(scope) not in self._scopes:
            missing.append(scope)
            scope = scope[0]
        group = self.root if scope is None else self._scopes[id(scope)]
        for scope in reversed(missing):
            outer, weak, kind = scope
            module = weak() if weak is not None else None
            name = child_name(outer, module)
            group = Group(name, kind.__name__, group)
            group.library = kind.__module__.startswith("rushlight.")
            self._kept.append(scope)
            self._scopes[id(scope)] = group
        return group

    def _fill(self, ops):
        """Puts ops into their groups, and groups into theirs, in the order of the calls."""
        for op in sorted(ops, key=lambda o: o.order):
            child, at = op, op.group
            while at is not None:
                if child.kind != "module" or child.order == math.inf:
                    at.children.append(child)
                    if child.kind == "module":
                        child.order = op.order
                at.ops += op.kind != "leaf"
                at.site = at.site or op.site
                at.shapes = op.shapes
                child, at = at, at.group


def child_name(outer: Any, module: Any) -> Any:
    """The name of a module in the module that called it, "" if it has none."""
    caller = outer[1]() if outer is not None and outer[1] is not None else None
    if caller is None or module is None:
        return ""
    for name, child in caller._modules.items():
        if child is module:
            return name
    for name, child in caller.named_modules():
        if child is module:
            return name
    return ""


def _fold(root):
    """Long groups become short: neighbours from one line are one part, then the middle is one part."""
    stack = [root]
    while stack:
        group = stack.pop()
        if len(group.children) > GROUP_LIMIT:
            group.children = _by_line(group)
        if len(group.children) > GROUP_LIMIT:
            half = GROUP_LIMIT // 2
            middle = group.children[half:-half]
            group.children[half:-half] = [_made(group, middle, "fold")]
        stack += [c for c in group.children if isinstance(c, Group) and c.kind == "module"]


def _by_line(group):
    runs: list[Any] = []
    for child in group.children:
        plain = isinstance(child, Op) and child.kind != "leaf"
        if plain and runs and runs[-1][0] and runs[-1][1][-1].site == child.site:
            runs[-1][1].append(child)
        else:
            runs.append((plain, [child]))
    return [c for _, run in runs for c in ([_made(group, run, "line")] if len(run) > 2 else run)]


def _made(parent, children, kind):
    ops = sum(c.ops for c in children)
    group = Group("", f"… {ops:,} ops …" if kind == "fold" else f"{ops:,} ops", parent, kind)
    group.children = children
    group.ops = ops
    group.order = children[0].order
    group.site, group.shapes = children[-1].site, children[-1].shapes
    for child in children:
        child.group = group
    return group
