"""Running a graph node by node, and rewriting it on the way."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.fx.graph import Graph, last_uses
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import map_arg
from rushlight.fx.proxy import Proxy, TracerBase


class Interpreter:
    """Runs a GraphModule one node at a time; override a method to change what a kind of node does.

    Args:
        module (GraphModule): what is run.
        garbage_collect_values (bool): lets go of results after their last use. Default: True
        graph (Graph): run instead of the module's own. Default: None

    Example:
        >>> class Names(torch.fx.Interpreter):
        ...     def run_node(self, node):
        ...         print(node.name)
        ...         return super().run_node(node)
        >>> Names(torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)).run(torch.ones(1))
        x
        relu
        add
        output
        tensor([2.])
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module = module
        self.graph = graph if graph is not None else module.graph
        self.submodules = dict(module.named_modules())
        self.env = {}
        self.garbage_collect_values = garbage_collect_values
        self.name = "Interpreter"
        self.extra_traceback = True

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """The output of the graph for these arguments."""
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        last = last_uses(self.graph)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                error.add_note(f"While executing {node.format_node()}")
                raise
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for used in last.get(node, ()):
                    self.env.pop(used, None)
        return None

    def run_node(self, n):
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target, args, kwargs):
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target, args, kwargs):
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        return args[0]

    def fetch_attr(self, target):
        value = self.module
        for part in target.split("."):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {target}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n):
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(dict(n.kwargs), n)

    def map_nodes_to_values(self, args, n):
        def value(node):
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


class _Rewriter(TracerBase):
    """Writes the nodes of a transformed graph."""

    def __init__(self, graph):
        self.graph = graph


class Transformer(Interpreter):
    """An interpreter whose values are proxies of a new graph: transform() gives the module rewritten.

    Args:
        module (GraphModule): what is rewritten.

    Example:
        >>> class Softer(torch.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         target = torch.tanh if target is torch.relu else target
        ...         return super().call_function(target, args, kwargs)
        >>> module = Softer(torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)).transform()
        >>> module(torch.zeros(2))
        tensor([1., 1.])
    """

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _Rewriter(self.new_graph)

    def placeholder(self, target, args, kwargs):
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self):
        result = self.run()
        if result is not None:
            self.new_graph.output(map_aggregate_proxies(result))
        return GraphModule(self.module, self.new_graph)


def map_aggregate_proxies(value):
    from rushlight.fx.node import map_aggregate

    return map_aggregate(value, lambda v: v.node if isinstance(v, Proxy) else v)


__getattr__ = _unsupported_attribute(__name__)
