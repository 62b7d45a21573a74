"""One step of a graph: an operation, its target, its arguments, and who uses the result."""

import builtins
import operator
import types

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.fx.immutable_collections import frozen

Target = object  # a function, or the name of a method, a module or an attribute
Argument = object
BaseArgumentTypes = object

_OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root")


_ASSERTIONS = ("aten::_assert_async.msg", "aten::_assert_async", "aten::sym_constrain_range")


def map_aggregate(a, fn):
    """An argument with fn applied to its leaves: lists, tuples, dicts and slices are rebuilt around them.

    Args:
        a (object): the argument of a node.
        fn (callable): applied to everything that is no such container.

    Example:
        >>> torch.fx.node.map_aggregate((1, [2, {"a": 3}]), lambda x: x * 10)
        (10, [20, {'a': 30}])
    """
    if isinstance(a, tuple):
        mapped = [map_aggregate(item, fn) for item in a]
        return type(a)(*mapped) if hasattr(a, "_fields") else tuple(mapped)
    if isinstance(a, list):
        return [map_aggregate(item, fn) for item in a]
    if isinstance(a, dict):
        return {key: map_aggregate(value, fn) for key, value in a.items()}
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a, fn):
    """An argument with fn applied to the nodes in it; other values stay.

    Args:
        a (object): the argument of a node.
        fn (callable): from a Node to what takes its place.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> torch.fx.node.map_arg((x, 2), lambda node: node.name)
        ('x', 2)
    """
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def qualified_name(function):
    """A function's name with its module, as a reader would write it: torch.relu, math.sqrt."""
    name = getattr(function, "__name__", repr(function))
    if getattr(builtins, name, None) is function:
        return f"builtins.{name}"
    for space, title in (
        (rl, "torch"), (rl.nn.functional, "torch.nn.functional"), (rl.Tensor, "torch.Tensor"), (rl.linalg, "torch.linalg"),
        (rl.fft, "torch.fft"), (rl.special, "torch.special"),
    ):  # fmt: skip
        if vars(space).get(name) is function:
            return f"{title}.{name}"
    module = getattr(function, "__module__", None) or ""
    if isinstance(function, types.BuiltinFunctionType) and vars(operator).get(name) is function:
        module = "operator"
    if module.split(".")[0] == "rushlight":
        module = "torch" + module[len("rushlight") :]
    return f"{module}.{name}" if module else name


class Node:
    """A step of a Graph, made by the graph's methods.

    `op` is its kind, `target` what it calls, `args` and `kwargs` its arguments, in which other nodes stand for
    their results; `users` are the nodes that take its result, `meta` is a dict for one's own use.

    Args:
        graph (Graph): that it belongs to.
        name (str): of its result.
        op (str): "placeholder", "get_attr", "call_function", "call_method", "call_module" or "output".
        target (callable or str): what is called: a function, or the name of a method, module or attribute.
        args (tuple): positional arguments.
        kwargs (dict): keyword arguments.
        return_type (type): of the result. Default: None

    Example:
        >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
        >>> [(node.op, node.name) for node in graph.nodes]
        [('placeholder', 'x'), ('call_function', 'relu'), ('call_function', 'add'), ('output', 'output')]
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in _OPS:
            raise AssertionError(f"Node: {op!r} is not one of {', '.join(_OPS[:-1])}")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node: the target of call_function must be callable, got {target!r}")
        if op not in ("call_function", "root") and not isinstance(target, str):
            raise ValueError(f"Node: the target of {op} must be a name, got {target!r}")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users, self._input_nodes = {}, {}
        self._args, self._kwargs = (), {}
        self.meta = {}
        self._prev = self._next = self
        self._erased = False
        self._set(tuple(args), dict(kwargs))

    def _set(self, args, kwargs):
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}
        args, kwargs = self._args, self._kwargs = frozen(args), frozen(kwargs)
        map_arg((args, kwargs), lambda n: self._input_nodes.setdefault(n))
        for new in self._input_nodes:
            new.users.setdefault(self)

    args = property(lambda self: self._args, lambda self, a: self._set(tuple(a), self._kwargs))
    kwargs = property(lambda self: self._kwargs, lambda self, k: self._set(self._args, dict(k)))
    next = property(lambda self: self._next)
    prev = property(lambda self: self._prev)
    all_input_nodes = property(lambda self: list(self._input_nodes))
    stack_trace = property(
        lambda self: self.meta.get("stack_trace"),
        lambda self, text: self.meta.__setitem__("stack_trace", text),
    )

    def _unlink(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x):
        """Moves node x before this one."""
        if x is self:
            return
        x._unlink()
        x._prev, x._next = self._prev, self
        self._prev._next = x
        self._prev = x

    def append(self, x):
        """Moves node x after this one."""
        self._next.prepend(x)

    def update_arg(self, idx, arg):
        """Replaces a positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg):
        """Puts a value before a positional argument."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key, arg):
        """Replaces a keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input, new_input):
        """Takes another node in place of one of its inputs."""
        args, kwargs = map_arg((self.args, dict(self.kwargs)), lambda n: new_input if n is old_input else n)
        self._set(args, kwargs)

    def replace_all_uses_with(self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False):
        """Gives `replace_with` to all who use this node; the users that were changed."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def is_impure(self, impure_random=True):
        """Whether the step matters even if nobody uses its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.endswith("__")
        if self.op == "call_function":
            schema = getattr(self.target, "_schema", None)
            if schema is not None:  # torch.ops.aten.add_.Tensor
                return schema.is_mutable or self.target.name() in _ASSERTIONS
            name = getattr(self.target, "__name__", "")
            return name in ("setitem", "manual_seed", "_assert") or (
                name.endswith("_") and not name.endswith("__")
            )
        if self.op == "call_module":
            owner = self.graph.owning_module
            module = owner.get_submodule(self.target) if owner is not None else None
            return getattr(module, "_is_impure", False)
        return False

    def normalized_arguments(self, *args, **kwargs):
        """PyTorch's canonical keyword form of the arguments, which is not worked out here."""
        return

    def format_node(self, placeholder_names=None, maybe_return_typename=None):
        """The node as a line of text."""
        kind = f": {getattr(self.type, '__name__', self.type)}" if self.type is not None else ""
        if self.op == "placeholder":
            default = f" (default={self.args[0]!r})" if self.args else ""
            return f"%{self.name}{kind} : [num_users={len(self.users)}] = placeholder[target={self.target}]{default}"
        if self.op == "output":
            return f"return {self.args[0]}"
        target = qualified_name(self.target) if self.op == "call_function" else self.target
        shown = f"%{self.name}{kind} : [num_users={len(self.users)}] = {self.op}[target={target}]"
        return (
            shown
            if self.op == "get_attr"
            else f"{shown}(args = {_with_percent(self.args)}, kwargs = {_keywords(self.kwargs)})"
        )

    def __repr__(self):
        return self.name


class _Shown(str):
    def __repr__(self):
        return str(self)


def _keywords(kwargs):
    return "{" + ", ".join(f"{name}: {_with_percent(value)}" for name, value in kwargs.items()) + "}"


def _with_percent(args):
    return map_arg(args, lambda n: _Shown("%" + n.name))


__getattr__ = _unsupported_attribute(__name__)
