"""grad(is_grads_batched=True): one backward for a stack of gradients gives what a backward for each of them gives, for every op."""

from collections import Counter

import pytest
from opspec import parts
from specs import ALL

import rushlight as rl
from rushlight.profiler import profile

ROWS = 3
# Nodes that run row by row: right, and slow.
BY_ROWS = {
    "ConvolutionBackward0",  # by the filters of several groups
    "ConvolutionBackwardBackward0",
    "CtcLossBackward0",
    "EmbeddingBagBackward0",
    "GridSampler2DBackward0",
    "MaskedScatterBackward0",  # by the source
    "PutBackward0",
    "RnnLayerBackward0",
    "ScatterReduceBackward0",
    "TakeBackward0",
}


def stacks(tensors):
    return [rl.randn((ROWS, *t.shape), dtype=t.dtype) for t in tensors]


def one_by_one(outputs, inputs, seeds, create_graph=False):
    runs = [
        rl.autograd.grad(outputs, inputs, [s[i] for s in seeds], True, create_graph, allow_unused=True)
        for i in range(ROWS)
    ]
    return [None if column[0] is None else rl.stack(column) for column in zip(*runs, strict=True)]


def at_once(outputs, inputs, seeds, create_graph=False):
    return rl.autograd.grad(
        outputs, inputs, seeds, True, create_graph, allow_unused=True, is_grads_batched=True
    )


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == b.shape and a.dtype == b.dtype
            assert rl.allclose(a, b, rtol=1e-7, atol=1e-9, equal_nan=True)


def nodes(outputs):
    """How many nodes of each name a graph has."""
    found = {y.grad_fn for y in outputs if y.grad_fn is not None}
    stack = list(found)
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is not None and node not in found:
                found.add(node)
                stack.append(node)
    return Counter(node.name() for node in found)


def check(outputs, inputs, by_rows=BY_ROWS):
    """Both code paths agree, and no node but those named ran row by row."""
    seeds = stacks(outputs)
    with profile() as p:
        found = at_once(outputs, inputs, seeds)
    assert_same(found, one_by_one(outputs, inputs, seeds))
    runs, graph = Counter(e.name for e in p.events()), nodes(outputs)
    assert {name for name, n in graph.items() if runs[name] > n} <= by_rows
    return seeds


@pytest.mark.parametrize("spec", [s for s in ALL if s.grad], ids=str)
def test_every_op(spec):
    for sample in spec.samples():
        inputs, call = parts(sample)
        outputs = call(spec.derive or spec.function)(*inputs) if inputs else ()
        outputs = [y for y in outputs if y.requires_grad]
        if not outputs:
            continue
        seeds = check(outputs, inputs)
        if not spec.gradgrad:
            continue
        assert_same(*(f(outputs, inputs, seeds, create_graph=True) for f in (at_once, one_by_one)))
        # A stack through the graph of the gradient: Jacobian-vector products, and second derivatives.
        u = [rl.randn(y.shape, dtype=y.dtype).requires_grad_() for y in outputs]
        pulled = rl.autograd.grad(outputs, inputs, u, create_graph=True, allow_unused=True)
        pulled = [g for g in pulled if g is not None and g.requires_grad]
        if pulled:
            check(pulled, [*inputs, *u])


def f64(*size):
    return rl.randn(size, dtype=rl.float64)


@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_of_one_group(transposed):
    conv = rl.nn.functional.conv_transpose2d if transposed else rl.nn.functional.conv2d
    inputs = [f64(2, 3, 6, 7).requires_grad_(), f64(3, 3, 3, 2).requires_grad_(), f64(3).requires_grad_()]
    y = conv(*inputs, stride=2, padding=1)
    check([y], inputs, set())
    u = f64(*y.shape).requires_grad_()
    check(rl.autograd.grad(y, inputs[:2], u, create_graph=True), [*inputs[:2], u], set())


def test_models():
    from rushlight import nn

    net = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 8),
        nn.LayerNorm(8), nn.GELU(), nn.Unflatten(1, (2, 4)), nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True),
    ).double()  # fmt: skip
    x = f64(3, 2, 4, 4).requires_grad_()
    for mode in (True, False):
        check([net.train(mode)(x)], [x, *net.parameters()], set())


def test_writes_and_views():
    x, y = f64(3, 4).requires_grad_(), f64(4).requires_grad_()
    z = x.sin()
    z[1] = y * 2
    z[:, ::2].mul_(y[1:3])
    z.t()[0].copy_(y[:3])
    check([z, z[2]], [x, y], set())
    c = rl.complex(x, x.sin())
    c.real[0] = y
    c.imag.mul_(2)
    check([c, c.real.clone()], [x, y], set())
    w = x * 1
    w.as_strided((2, 3), (4, 2), 1).add_(y[:3])
    check([w], [x, y], set())


def test_rows_of_any_number():
    x = f64(3, 4).requires_grad_()
    y = x.sin().sum(0) @ x.t()
    (found,) = rl.autograd.grad(y, x, f64(0, 3), retain_graph=True, is_grads_batched=True)
    assert found.shape == (0, 3, 4)
    (found,) = rl.autograd.grad(y, x, rl.eye(3, dtype=x.dtype), is_grads_batched=True)
    assert rl.allclose(found, rl.func.jacrev(lambda x: x.sin().sum(0) @ x.t())(x))


def test_against_torch():
    torch = pytest.importorskip("torch")
    a = rl.arange(6.0).reshape(2, 3)
    for f in (
        lambda m, x: (x.sin(), m.ones(4, 2, 3)),
        lambda m, x: (x.sum(), m.arange(4.0)),
        lambda m, x: ((x @ x.t()).softmax(-1), m.arange(8.0).reshape(2, 2, 2)),
    ):
        found = []
        for m in (rl, torch):
            x = m.tensor(a.tolist(), requires_grad=True)
            y, g = f(m, x)
            found.append(m.autograd.grad(y, x, g, is_grads_batched=True)[0].tolist())
        assert rl.allclose(rl.tensor(found[0]), rl.tensor(found[1]), atol=1e-6)


def test_unused_inputs():
    x, z = f64(3).requires_grad_(), f64(2).requires_grad_()
    y, g = x * 2, f64(4, 3)
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        rl.autograd.grad(y, [x, z], g, retain_graph=True, is_grads_batched=True)
    assert (
        rl.autograd.grad(y, [x, z], g, retain_graph=True, is_grads_batched=True, allow_unused=True)[1] is None
    )
    zeros = rl.autograd.grad(y, [x, z], g, is_grads_batched=True, materialize_grads=True)[1]
    assert zeros.shape == (2,) and not zeros.any()


def test_mistakes():
    x = f64(3).requires_grad_()
    y = x * 2
    for g in (rl.ones(3), rl.ones(2, 4), rl.ones(2, 3, 1)):
        with pytest.raises(RuntimeError, match="If `is_grads_batched=True`"):
            rl.autograd.grad(y, x, g.double(), is_grads_batched=True)
    with pytest.raises(ValueError, match="same size in the mapped dimension, got sizes"):
        rl.autograd.grad([y, y], x, [f64(2, 3), f64(4, 3)], is_grads_batched=True)
    for g in (None, [None], rl.tensor(1.0)):
        with pytest.raises(ValueError, match="dimensionality 0"):
            rl.autograd.grad(y.sum(), x, g, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="`inputs` argument to `grad\\(\\)` cannot be empty"):
        rl.autograd.grad(y, [], f64(3))


class Square(rl.autograd.Function):
    seen: list = []

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        Square.seen.append(tuple(g.shape))
        return 2 * ctx.saved_tensors[0] * g


def test_functions_of_ones_own_run_once():
    x = f64(3).requires_grad_()
    y = Square.apply(x).exp()
    g = f64(5, 3)
    Square.seen.clear()
    (found,) = rl.autograd.grad(y, x, g, create_graph=True, is_grads_batched=True)
    assert Square.seen == [(3,)]
    assert rl.allclose(found, g * y * 2 * x)
    (second,) = rl.autograd.grad(found.sum(), x)
    assert rl.allclose(second, (g * (y * 2 + y * 4 * x * x)).sum(0))

    class Reads(Square):
        @staticmethod
        def backward(ctx, g):
            return g * g.sum().item()

    with pytest.raises(RuntimeError, match="calling .item\\(\\)"):
        rl.autograd.grad(Reads.apply(x), x, g, is_grads_batched=True)


def test_hooks_see_one_row():
    x = f64(3).requires_grad_()
    y = x.sin()
    seen = []
    y.register_hook(lambda g: seen.append(tuple(g.shape)) or g * 2)
    y.grad_fn.register_prehook(lambda gs: seen.append(tuple(gs[0].shape)))
    y.grad_fn.register_hook(lambda dx, dy: (dx[0] + dy[0],))
    y.retain_grad()
    g = f64(4, 3)
    (found,) = rl.autograd.grad(y, x, g, is_grads_batched=True)
    assert seen == [(3,), (3,)] and rl.allclose(found, 2 * g * x.cos() + 2 * g)
    assert y.grad is None


def test_under_vmap():
    x = f64(3)
    y, pull = rl.func.vjp(lambda v: (v.sin() * v[0]).cumsum(0), x)
    g = f64(5, 3)
    with profile() as p:
        found = rl.vmap(lambda v: pull(v)[0])(g)
    assert rl.allclose(found, rl.stack([pull(v)[0] for v in g]))
    assert sum(e.name == "SinBackward0" for e in p.events()) == 1
    nested = rl.vmap(rl.vmap(lambda v: pull(v)[0]))(f64(2, 5, 3))
    assert nested.shape == (2, 5, 3)

    def rows(v, g):
        w = v.sin() * v[0]
        return rl.autograd.grad(w, v, g, is_grads_batched=True)[0]

    xs, gs = f64(4, 3).requires_grad_(), f64(4, 2, 3)
    expected = rl.stack([rows(v, h) for v, h in zip(xs, gs, strict=True)])
    assert rl.allclose(rl.vmap(rows)(xs, gs), expected)
    assert rl.allclose(rl.vmap(rows, (0, None))(xs, gs[0])[0], expected[0])
    assert rl.allclose(rl.vmap(rows, (None, 0))(xs[0], gs)[0], expected[0])
