"""A module whose forward is compiled from a graph."""

from __future__ import annotations

import copy
import linecache
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

_count = 0


def _bring(source, path, target):
    """Puts source.path into target.path, making plain modules on the way."""
    *prefix, last = path.split(".")
    for part in prefix:
        inner = getattr(source, part)
        if not hasattr(target, part):
            target.add_module(part, rl.nn.Module())
        source, target = inner, getattr(target, part)
    _put(target, last, getattr(source, last))


def _put(target, name, value):
    if isinstance(value, rl.Tensor) and not isinstance(value, rl.nn.Parameter):
        target.register_buffer(name, value)
    else:
        setattr(target, name, value)


class GraphModule(rl.nn.Module):  # type: ignore[misc, valid-type]
    """A graph that runs as a module: `graph` to read or change, recompile() after a change, `code` for the source.

    Args:
        *args (object): the module (or dict) that parameters and submodules are taken from, the Graph, and the
            name of the class; a name is also taken as class_name.

    Example:
        >>> traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        >>> for node in traced.graph.nodes:
        ...     if node.op == "call_module" and node.target == "1":
        ...         node.op, node.target = "call_method", "tanh"
        >>> _ = traced.recompile()
        >>> "tanh" in traced.code
        True
    """

    def __new__(cls, *args, **kwargs):
        base = next(c for c in cls.__mro__ if not c.__dict__.get("_of_instance"))
        # Programs know a class of one instance, whose forward belongs to the class, by PyTorch's name in its repr.
        qualname = "GraphModule.__new__.<locals>.GraphModuleImpl"
        space = {"_of_instance": True, "__module__": base.__module__, "__qualname__": qualname}
        own = type(base.__name__, (base,), space)
        return super().__new__(own)

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, rl.nn.Module):
            self.training = root.training
            for node in graph.nodes:
                if node.op in ("call_module", "get_attr"):
                    _bring(root, node.target, self)
        elif isinstance(root, dict):
            wanted = [n.target for n in graph.nodes if n.op in ("call_module", "get_attr")]
            for target in sorted(set(wanted), key=lambda t: t.count(".")):
                if target not in root:
                    raise RuntimeError(
                        f"Node referenced target {target} but that target was not provided in ``root``!"
                    )
                *prefix, last = target.split(".")
                owner = self
                for part in prefix:
                    if not hasattr(owner, part):
                        owner.add_module(part, rl.nn.Module())
                    owner = getattr(owner, part)
                _put(owner, last, root[target])
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.meta = {}
        self.graph = graph

    @property
    def graph(self):
        return self._graph

    @graph.setter
    def graph(self, graph):
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self):
        """The source of forward."""
        return self._code

    def recompile(self):
        """Compiles forward again after the graph has changed."""
        global _count
        info = getattr(self._graph._codegen, "pytree_info", None)
        if info is not None:
            self._in_spec, self._out_spec = info.in_spec, info.out_spec
        python = self._graph.python_code("self")
        self._code = python.src
        _count += 1
        file = f"<graph {_count} of {type(self).__name__}>"
        linecache.cache[file] = (len(python.src), None, python.src.splitlines(True), file)  # for tracebacks
        space = dict(python.globals)
        exec(compile(python.src, file, "exec"), space)
        type(self).forward = space["forward"]
        return python

    def add_submodule(self, target, m):
        """Adds a module at a dotted path; whether it could."""
        *prefix, last = target.split(".")
        owner = self
        for part in prefix:
            inner = getattr(owner, part, None)
            if inner is None:
                inner = rl.nn.Module()
                setattr(owner, part, inner)
            if not isinstance(inner, rl.nn.Module):
                return False
            owner = inner
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target):
        """Removes a module at a dotted path; whether it was there."""
        *prefix, last = target.split(".")
        try:
            owner = self.get_submodule(".".join(prefix))
        except AttributeError:
            return False
        if not isinstance(getattr(owner, last, None), rl.nn.Module):
            return False
        delattr(owner, last)
        return True

    def delete_all_unused_submodules(self):
        used = {n.target for n in self.graph.nodes if n.op in ("call_module", "get_attr")}
        for name, _ in list(self.named_modules()):
            if name and not any(
                u == name or u.startswith(name + ".") or name.startswith(u + ".") for u in used
            ):
                self.delete_submodule(name)

    def __deepcopy__(self, memo):
        holder = rl.nn.Module()
        holder.__dict__.update(
            {k: copy.deepcopy(v, memo) for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        )
        new = GraphModule(holder, copy.deepcopy(self._graph), type(self).__name__)
        for name, value in holder.__dict__.items():
            if name not in new.__dict__:
                new.__dict__[name] = value
        new.meta = dict(self.meta)
        return new

    __copy__ = None

    def __reduce__(self):
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        nodes = [
            (n.name, n.op, n.target, _packed(n.args), _packed(n.kwargs), n.type) for n in self._graph.nodes
        ]
        return _unpack, (state, nodes, type(self).__name__)

    def print_readable(self, print_output=True, **options):
        text = f"class {type(self).__name__}(torch.nn.Module):\n    " + self._code.replace("\n", "\n    ")
        if print_output:
            print(text)
        return text

    def __str__(self):
        return "\n".join(
            [
                super().__repr__(),
                self._code,
                "# To see more debug info, please use `graph_module.print_readable()`",
            ]
        )


class _Ref:
    """A node in a pickled graph: its name."""

    def __init__(self, name):
        self.name = name


def _packed(args):
    from rushlight.fx.node import map_arg

    return map_arg(args, lambda n: _Ref(n.name))


def _unpack(state, nodes, name):
    from rushlight.fx.graph import Graph
    from rushlight.fx.node import map_aggregate

    graph = Graph()
    made: dict[str, Any] = {}
    for node_name, op, target, args, kwargs, kind in nodes:
        args, kwargs = map_aggregate((args, kwargs), lambda a: made[a.name] if isinstance(a, _Ref) else a)
        made[node_name] = graph.create_node(op, target, args, kwargs, node_name, kind)
    holder = rl.nn.Module()
    holder.__dict__.update(state)
    return GraphModule(holder, graph, name)


del GraphModule.__copy__
__getattr__ = _unsupported_attribute(__name__)
