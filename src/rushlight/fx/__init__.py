"""torch.fx: programs as graphs. A module is traced into nodes, which can be read, changed and compiled back to Python."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.fx._symbolic_trace import Tracer, is_fx_tracing, symbolic_trace, wrap
from rushlight.fx.graph import CodeGen, Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter, Transformer
from rushlight.fx.node import Node, map_aggregate, map_arg
from rushlight.fx.proxy import Proxy, TraceError
from rushlight.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "TraceError",
    "Tracer",
    "Transformer",
    "is_fx_tracing",
    "map_aggregate",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]

__getattr__ = _unsupported_attribute(__name__)
