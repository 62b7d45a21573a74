"""Values of a program that is only being written down: what is done to a Proxy becomes a node."""

from __future__ import annotations

import operator
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node


class TraceError(ValueError):
    """A program that can't be written down without its values: `if x > 0`, a loop over a tensor."""


class Proxy:
    """Stands for a tensor (or any value) while a function is traced: what is done to it becomes a node.

    Args:
        node (Node): whose result it stands for.
        tracer (Tracer): that records; None appends to the node's graph. Default: None

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = torch.fx.Proxy(graph.placeholder("x"))
        >>> y = (x + 1).relu()
        >>> [node.name for node in graph.nodes]
        ['x', 'add', 'relu']
    """

    def __init__(self, node, tracer=None):
        self.node = node
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        return self.tracer.iter(self)

    def __bool__(self):
        return self.tracer.to_bool(self)

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, "
            "please call torch.fx.wrap('len') at module scope"
        )

    def __index__(self):
        raise TraceError(
            f"{self}: its value is not known while tracing, so it can't be used as an index or a count"
        )

    def keys(self):
        """What ** takes of the value: the tracer says whether that can be known."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tracer: Any = next((a.tracer for a in _leaves((args, kwargs)) if isinstance(a, Proxy)), None)
        if getattr(func, "__name__", "") == "__get__" and args:  # a property of Tensor
            return tracer.create_proxy("call_function", getattr, (args[0], func.__self__.__name__), {})
        return tracer.create_proxy("call_function", func, args, kwargs)


def _leaves(value):
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, slice):
        yield from (value.start, value.stop, value.step)
    else:
        yield value


class Attribute(Proxy):
    """x.name: a call of it is a method call, anything else reads the attribute."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node = None

    @property
    def node(self):
        # Recorded when it is first wanted: a method that is called needs no node of its own.
        if self._node is None:
            read = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = read.node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator(function, reverse=False):
    def method(self, *args):
        given = (args[0], self) if reverse else (self, *args)
        return self.tracer.create_proxy("call_function", function, given, {})

    return method


for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and", "or", "xor",
):  # fmt: skip
    _function = getattr(operator, _name + "_" if _name in ("and", "or") else _name)
    setattr(Proxy, f"__{_name}__", _operator(_function))
    setattr(Proxy, f"__r{_name}__", _operator(_function, reverse=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert", "getitem"):
    setattr(Proxy, f"__{_name}__", _operator(getattr(operator, _name)))


def _setitem(self, index, value):
    self.tracer.create_proxy("call_function", operator.setitem, (self, index, value), {})


for _name, _method in (("abs", _operator(abs)), ("hash", object.__hash__), ("setitem", _setitem)):
    setattr(Proxy, f"__{_name}__", _method)


class TracerBase:
    """Makes nodes and proxies; Tracer adds modules and calls."""

    record_stack_traces = False
    graph: Any = None

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node):
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """Writes a step down and returns its result to come."""
        args, kwargs = self.create_arg(tuple(args)), self.create_arg(dict(kwargs))
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a):
        """The form in which an argument is kept in a node."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return (
                type(a)(*items)
                if hasattr(a, "_fields")
                else (rl.Size(items) if _all_ints(a) else tuple(items))
            )
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            if any(isinstance(key, (Proxy, Node)) for key in a):
                raise NotImplementedError("a dict with a traced value as a key can't be written down")
            return {key: self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(a.start, a.stop, a.step)
        if isinstance(a, (rl.Tensor, rl.nn.Module)):
            raise NotImplementedError(
                f"an argument of type {type(a).__name__} needs a Tracer that knows its module"
            )
        return a

    def to_bool(self, obj):
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """Iteration: possible where the number of items is told by the code that unpacks them."""
        import dis
        import sys

        frame = sys._getframe(2)
        code = list(dis.get_instructions(frame.f_code))
        now = next(i for i in code if i.offset == frame.f_lasti)
        if now.opname == "UNPACK_SEQUENCE":
            return (obj[i] for i in range(now.argval))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args "
            "or **kwargs function argument."
        )

    def keys(self, obj):
        return Attribute(obj, "keys")()


def _all_ints(a):
    return isinstance(a, rl.Size)


class GraphAppendingTracer(TracerBase):
    """The tracer of proxies that are made by hand: appends to a graph."""

    def __init__(self, graph=None):
        self.graph = graph if graph is not None else Graph()

    def create_arg(self, a):
        return a if isinstance(a, (rl.Tensor, rl.nn.Module)) else super().create_arg(a)


__getattr__ = _unsupported_attribute(__name__)
