"""What a model computes on the way: its graph is recorded by torch.fx, cut after the values asked for, and run as a module."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

from rushlight import fx, nn

from .. import ops

__all__ = ["create_feature_extractor", "get_graph_node_names"]


class _Tracer(fx.Tracer):
    """A tracer that knows in which module each value is computed."""

    def __init__(self, leaf_modules: Any = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Building blocks count as one step, as the layers of nn do.
        blocks = [v for v in vars(ops).values() if isinstance(v, type) and issubclass(v, nn.Module)]
        self.leaves = (*leaf_modules, *blocks)
        self.path = ""
        self.names: dict[Any, str] = {}  # node: "layer1.0.add"

    def is_leaf_module(self, m: Any, qualname: Any) -> bool:
        return isinstance(m, self.leaves) or super().is_leaf_module(m, qualname)

    def call_module(self, m: Any, forward: Any, args: Any, kwargs: Any) -> Any:
        before = self.path
        self.path = self.path_of_module(m)
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.path = before

    def create_proxy(self, kind: Any, *args: Any, **kwargs: Any) -> Any:
        proxy = super().create_proxy(kind, *args, **kwargs)
        node = proxy.node
        if node.op == "call_module":
            name = str(node.target)
        else:
            own = re.sub(r"_\d+$", "", node.name)
            own = {"iadd": "add", "imul": "mul", "isub": "sub"}.get(own, own)
            name = f"{self.path}.{own}" if self.path else own
        taken = set(self.names.values())
        unique, n = name, 0
        while unique in taken:
            n += 1
            unique = f"{name}_{n}"
        self.names[node] = unique
        return proxy


def _traced(model: Any, train: Any, tracer_kwargs: Any) -> tuple[Any, dict[Any, str]]:
    """(graph, {node: name}) of a model in one of its modes, which it is left in as it was."""
    modes = {m: m.training for m in model.modules()}
    tracer = _Tracer(**(tracer_kwargs or {}))
    try:
        graph = tracer.trace(model.train(train))
    finally:
        for m, mode in modes.items():
            m.training = mode
    return graph, {node: name for node, name in tracer.names.items() if node.op != "output"}


def get_graph_node_names(
    model: Any, tracer_kwargs: Any = None, suppress_diff_warning: bool = False, concrete_args: Any = None
) -> tuple[list[str], ...]:
    """(names in training, names in evaluation) of all that a model computes, in order."""
    names = [list(_traced(model, train, tracer_kwargs)[1].values()) for train in (True, False)]
    if names[0] != names[1] and not suppress_diff_warning:
        import warnings

        warnings.warn(
            "what is computed differs between training and evaluation: pass train_return_nodes and eval_return_nodes to "
            "create_feature_extractor",
            stacklevel=2,
        )
    return tuple(names)


def _as_dict(nodes: Any) -> OrderedDict[Any, Any]:
    return OrderedDict((n, n) for n in nodes) if isinstance(nodes, (list, tuple)) else OrderedDict(nodes)


def _cut(graph: Any, names: Any, wanted: Any) -> Any:
    """The graph with the values of these names as its result."""
    found = OrderedDict()
    for name, key in wanted.items():
        inside = [node for node, n in names.items() if n == name or n.startswith(name + ".")]
        if not inside:
            raise ValueError(
                f"node: '{name}' is not present in model. Hint: use `get_graph_node_names` to make sure the `return_nodes` you "
                "specified are present. It may even be that you need to specify `train_return_nodes` and `eval_return_nodes` "
                "separately."
            )
        found[key] = inside[-1]  # a module's result is the last value in it
    for node in reversed(list(graph.nodes)):
        if node.op == "output":
            graph.erase_node(node)
    graph.output(dict(found))
    graph.eliminate_dead_code()
    return graph


class _Extractor(nn.Module):
    """Runs one graph in training and another in evaluation; both use the model's own layers."""

    def __init__(self, model: Any, train_graph: Any, eval_graph: Any) -> None:
        super().__init__()
        graphs = [fx.GraphModule(model, graph) for graph in (train_graph, eval_graph)]
        for part in reversed(graphs):
            for name, child in part.named_children():
                self.add_module(name, child)
            for name, value in part._parameters.items():
                self.register_parameter(name, value)
        self._graphs = tuple(graphs)  # in a tuple: no children

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._graphs[0 if self.training else 1](*args, **kwargs)


def create_feature_extractor(
    model: Any,
    return_nodes: Any = None,
    train_return_nodes: Any = None,
    eval_return_nodes: Any = None,
    tracer_kwargs: Any = None,
    suppress_diff_warning: bool = False,
    concrete_args: Any = None,
) -> Any:
    """A module that gives {key: value} of what a model computes on the way. return_nodes: names of get_graph_node_names or of
    modules, or {name: key}.
    """
    if return_nodes is None and (train_return_nodes is None or eval_return_nodes is None):
        raise ValueError(
            "Either return_nodes or train_return_nodes and eval_return_nodes together, should be specified"
        )
    if (train_return_nodes is None) != (eval_return_nodes is None):
        raise ValueError(
            "If any of train_return_nodes and eval_return_nodes are specified, then both should be specified"
        )
    if return_nodes is not None and train_return_nodes is not None:
        raise ValueError(
            "If return_nodes is specified, train_return_nodes and eval_return_nodes should not be specified"
        )
    wanted = [
        _as_dict(nodes) for nodes in (train_return_nodes or return_nodes, eval_return_nodes or return_nodes)
    ]
    traced = [_traced(model, train, tracer_kwargs) for train in (True, False)]
    graphs = [_cut(graph, names, w) for (graph, names), w in zip(traced, wanted)]
    if list(traced[0][1].values()) == list(traced[1][1].values()) and wanted[0] == wanted[1]:
        return fx.GraphModule(model, graphs[1]).train(model.training)
    return _Extractor(model, *graphs).train(model.training)
