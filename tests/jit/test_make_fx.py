"""make_fx: the primitives of a function, its backward and transforms as a graph."""

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.fx.experimental import proxy_tensor
from rushlight.fx.experimental.proxy_tensor import make_fx


def targets(graph_module):
    return [str(n.target) for n in graph_module.graph.nodes if n.op == "call_function"]


def test_source_is_that_of_pytorch():
    traced = make_fx(lambda x: rl.sin(x) + 1)(rl.randn(3))
    assert traced.code.strip() == (
        "def forward(self, x_1):\n"
        "    sin = torch.ops.aten.sin.default(x_1);  x_1 = None\n"
        "    add = torch.ops.aten.add.Tensor(sin, 1);  sin = None\n"
        "    return add"
    )


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_a_backward_is_traced(mode):
    def f(x):
        x.grad = None
        x.tanh().exp().sum().backward()
        return x.grad

    traced = make_fx(f, tracing_mode=mode)(rl.randn(4, requires_grad=True))
    x = rl.randn(4, requires_grad=True)
    assert rl.allclose(traced(x), f(x))
    assert "aten.tanh_backward.default" in targets(traced)


def test_gradients_that_meet_are_traced():
    def f(x):
        return rl.autograd.grad((x.sin() * x.cos()).sum() + x.sum(), x)[0]

    traced = make_fx(f)(rl.randn(4, requires_grad=True))
    x = rl.randn(4, requires_grad=True)
    assert rl.allclose(traced(x), f(x))
    assert not any(n.op == "get_attr" for n in traced.graph.nodes)


def test_a_gradient_of_a_mode_owns_its_elements():
    class Watch(rl.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x = rl.ones(3, requires_grad=True)
    with Watch():
        for _ in range(3):
            x.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]
    assert x.grad.is_contiguous()


def test_training_step_with_functional_call():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))

    def step(params, buffers, x):
        loss = rl.func.functional_call(net, {**params, **buffers}, (x,)).square().mean()
        grads = rl.autograd.grad(loss, list(params.values()))
        return [p - 0.1 * g for p, g in zip(params.values(), grads, strict=True)]

    params = dict(net.named_parameters())
    buffers = {k: v.clone() for k, v in net.named_buffers()}
    traced = make_fx(step)(params, {k: v.clone() for k, v in buffers.items()}, rl.randn(8, 3))
    x = rl.randn(8, 3)
    want = step(params, {k: v.clone() for k, v in buffers.items()}, x)
    got = traced(params, {k: v.clone() for k, v in buffers.items()}, x)
    assert all(rl.allclose(a, b, atol=1e-6) for a, b in zip(got, want, strict=True))


def test_transforms_are_traced():
    def f(x):
        return rl.vmap(rl.func.grad(lambda row: row.sin().sum()))(x)

    traced = make_fx(f)(rl.randn(2, 3))
    x = rl.randn(2, 3)
    assert rl.allclose(traced(x), x.cos())


def test_writes_and_views():
    def f(x):
        y = x.clone()
        y[0].add_(1)
        return y, y.view(-1)[:2]

    traced = make_fx(f)(rl.zeros(2, 2))
    y, part = traced(rl.ones(2, 2))
    assert y.tolist() == [[2.0, 2.0], [1.0, 1.0]]
    assert part.tolist() == [2.0, 2.0]


def test_trees_of_arguments_and_results():
    traced = make_fx(lambda d, n: {"s": d["a"] + d["b"][0] * n})(
        {"a": rl.ones(2), "b": [rl.ones(2)]}, rl.tensor(2.0)
    )
    got = traced({"a": rl.zeros(2), "b": [rl.ones(2)]}, rl.tensor(5.0))
    assert got["s"].tolist() == [5.0, 5.0]


def test_constants_keep_their_values():
    def f():
        value = rl.tensor(1.0)
        value.add_(2)
        return rl.full((2,), value)

    for mode in ("real", "fake"):
        traced = make_fx(f, tracing_mode=mode)()
        assert traced().tolist() == traced().tolist() == [3.0, 3.0]


def test_values_of_traced_tensors_are_refused():
    with pytest.raises(RuntimeError, match="data-dependent"):
        make_fx(lambda x: x if x.sum() > 0 else -x)(rl.ones(2))
    with pytest.raises(RuntimeError, match="data-dependent"):
        make_fx(lambda x: x.item(), tracing_mode="fake")(rl.ones(1))


def test_decompositions_take_the_place_of_primitives():
    def addmm(a, b, c, beta=1, alpha=1):
        return beta * a + alpha * (b @ c)

    x, y = rl.randn(2, 3), rl.randn(3, 2)
    table = {rl.ops.aten.addmm.default: addmm}
    traced = make_fx(lambda x, y: rl.addmm(rl.ones(2), x, y), decomposition_table=table)(x, y)
    assert "aten.addmm.default" not in targets(traced)
    assert rl.allclose(traced(x, y), 1 + x @ y, atol=1e-6)
    graph = rl.fx.Graph()
    whole = make_fx(lambda x, y: rl.addmm(rl.ones(2), x, y))(x, y)
    proxy_tensor.DecompositionInterpreter(whole, graph, table).run(x, y)
    assert rl.allclose(rl.fx.GraphModule(whole, graph)(x, y), 1 + x @ y, atol=1e-6)


def test_isolated_graphs_are_not_seen_outside():
    def f(x):
        inner = proxy_tensor.get_isolated_graphmodule(lambda y: y.sum(), (x,), {})
        assert targets(inner) == ["aten.sum.default"]
        return x.sigmoid()

    assert targets(make_fx(f)(rl.ones(2))) == ["aten.sigmoid.default"]


def test_nodes_know_what_they_gave():
    traced = make_fx(lambda x: x.unsqueeze(0).sum(1))(rl.ones(3))
    shapes = [tuple(n.meta["val"].shape) for n in traced.graph.nodes if "val" in n.meta]
    assert shapes == [(3,), (1, 3), (1,)]


def test_what_is_not_there_says_so():
    with pytest.raises(NotImplementedError, match="symbolic"):
        make_fx(rl.sin, tracing_mode="symbolic")
    with pytest.raises(NotImplementedError, match="pre_dispatch"):
        make_fx(rl.sin, pre_dispatch=True)
