"""torch.fx: tracing, reading and rewriting graphs, running and copying them."""

import copy
import functools
import operator
import pickle

import pytest

import rushlight as rl
from rushlight import fx
from rushlight.nn import functional as F


class Net(rl.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = rl.nn.Linear(4, 5)
        self.p = rl.nn.Parameter(rl.ones(3, 4))
        self.seq = rl.nn.Sequential(rl.nn.Linear(5, 2), rl.nn.ReLU())

    def forward(self, x, scale=2.0, *, flag=None):
        y = self.lin(x + self.p).clamp(min=0.0, max=1.0) * scale
        a, b = rl.split(y, [2, 3], dim=-1)
        z = F.softmax(y, dim=-1) + rl.cat([a, b], -1)
        z = F.pad(z.view(z.shape[0], -1)[:, 1:], (1, 0)) - rl.tensor([1.0])
        return self.seq(z), {"q": -z}


@pytest.fixture
def traced():
    rl.manual_seed(0)
    net = Net()
    return net, fx.symbolic_trace(net), rl.rand(3, 4)


def same(module, net, x):
    want, got = net(x), module(x)
    return rl.equal(want[0], got[0]) and rl.equal(want[1]["q"], got[1]["q"])


def test_trace_runs_the_same(traced):
    net, graph_module, x = traced
    graph_module.graph.lint()
    assert same(graph_module, net, x)
    ops = [n.op for n in graph_module.graph.nodes]
    assert ops[:3] == ["placeholder"] * 3 and ops[-1] == "output"
    assert ops.count("call_module") == 3 and ops.count("get_attr") == 2
    assert "torch.nn.functional.softmax" in graph_module.code
    assert sorted(graph_module.state_dict()) == [
        "_tensor_constant0", "lin.bias", "lin.weight", "p", "seq.0.bias", "seq.0.weight",
    ]  # fmt: skip


def test_rewrite_copy_pickle_interpret(traced):
    net, graph_module, x = traced
    want = net(x)[0]
    assert rl.equal(fx.Interpreter(graph_module).run(x)[0], want)
    assert rl.equal(fx.Transformer(graph_module).transform()(x)[0], want)
    for node in graph_module.graph.nodes:
        if node.target is operator.mul:
            with graph_module.graph.inserting_after(node):
                new = graph_module.graph.call_function(rl.mul, (node, 0.0))
            node.replace_all_uses_with(new)
            new.args = (node, 0.0)
    graph_module.recompile()
    changed = graph_module(x)[0]
    assert not rl.equal(changed, want)
    assert rl.equal(copy.deepcopy(graph_module)(x)[0], changed)
    assert rl.equal(pickle.loads(pickle.dumps(graph_module))(x)[0], changed)


def test_values_live_until_their_last_use():
    # users are in the order in which they were made, which after a rewrite is not the order of the graph
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(rl.exp, (x,))
    late = graph.call_function(rl.neg, (y,))
    with graph.inserting_before(late):
        early = graph.call_function(rl.abs, (y,))
    graph.output((early, late))
    module = fx.GraphModule({}, graph)
    a, b = module(rl.ones(2))
    assert rl.equal(a, -b) and len(fx.Interpreter(module).run(rl.ones(2))) == 2


def test_dead_code_goes():
    def f(x):
        rl.exp(x)
        return x + 1

    module = fx.symbolic_trace(f)
    assert module.graph.eliminate_dead_code() and len(module.graph.nodes) == 3
    with pytest.raises(RuntimeError, match="still had 1 users"):
        module.graph.erase_node(next(iter(module.graph.nodes)))


def test_values_are_not_known():
    def f(x):
        return x if x > 0 else -x

    with pytest.raises(fx.TraceError, match="control flow"):
        fx.symbolic_trace(f)
    with pytest.raises(fx.TraceError, match="cannot be iterated"):
        fx.symbolic_trace(lambda x: [v for v in x])


def test_index_by_a_traced_value_and_einsum_operands():
    table = rl.arange(6.0)
    module = fx.symbolic_trace(lambda i: table[i] + rl.einsum("i,i->", (i.float(), i.float())))
    assert rl.equal(module(rl.tensor([1, 2])), rl.tensor([6.0, 7.0]))
    node = next(n for n in module.graph.nodes if n.target is rl.einsum)
    assert len(node.args) == 3


def test_patterns_are_replaced():
    def program(x, y):
        return rl.neg(rl.add(rl.add(x, y), 1.0)) * rl.add(y, x)

    module = fx.symbolic_trace(program)
    matches = fx.replace_pattern(module, lambda a, b: rl.add(a, b), lambda a, b: rl.mul(a, b) - a)
    x, y = rl.randn(3), rl.randn(3)
    assert len(matches) == 2 and "torch.add(sub" in module.code
    assert rl.allclose(module(x, y), -(x * y - x + 1) * (y * x - y))
    module.graph.lint()
    # A result inside the pattern that is used elsewhere keeps it from being replaced.
    kept = fx.symbolic_trace(lambda x: (lambda e: rl.log(e) + e)(rl.exp(x)))
    assert fx.replace_pattern(kept, lambda a: rl.log(rl.exp(a)), lambda a: a) == []
    gone = fx.symbolic_trace(lambda x: rl.log(rl.exp(x)) + 1)
    assert len(fx.replace_pattern(gone, lambda a: rl.log(rl.exp(a)), lambda a: a)) == 1
    assert gone(rl.tensor(2.0)).item() == 3


def test_shapes_are_left_at_the_nodes():
    from rushlight.fx.passes.shape_prop import ShapeProp

    module = fx.symbolic_trace(rl.nn.Sequential(rl.nn.Conv2d(1, 2, 3), rl.nn.Flatten()))
    assert ShapeProp(module).propagate(rl.ones(1, 1, 4, 4)).shape == (1, 8)
    assert [n.meta["tensor_meta"].shape for n in module.graph.nodes][1:3] == [(1, 2, 2, 2), (1, 8)]
    assert 'getattr(self, "0")' in module.code
    split = fx.symbolic_trace(lambda x: x.split(1, dim=0))
    ShapeProp(split).propagate(rl.ones(2, 3))
    node = list(split.graph.nodes)[1]
    assert [m.shape for m in node.meta["tensor_meta"]] == [(1, 3), (1, 3)] and node.meta["type"] is tuple
    assert "kwargs = {dim: 0}" in str(split.graph)


def test_the_class_of_a_graph_module_tells_that_it_is_of_one_instance():
    """Wrappers of forward look for this name and then replace the class's forward, so that recompile() still counts."""
    traced = rl.fx.symbolic_trace(rl.nn.Linear(2, 2))
    assert "GraphModuleImpl" in str(type(traced)) and type(traced).__name__ == "Linear"


def test_arguments_of_nodes_cannot_be_changed():
    from rushlight.fx.immutable_collections import immutable_dict, immutable_list

    graph = rl.fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(rl.cat, ([x, x],), {"dim": 0})
    graph.output({"y": [node]})
    assert type(node.args[0]) is immutable_list and type(node.kwargs) is immutable_dict
    assert node.args[0] == [x, x] and type(list(node.args[0])) is list
    for change in (
        lambda: node.args[0].append(x),
        lambda: node.kwargs.update(dim=1),
        lambda: node.args[0].sort(),
    ):
        with pytest.raises(TypeError, match="does not support mutation"):
            change()
    node.update_kwarg("dim", 1)
    module = rl.fx.GraphModule(rl.nn.Module(), graph)
    assert module(rl.ones(1, 2))["y"][0].shape == (1, 4)
    assert pickle.loads(pickle.dumps(immutable_list([1, 2]))) == [1, 2]
    assert rl.utils._pytree.tree_map(lambda n: n + 1, immutable_dict(a=1)) == {"a": 2}


def halved(x):
    return x * 0.5


def test_tracers_of_packages_patch_as_the_tracer_does():
    """A tracer of its own, written with the names of torch.fx._symbolic_trace, patches a second class's calls."""
    import rushlight.fx._symbolic_trace as st

    class Calls(rl.nn.Module):
        def forward(self, x):
            return halved(self.inner(x) + self.offset)

        def __init__(self):
            super().__init__()
            self.inner, self.offset = rl.nn.Linear(2, 2), rl.nn.Parameter(rl.ones(2))

    class Own(rl.fx.Tracer):
        @st.compatibility(is_backward_compatible=True)
        def trace(self, root, concrete_args=None):
            self.root, self.graph = root, rl.fx.Graph(tracer_cls=type(self))
            self.tensor_attrs = {}
            fn = type(root).forward
            assert isinstance(fn, st.FunctionType)
            fn, args = self.create_args_for_root(fn, True, concrete_args)
            cache = {}

            def read(module, name):
                return self.getattr(name, st._orig_module_getattr(module, name), cache)

            def call(module, *args, **kwargs):
                forward = functools.partial(st._orig_module_call, module)
                st._autowrap_check(patcher, type(module).forward.__globals__, self._autowrap_function_ids)
                return self.call_module(module, forward, args, kwargs)

            with st._Patcher() as patcher:
                patcher.patch_method(rl.nn.Module, "__getattr__", read, deduplicate=False)
                patcher.patch_method(rl.nn.Module, "__call__", call, deduplicate=False)
                st._patch_wrapped_functions(patcher)
                st._autowrap_check(patcher, globals(), self._autowrap_function_ids)
                self.create_node("output", "output", (self.create_arg(fn(*args)),), {}, type_expr=None)
            return self.graph

    before = rl.nn.Module.__call__, rl.nn.Module.__getattr__, halved
    module = Calls()
    graph = Own(autowrap_functions=(halved,)).trace(module)
    assert (rl.nn.Module.__call__, rl.nn.Module.__getattr__, halved) == before
    targets = [n.target for n in graph.nodes if n.op not in ("placeholder", "output")]
    assert targets[0] == "inner" and "offset" in targets and targets[-1] is halved
    x = rl.ones(1, 2)
    assert rl.fx.GraphModule(module, graph)(x).tolist() == module(x).tolist()
