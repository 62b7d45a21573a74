"""Tracing: a module's forward is run once on proxies, and what it does becomes a graph."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import sys
from types import FunctionType
from typing import Any

import rushlight as rl
from rushlight._compat.c_names import ScriptObject
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.fx._compatibility import compatibility
from rushlight.fx._patching import _Patcher, autowrap_check, patch_wrapped
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight.fx.proxy import Proxy, TracerBase
from rushlight.nn.modules.module import Module

_wrapped: list = []  # (globals, name) of functions that stay one call
_tracing = False


def is_fx_tracing():
    """Tells whether a function is being traced in this thread.

    Example:
        >>> torch.fx.is_fx_tracing()
        False
    """
    return _tracing


is_fx_symbolic_tracing = is_fx_tracing


def wrap(fn_or_name):
    """Marks a function of the calling module: traced programs call it instead of being traced through it.

    Args:
        fn_or_name (callable or str): a global function of this module, or its name.

    Returns:
        fn_or_name.

    Example:
        >>> def length(x):
        ...     return len(x)
        >>> _ = torch.fx.wrap("length")
        >>> traced = torch.fx.symbolic_trace(lambda x: x * length(x))
        >>> traced(torch.ones(3))
        tensor([3., 3., 3.])
    """
    if not (callable(fn_or_name) or isinstance(fn_or_name, str)):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    if callable(fn_or_name) and not hasattr(fn_or_name, "__code__"):
        raise AssertionError("wrap: expected a function written in Python, or a name")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped.append((frame.f_globals, fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__))
    return fn_or_name


def _find_proxy(*values):
    from rushlight.fx.proxy import _leaves

    return next((v for v in _leaves(values) if isinstance(v, Proxy)), None)


def _call_stays(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)

    return call


def _autowrap_check(patcher, frame_dict, function_ids):
    """Makes the functions of these ids that a module uses stay one call."""
    autowrap_check(patcher, frame_dict, function_ids, _call_stays)


def _patch_wrapped_functions(patcher):
    """Makes the functions that wrap() marked stay one call."""
    patch_wrapped(patcher, _wrapped, _call_stays)


# what modules do where no program is traced
_orig_module_call = Module.__call__
_orig_module_getattr = Module.__getattr__


class Tracer(TracerBase):
    """Traces modules and functions; derive from it to choose which modules stay one call.

    Args:
        autowrap_modules (tuple): modules whose functions are recorded when they get proxies. Default: (math,)
        autowrap_functions (tuple): further functions of that kind. Default: ()
        param_shapes_constant (bool): accepted. Default: False

    Example:
        >>> class Flat(torch.fx.Tracer):
        ...     def is_leaf_module(self, module, path):
        ...         return False
        >>> graph = Flat().trace(nn.Sequential(nn.ReLU()))
        >>> [node.op for node in graph.nodes]
        ['placeholder', 'call_function', 'output']
    """

    proxy_buffer_attributes = False
    root: Any
    traced_func_name = "forward"

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        self._autowrap_search = list(autowrap_modules)
        self._autowrap_function_ids = {id(f) for f in autowrap_functions} | {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        }
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths, self.root, self.graph = None, None, None
        self.tensor_attrs, self._constants = {}, 0

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a module stays one call: those of nn do, but for Sequential."""
        home = type(m).__module__
        return (home.startswith("rushlight.nn") or home.startswith("torch.nn")) and not isinstance(
            m, rl.nn.Sequential
        )

    def path_of_module(self, mod):
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m, forward, args, kwargs):
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """What an attribute of a module gives while tracing: a parameter is a proxy that reads it."""
        if isinstance(attr_val, rl.nn.Parameter) or (
            self.proxy_buffer_attributes and isinstance(attr_val, rl.Tensor)
        ):
            named = (
                self.root.named_parameters()
                if isinstance(attr_val, rl.nn.Parameter)
                else self.root.named_buffers()
            )
            for name, value in named:
                if value is attr_val:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                    return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a):
        if isinstance(a, rl.nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, rl.Tensor):
            for name, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", name, (), {})
            name = self.tensor_attrs.get(a)
            if name is None:
                while hasattr(self.root, f"_tensor_constant{self._constants}"):
                    self._constants += 1
                name = f"_tensor_constant{self._constants}"
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, rl.nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """The function and the proxies to call it with, one a parameter."""
        function = inspect.unwrap(root_fn)
        parameters = list(inspect.signature(function).parameters.values())
        args, keywords = [], {}
        if is_module:
            if not parameters:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
            parameters = parameters[1:]
        for p in parameters:
            if concrete_args is not None and p.name in concrete_args:
                value = concrete_args[p.name]
            else:
                kind: Any = p.kind
                star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(kind, "")
                default = () if p.default is inspect.Parameter.empty else (p.default,)
                kind = None if p.annotation is inspect.Parameter.empty else p.annotation
                value = self.create_proxy("placeholder", star + p.name, default, {}, type_expr=kind)
            if p.kind is p.KEYWORD_ONLY or p.kind is p.VAR_KEYWORD:
                keywords[p.name] = value
            else:
                args.append(value)
        if keywords:
            return functools.partial(root_fn, **keywords), args
        return root_fn, args

    def trace(self, root, concrete_args=None):
        """The graph of a module's forward or of a function; concrete_args are fixed to the values given."""
        global _tracing
        is_module = isinstance(root, rl.nn.Module)
        if is_module:
            self.root, fn = root, getattr(type(root), self.traced_func_name)
        else:
            self.root, fn = rl.nn.Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {}
        fn, args = self.create_args_for_root(fn, is_module, concrete_args)
        before, _tracing = _tracing, True
        try:
            with self._patched(fn):
                result = fn(*args)
            kind = getattr(fn, "__annotations__", {}).get("return")
            self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=kind)
        finally:
            _tracing = before
        return self.graph

    @contextlib.contextmanager
    def _patched(self, fn):
        """While tracing: modules are asked for calls and attributes through the tracer, marked functions stay calls."""
        cache: dict = {}
        module_call, module_getattr = rl.nn.Module.__call__, rl.nn.Module.__getattr__

        def call(module, *args, **kwargs):
            home = getattr(module.forward, "__globals__", {})
            _autowrap_check(patcher, home, self._autowrap_function_ids)
            return self.call_module(module, functools.partial(module_call, module), args, kwargs)

        def read(module, name):
            return self.getattr(name, module_getattr(module, name), cache)

        with _Patcher() as patcher:
            patcher.patch_method(rl.nn.Module, "__call__", call, deduplicate=False)
            patcher.patch_method(rl.nn.Module, "__getattr__", read, deduplicate=False)
            _patch_wrapped_functions(patcher)
            inner = inspect.unwrap(fn.func if isinstance(fn, functools.partial) else fn)
            _autowrap_check(patcher, getattr(inner, "__globals__", {}), self._autowrap_function_ids)
            for module in self._autowrap_search:
                _autowrap_check(patcher, vars(module), self._autowrap_function_ids)
            yield


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """A module or function as a GraphModule, whose graph can be read and rewritten.

    It is run once with proxies for its arguments; control flow that depends on their values cannot be traced.

    Args:
        root (nn.Module or callable): what to trace.
        concrete_args (dict): values of arguments that are not traced, by name. Default: None

    Raises:
        TraceError: the program asks for the value of a proxy.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) * 2)
        >>> print(traced.code.strip())
        def forward(self, x):
            relu = torch.relu(x);  x = None
            mul = relu * 2;  relu = None
            return mul
    """
    from rushlight.fx.graph_module import GraphModule

    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, rl.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


__all__ = [
    "FunctionType",
    "Node",
    "ScriptObject",
    "Tracer",
    "compatibility",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]
__getattr__ = _unsupported_attribute(__name__)
