"""No op cuts the graph in silence: a float result of an input that requires grad has a history, or the op's
registration says that it has none."""

from importlib import import_module

import pytest
from opspec import parts
from specs import ALL

import rushlight as rl
from rushlight import _C

NO_HISTORY = _C.OpFlags.NOT_DIFFERENTIABLE | _C.OpFlags.FACTORY


def x(*size):
    return (rl.rand(*size, dtype=rl.float64) * 0.8 + 0.1).requires_grad_()


def spd():
    a = rl.randn(3, 3, dtype=rl.float64)
    return (a @ a.T + 2 * rl.eye(3, dtype=rl.float64)).requires_grad_()


INDEX = rl.tensor([0, 1, 0])
# Arguments that some op or other takes.
CALLS = [
    lambda: (x(3, 3),),
    lambda: (x(3, 3), x(3, 3)),
    lambda: (x(3, 3), 1),
    lambda: (x(3, 3), x(3)),
    lambda: (x(3),),
    lambda: (x(3), x(3)),
    lambda: (x(3), x(3, 3)),
    lambda: (spd(),),
    lambda: (spd(), x(3, 2)),
    lambda: (x(3, 3), 0, INDEX),
    lambda: (x(3, 3), 0, INDEX.expand(3, 3)),
    lambda: (x(3, 3), 0, INDEX.expand(3, 3), x(3, 3)),
    lambda: (x(3, 3), 0, INDEX.expand(3, 3), x(3, 3), "sum"),
    lambda: (x(3, 3), 0, INDEX, x(3, 3)),
    lambda: (x(3, 3), 0, INDEX, x(3, 3), "mean"),
    lambda: (x(3, 3), 0, INDEX, 0.5),
    lambda: (x(3, 3), (INDEX,), x(3)),
    lambda: (x(3, 3), INDEX),
    lambda: (x(3, 3), INDEX, x(3)),
    lambda: ([x(3, 3), x(3, 3)],),
    lambda: (x(3, 3), (3, 3)),
    lambda: (x(3, 3), [1, 1]),
    lambda: (x(3, 3), 0, 1),
    lambda: (x(3, 3), 0, 1, 1),
    lambda: (x(3, 3), x(3, 3), x(3, 3)),
    lambda: (x(3, 3), x(3), 0, 1),
    lambda: (x(3, 3), x(3, 3), x(3)),
    lambda: (x(3, 3), x(3), x(3)),
    lambda: (x(3), x(3, 3), x(3)),
    lambda: (x(2, 3, 4),),
    lambda: (x(2, 3, 4), x(2, 4, 3)),
    lambda: (x(3, 3), x(2, 3, 4), x(2, 4, 3)),
    lambda: (x(2, 3, 3), x(2, 3, 4), x(2, 4, 3)),
    lambda: (x(2, 3, 4), x(2, 3, 4), x(2, 3, 4)),
    lambda: (x(2, 4, 4, 4),),
    lambda: (x(2, 4, 4, 4), 2),
    lambda: (x(2, 3, 8), 2),
    lambda: (x(2, 4, 4, 4), x(3, 4, 3, 3)),
    lambda: (x(2, 4, 4, 4), x(4, 3, 3, 3)),
    lambda: (x(2, 4, 8), x(3, 4, 3)),
    lambda: (x(2, 4, 8), x(4, 3, 3)),
    lambda: (x(2, 4, 4, 4, 4), x(4, 4, 3, 3, 3)),
    lambda: (x(2, 4, 4, 4), x(2, 3, 3, 2), 0, 0, False),
    lambda: (1, x(3, 3)),
    lambda: (x(3, 3), rl.rand(3, 3) > 0.5),
    lambda: (x(3, 3), rl.rand(3, 3) > 0.5, 0.5),
    lambda: (x(3, 3), rl.rand(3, 3) > 0.5, x(9)),
    lambda: (x(3, 3), 0.5),
    lambda: (x(3, 3), 0.5, True),
    lambda: (x(3, 3), 0.1, 0.9),
    lambda: (x(3, 3), 2.0, 0, 1.0),
    lambda: (x(3, 2),),
    lambda: (x(3, 4), 1, (2, 2)),
    lambda: (x(3, 3), x(3), None, None, None, True, 0.1, 1e-5, False),
    lambda: (rl.complex(x(3, 3), x(3, 3)),),
    lambda: (x(8), 4),
    lambda: (rl.rand(3, 3, requires_grad=True),),
]

ops = {**_C.ops, **import_module("rushlight._core.compose")._composed}
PUBLIC = sorted(
    n
    for n, f in ops.items()
    if not n.startswith("_") and not n.endswith("_") and "set_" not in n and n not in ("load", "save", "seed")
)


def declared(name):
    op = ops[name]
    if not getattr(op, "_differentiable", True):
        return True
    return bool(getattr(op, "_flags", 0) & NO_HISTORY)


def flat(result):
    if isinstance(result, rl.Tensor):
        return [result]
    return [t for r in result for t in flat(r)] if isinstance(result, tuple | list) else []


def floats(result):
    return [t for t in flat(result) if t.dtype.is_floating_point or t.dtype.is_complex]


def test_no_op_cuts_the_graph_in_silence():
    cut, reached = [], set()
    for name in PUBLIC:
        for make in CALLS:
            args = make()
            try:
                results = floats(ops[name](*args))
            except Exception:
                continue  # arguments of another op
            reached.add(name)
            if results and not any(t.requires_grad for t in results) and not declared(name):
                cut.append((name, [getattr(a, "shape", a) for a in args]))
                break
    assert not cut, cut
    assert len(reached) > 0.85 * len(PUBLIC), sorted(set(PUBLIC) - reached)


@pytest.mark.parametrize("spec", [s for s in ALL if s.grad], ids=str)
def test_results_of_specs_have_a_history(spec):
    for sample in spec.samples():
        inputs, call = parts(sample)
        results = call(spec.function)(*inputs) if inputs else ()
        assert not results or any(t.requires_grad for t in results)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda a: rl.unique(a), "unique"),
        (lambda a: rl.histogram(a, 3)[0], "histogram"),
        (lambda a: rl.heaviside(a, a), "heaviside"),
        (lambda a: rl.geqrf(a)[0], "geqrf"),
        (lambda a: rl.special.bessel_j0(a), "bessel_j0"),
    ],
)
def test_an_op_without_derivative_says_so(call, name):
    y = call(x(3, 3))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match=f"derivative for .*{name} is not implemented"):
        y.sum().backward()


def test_weights_of_bincount():
    w = x(5)
    at = rl.tensor([0, 2, 2, 1, 0])
    assert rl.autograd.gradcheck(lambda w: rl.bincount(at, w, 4), w)
    assert rl.autograd.gradgradcheck(lambda w: rl.bincount(at, w * w, 4), w)
    rl.bincount(at, w.detach().float().requires_grad_()).sum().backward()


@pytest.mark.parametrize("f", [rl.logaddexp, rl.logaddexp2])
def test_logaddexp_far_apart_and_at_infinity(f):
    inf = float("inf")
    a = rl.tensor([-inf, inf, -inf, 1000.0, 0.0], dtype=rl.float64, requires_grad=True)
    b = rl.tensor([-inf, inf, 3.0, -1000.0, 0.0], dtype=rl.float64, requires_grad=True)
    da, db = rl.autograd.grad(f(a, b).sum(), [a, b], create_graph=True)
    assert da.tolist() == [0.5, 0.5, 0, 1, 0.5] and db.tolist() == [0.5, 0.5, 1, 0, 0.5]
    second = rl.autograd.grad(da.sum(), [a, b])
    assert all(s[2:4].tolist() == [0, 0] and s.isfinite().all() for s in second)


def test_safe_softmax():
    inf = float("inf")
    a = rl.tensor([[1.0, 2.0, 3.0], [-inf, 0.5, 1.0], [-inf] * 3], dtype=rl.float64, requires_grad=True)
    y = rl._safe_softmax(a, -1)
    assert y[2].tolist() == [0, 0, 0]
    (g,) = rl.autograd.grad(y[:, 1].sum(), a, create_graph=True)
    assert g[2].tolist() == [0, 0, 0] and g[1, 0] == 0 and g.isfinite().all()
    (h,) = rl.autograd.grad(g.square().sum(), a)
    assert h.isfinite().all()
    b = x(2, 3)
    assert rl.autograd.gradcheck(lambda t: rl._safe_softmax(t, -1), b)
    assert rl.autograd.gradgradcheck(lambda t: rl._safe_softmax(t, 0), b)


@pytest.mark.parametrize("dy", [3.0, 0.0, rl.inf, rl.nan])
def test_the_norm_of_zeros_is_differentiated_as_in_torch(dy):
    torch = pytest.importorskip("torch")

    def derivatives(T):
        x = T.zeros(2, dtype=T.float64, requires_grad=True)
        w = T.tensor(dy, dtype=T.float64, requires_grad=True)
        (plain,) = T.autograd.grad(x.norm() * w, x)
        (dx,) = T.autograd.grad(x.norm() * w, x, create_graph=True)
        ddx, dw = T.autograd.grad(dx.sum(), (x, w))
        return [*plain.tolist(), *dx.tolist(), *ddx.tolist(), dw.item()]

    assert derivatives(rl) == pytest.approx(derivatives(torch), nan_ok=True)


def test_coordinates_that_reach_the_largest_difference():
    """Each has the whole gradient, as in PyTorch, in the kernel of long rows and in the formula of short ones."""
    for columns in (2, 9):
        x = rl.zeros(1, columns, dtype=rl.float64, requires_grad=True)
        y = rl.ones(1, columns, dtype=rl.float64)
        rl.cdist(x, y, p=float("inf")).backward()
        assert x.grad.tolist() == [[-1.0] * columns]
        rows = rl.cat([rl.zeros(1, columns), y.float()]).requires_grad_()
        rl.pdist(rows, float("inf")).backward()
        assert rows.grad.tolist() == [[-1.0] * columns, [1.0] * columns]


@pytest.mark.parametrize("reduce", [rl.scatter_reduce, rl.index_reduce])
def test_second_derivative_of_a_product_in_which_zeros_meet_is_refused(reduce):
    index, x = rl.tensor([0, 0, 1]), rl.ones(2, dtype=rl.float64)

    def derivative(values):
        src = rl.tensor(values, dtype=rl.float64, requires_grad=True)
        (g,) = rl.autograd.grad(reduce(x, 0, index, src, "prod").sum(), src, create_graph=True)
        return g, src

    g, src = derivative([0.0, 0.0, 2.0])
    assert g.tolist() == [0, 0, 1]
    with pytest.raises(RuntimeError, match="Double backward is unsupported for"):
        rl.autograd.grad(g.sum(), src)
    g, src = derivative([0.0, 3.0, 2.0])
    assert rl.autograd.grad(g.sum(), src)[0].tolist() == [1, 1, 0]


def test_gradient_of_lobpcg_reaches_both_triangles():
    a = rl.randn(9, 9, dtype=rl.float64)
    a = (a @ a.mT + rl.eye(9, dtype=rl.float64)).requires_grad_()
    values, _ = rl.lobpcg(a, k=2)
    (g,) = rl.autograd.grad(values.sum(), a)
    _, vectors = rl.linalg.eigh(a.detach())
    assert rl.allclose(g, vectors[:, -2:] @ vectors[:, -2:].mT)
