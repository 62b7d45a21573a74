"""make_fx: a function as the graph of primitives that it runs.

The function is called once with tensors. A mode below autograd sees each primitive, writes it down as a node, and runs
it (_proxy_mode.py); what a backward computes is seen likewise.
"""

import contextlib
import functools
import inspect

import rushlight as rl
from rushlight import _dispatch, fx
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from rushlight._subclasses.fake_tensor import is_fake as is_fake
from rushlight._subclasses.fake_tensor import maybe_disable_fake_tensor_mode as maybe_disable_fake_tensor_mode
from rushlight.fx._pytree_codegen import PyTreeCodeGen, PyTreeInfo
from rushlight.fx.experimental._proxy_mode import CONSTANT_NUMEL_LIMIT as CONSTANT_NUMEL_LIMIT
from rushlight.fx.experimental._proxy_mode import (
    ProxyTorchDispatchMode,
    PythonKeyTracer,
    outside_of_modes,
    track_tensor_tree,
)
from rushlight.fx.experimental._proxy_mode import set_meta as set_meta
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.utils import _pytree as pytree

_TRACING_MODES = ("real", "fake")
CURRENT_DECOMPOSITION_TABLE: dict = {}


def get_innermost_proxy_mode():
    """The innermost mode of make_fx, or None."""
    modes = reversed(_dispatch.state.modes)
    return next((m for m in modes if isinstance(m, ProxyTorchDispatchMode)), None)


def get_proxy_mode():
    """The innermost mode of make_fx, or None."""
    return get_innermost_proxy_mode()


@contextlib.contextmanager
def disable_proxy_modes_tracing(enable_current=False):
    """A block that no make_fx around it writes down; it gives the innermost mode."""
    before = list(_dispatch.state.modes)
    proxies = [m for m in before if isinstance(m, ProxyTorchDispatchMode)]
    while _dispatch.state.modes:
        _dispatch.pop_mode()
    for mode in before:
        if mode not in proxies:
            _dispatch.push_mode(mode)
    try:
        yield proxies[-1] if proxies else None
    finally:
        while _dispatch.state.modes:
            _dispatch.pop_mode()
        for mode in before:
            _dispatch.push_mode(mode)


@contextlib.contextmanager
def decompose(decomposition_table):
    """A block in which a table of decompositions is the current one."""
    global CURRENT_DECOMPOSITION_TABLE
    before, CURRENT_DECOMPOSITION_TABLE = CURRENT_DECOMPOSITION_TABLE, decomposition_table or {}
    try:
        yield CURRENT_DECOMPOSITION_TABLE
    finally:
        CURRENT_DECOMPOSITION_TABLE = before


def get_isolated_graphmodule(func, args, kwargs, tracing_mode="real", decomposition_table=None):
    """The graph of func(*args, **kwargs), which no make_fx around it sees."""
    leaves, spec = pytree.tree_flatten((args, kwargs))

    def flat(leaves):
        inner_args, inner_kwargs = pytree.tree_unflatten(leaves, spec)
        return func(*inner_args, **inner_kwargs)

    with disable_proxy_modes_tracing():
        return make_fx(flat, decomposition_table, tracing_mode)(leaves)


def make_fx(
    f, decomposition_table=None, tracing_mode="real", _allow_non_fake_inputs=False, *, pre_dispatch=False,
    record_module_stack=False, _allow_fake_constant=False, _error_on_data_dependent_ops=True,
):  # fmt: skip
    """A function that, given arguments, traces f with them: a GraphModule of the primitives that f ran.

    Unlike symbolic_trace, which records calls as they are written, this records what they come to below autograd:
    torch.ops.aten.addmm.default for a Linear, and the primitives of a backward that f runs. Python's control flow is
    followed as the arguments lead.

    Args:
        f (callable): the function or module. Its arguments may be trees of tensors.
        decomposition_table (dict): functions by the overloads in whose place they are traced. Default: None
        tracing_mode (str): "real" runs on the tensors given, "fake" on their shapes alone. Default: "real"
        record_module_stack (bool): accepted. Default: False

    Example:
        >>> from rushlight.fx.experimental.proxy_tensor import make_fx
        >>> print(make_fx(lambda x: torch.relu(x) + 1)(torch.ones(2)).code.strip())
        def forward(self, x_1):
            relu = torch.ops.aten.relu.default(x_1);  x_1 = None
            add = torch.ops.aten.add.Tensor(relu, 1);  relu = None
            return add
    """
    if tracing_mode == "symbolic" or pre_dispatch:
        what = "symbolic shapes" if tracing_mode == "symbolic" else "pre_dispatch=True"
        raise NotImplementedError(f"make_fx: {what}: rushlight traces fixed shapes, below autograd")
    if tracing_mode not in _TRACING_MODES:
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")

    @functools.wraps(f)
    def wrapped(*args):
        return _Run(
            f, decomposition_table, tracing_mode, _allow_non_fake_inputs, _error_on_data_dependent_ops
        )(args)

    return wrapped


class _Run:
    """One trace of a function."""

    def __init__(self, f, table, tracing_mode, allow_non_fake, error_on_values):
        self.f, self.tracing_mode, self.allow_non_fake = f, tracing_mode, allow_non_fake
        self.tracer = PythonKeyTracer()
        self.tracer.root, self.tracer.graph = rl.nn.Module(), Graph(tracer_cls=PythonKeyTracer)
        self.table = {**CURRENT_DECOMPOSITION_TABLE, **(table or {})}
        self.mode = ProxyTorchDispatchMode(self.tracer, tracing_mode, self.table, error_on_values)

    def __call__(self, args):
        fake = self._fake_mode(args)
        values, spec = pytree.tree_flatten(args)
        if fake is not None:
            with outside_of_modes():
                values = [fake.from_tensor(v) if isinstance(v, rl.Tensor) else v for v in values]
        values = self._placeholders(args, values)
        blocks = contextlib.ExitStack()
        with blocks:
            blocks.enter_context(disable_proxy_modes_tracing())  # one that is around sees the graph alone
            if fake is not None:
                blocks.enter_context(fake)
            blocks.enter_context(decompose(self.table))
            blocks.enter_context(self.mode)
            result = self.f(*pytree.tree_unflatten(values, spec))
        self._output(result)
        graph = self.tracer.graph
        name = type(self.f).__name__ if isinstance(self.f, rl.nn.Module) else getattr(self.f, "__name__", "f")
        return GraphModule(self.tracer.root, graph, name)

    def _fake_mode(self, args):
        if self.tracing_mode != "fake":
            return None
        for leaf in pytree.tree_leaves(args):
            if isinstance(leaf, FakeTensor):
                return leaf.fake_mode
        return FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=self.allow_non_fake)

    def _placeholders(self, args, values):
        """A placeholder for each leaf of the arguments, named after its parameter."""
        names, specs = _names_of(self.f, len(args)), [pytree.tree_flatten(a) for a in args]
        if any(spec.num_leaves != 1 or not spec.is_leaf() for _, spec in specs):
            info = PyTreeInfo(names, pytree.tree_flatten(tuple(args))[1], None)
            self.tracer.graph.set_codegen(PyTreeCodeGen(info))
        made, left = [], iter(values)
        for name, (leaves, _) in zip(names, specs, strict=True):
            for i in range(len(leaves)):
                value = next(left)
                proxy = self.tracer.create_proxy("placeholder", f"{name}_{i + 1}", (), {})
                if isinstance(value, rl.Tensor):
                    # Tensors from outside keep no trace of this: a second name for the same one is told apart.
                    set_meta(proxy, value)
                    self.tracer.know(value, proxy)
                made.append(value)
        return made

    def _output(self, result):
        result = pytree.tree_map(self._of_result, result)
        codegen = self.tracer.graph._codegen
        if isinstance(codegen, PyTreeCodeGen):
            result, codegen.pytree_info.out_spec = pytree.tree_flatten(result)
            whole = codegen.pytree_info.out_spec
            result = result[0] if whole.is_leaf() else result
        kind = getattr(self.f, "__annotations__", {}).get("return")
        self.tracer.create_node("output", "output", (self.tracer.create_arg(result),), {}, type_expr=kind)

    def _of_result(self, value):
        if not isinstance(value, rl.Tensor):
            return value
        known = self.tracer.find(value)
        return value if known is None else known.proxy


def _names_of(f, count):
    """Names for that many positional arguments of a function."""
    try:
        parameters = list(
            inspect.signature(f.forward if isinstance(f, rl.nn.Module) else f).parameters.values()
        )
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return [f"arg{i}" for i in range(count)] if starred or len(names) < count else names[:count]


class DecompositionInterpreter(fx.Interpreter):
    """Runs a graph, and writes it down again with primitives taken apart.

    Args:
        module (GraphModule): what runs.
        new_graph (Graph): where it is written down.
        decomposition_table (dict): functions by overloads. Default: None
    """

    def __init__(self, module, new_graph, decomposition_table=None, **kwargs):
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.tracer = PythonKeyTracer()
        self.tracer.graph, self.tracer.root = new_graph, rl.nn.Module()
        self.decomposition_table = decomposition_table or {}
        self.mode = ProxyTorchDispatchMode(self.tracer, "real", self.decomposition_table)

    def placeholder(self, target, args, kwargs):
        out = super().placeholder(target, args, kwargs)
        proxy = self.tracer.create_proxy("placeholder", target, (), {})
        return track_tensor_tree(out, proxy, tracer=self.tracer)

    def get_attr(self, target, args, kwargs):
        out = super().get_attr(target, args, kwargs)
        proxy = self.tracer.create_proxy("get_attr", target, (), {})
        return track_tensor_tree(out, proxy, tracer=self.tracer)

    def output(self, target, args, kwargs):
        out = super().output(target, args, kwargs)

        def proxied(value):
            known = self.tracer.find(value) if isinstance(value, rl.Tensor) else None
            return value if known is None else known.proxy

        self.tracer.create_node(
            "output", "output", (self.tracer.create_arg(pytree.tree_map(proxied, out)),), {}
        )
        return out

    def run(self, *args, **kwargs):
        with decompose(self.decomposition_table), self.mode:
            return super().run(*args, **kwargs)


__getattr__ = _unsupported_attribute(__name__)
