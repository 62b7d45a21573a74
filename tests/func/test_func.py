"""Function transforms against torch.func (by values computed with torch on the same values)."""

import pytest

import rushlight as rl
from rushlight import func as ours

oracle = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.func")


pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own transforms warn


def plain(value):
    if hasattr(value, "tolist"):
        return [round(v, 4) for v in value.reshape(-1).tolist()] + [tuple(value.shape)]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return type(value)(plain(item) for item in value) if isinstance(value, (tuple, list)) else value


def loss(x, w):
    return (x * w).sin().sum()


CALLS = {
    "grad": lambda f, lib: f.grad(loss)(lib.arange(3.0), lib.ones(3)),
    "grad both": lambda f, lib: f.grad(loss, argnums=(0, 1))(lib.arange(3.0), lib.ones(3) * 2),
    "grad last": lambda f, lib: f.grad(loss, argnums=-1)(lib.arange(3.0), lib.ones(3) * 2),
    "grad aux": lambda f, lib: f.grad(lambda x: (x.sum(), {"y": x * 2}), has_aux=True)(lib.ones(2)),
    "grad and value": lambda f, lib: f.grad_and_value(loss)(lib.arange(3.0), lib.ones(3)),
    "grad dict": lambda f, lib: f.grad(lambda p, x: (p["w"] * x + p["b"]).sum() ** 2)(
        {"w": lib.ones(2), "b": lib.zeros(2)}, lib.arange(2.0)
    ),
    "grad of grad": lambda f, lib: f.grad(f.grad(lambda x: x**3))(lib.tensor(2.0)),
    "third": lambda f, lib: f.grad(f.grad(f.grad(lambda x: x**4)))(lib.tensor(2.0)),
    "mixed": lambda f, lib: f.grad(lambda x: (f.grad(lambda y: (x * y * y).sum())(x) ** 2).sum())(
        lib.arange(3.0)
    ),
    "unused": lambda f, lib: f.grad(lambda x, y: x.sum(), argnums=(0, 1))(lib.ones(2), lib.ones(3)),
    "not scalar": lambda f, lib: f.grad(lambda x: x)(lib.ones(2)),
    "vjp": lambda f, lib: f.vjp(lambda x, y: (x * y, x.sum()), lib.arange(3.0), lib.ones(3))[1](
        (lib.ones(3), lib.tensor(2.0))
    ),
    "jvp": lambda f, lib: f.jvp(lambda x: (x.sin(), x.sum()), (lib.arange(3.0),), (lib.ones(3),)),
    "jvp constant": lambda f, lib: f.jvp(lambda x: x.new_ones(2), (lib.arange(3.0),), (lib.ones(3),)),
    "jacrev": lambda f, lib: f.jacrev(lambda x: x.t() * x.sum())(lib.arange(6.0).reshape(2, 3)),
    "jacfwd": lambda f, lib: f.jacfwd(lambda x: x.t() * x.sum())(lib.arange(6.0).reshape(2, 3)),
    "jacrev tree": lambda f, lib: f.jacrev(lambda x, y: {"a": x * y, "b": y.sum()}, argnums=(0, 1))(
        lib.arange(2.0), lib.ones(2)
    ),
    "jacfwd tree": lambda f, lib: f.jacfwd(lambda x, y: {"a": x * y, "b": y.sum()}, argnums=(0, 1))(
        lib.arange(2.0), lib.ones(2)
    ),
    "hessian": lambda f, lib: f.hessian(lambda x: (x**3).sum())(lib.arange(3.0)),
    "hessian both": lambda f, lib: f.hessian(lambda x, y: (x**2 * y).sum(), argnums=(0, 1))(
        lib.arange(2.0), lib.ones(2)
    ),
    "linearize": lambda f, lib: f.linearize(lambda x: x**2, lib.arange(3.0))[1](lib.ones(3)),
    "vmap": lambda f, lib: f.vmap(lambda x, y: (x * y).sum())(lib.ones(4, 3), lib.arange(12.0).reshape(4, 3)),
    "vmap dims": lambda f, lib: f.vmap(lambda x, y: x * y, in_dims=(1, None), out_dims=-1)(
        lib.arange(6.0).reshape(2, 3), lib.ones(2)
    ),
    "vmap tree": lambda f, lib: f.vmap(lambda d: (d["a"] + d["b"], d["a"]), in_dims=({"a": 0, "b": None},))(
        {"a": lib.arange(3.0), "b": lib.tensor(1.0)}
    ),
    "vmap of grad": lambda f, lib: f.vmap(f.grad(loss), in_dims=(0, None))(
        lib.arange(6.0).reshape(2, 3), lib.ones(3)
    ),
    "vmap empty": lambda f, lib: f.vmap(lambda x: x * 2)(lib.ones(0, 3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_torch(name):
    def outcome(f, lib):
        try:
            return plain(CALLS[name](f, lib))
        except RuntimeError as error:
            return type(error), str(error)

    mine, expected = outcome(ours, rl), outcome(theirs, oracle)
    if name == "not scalar":
        assert mine[0] is expected[0] and "to return a scalar tensor, got tensor with 1 dims" in mine[1]
    else:
        assert mine == expected


def test_results_are_plain_unless_an_outside_graph_runs_through():
    x = rl.arange(3.0)
    assert not ours.grad(lambda t: (t**2).sum())(x).requires_grad
    assert not ours.jacrev(lambda t: t**2)(x).requires_grad and not x.requires_grad
    assert not ours.jvp(lambda t: t**2, (x,), (x,))[1].requires_grad
    w = rl.ones(3, requires_grad=True)
    ours.grad(lambda t: (t**2 * w).sum())(x).sum().backward()
    assert w.grad.tolist() == [0.0, 2.0, 4.0]
    z = rl.arange(3.0).requires_grad_()
    ours.grad(lambda t: (t**3).sum())(z).sum().backward()
    assert z.grad.tolist() == [0.0, 6.0, 12.0]
    with rl.no_grad():
        assert ours.grad(lambda t: (t**2).sum())(x).tolist() == [0.0, 2.0, 4.0]


def test_functional_call():
    rl.manual_seed(0)
    net = rl.nn.Sequential(rl.nn.Linear(2, 3), rl.nn.Tanh(), rl.nn.Linear(3, 1))
    x = rl.ones(4, 2)
    params = {name: p.detach() * 0 + 1 for name, p in net.named_parameters()}
    before = {name: p for name, p in net.named_parameters()}
    out = ours.functional_call(net, params, (x,))
    assert rl.allclose(out, (rl.full((4, 1), 3.0).tanh() * 3 + 1))
    assert all(p is before[name] for name, p in net.named_parameters())
    grads = ours.grad(lambda p: ours.functional_call(net, p, x).sum())(params)
    assert grads["2.bias"].tolist() == [4.0] and set(grads) == set(params)
    with pytest.raises(RuntimeError, match="Missing key"):
        ours.functional_call(net, {"0.weight": params["0.weight"]}, (x,), strict=True)
    with pytest.raises(ValueError, match="multiple dictionaries"):
        ours.functional_call(net, (params, params), (x,))
    with pytest.raises(AttributeError, match="nonsense"):
        ours.functional_call(net, {"nonsense.weight": x}, (x,))
    ours.functional_call(net, {"extra": x}, (x,))  # as in PyTorch, there for the time of the call
    assert not hasattr(net, "extra")
    broken = rl.ones(7, 7)
    with pytest.raises(RuntimeError):
        ours.functional_call(net, {"0.weight": broken}, (x,))
    assert net[0].weight is before["0.weight"]


def test_tied_weights():
    class Tied(rl.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = rl.nn.Linear(2, 2, bias=False)
            self.b = rl.nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    net, two = Tied(), rl.eye(2) * 2
    assert ours.functional_call(net, {"a.weight": two}, rl.ones(1, 2)).tolist() == [[4.0, 4.0]]
    with pytest.raises(ValueError, match="tied"):
        ours.functional_call(net, {"a.weight": two, "b.weight": two + 1}, rl.ones(1, 2))


def test_ensembles():
    rl.manual_seed(0)
    models = [rl.nn.Linear(2, 3) for _ in range(4)]
    params, buffers = ours.stack_module_state(models)
    assert tuple(params["weight"].shape) == (4, 3, 2) and params["weight"].requires_grad and buffers == {}
    x = rl.ones(5, 2)
    out = ours.vmap(lambda p: ours.functional_call(models[0], p, (x,)))(params)
    for i, model in enumerate(models):
        assert rl.allclose(out[i], model(x))
    with pytest.raises(RuntimeError, match="at least one model"):
        ours.stack_module_state([])


def test_vmap_refusals():
    with pytest.raises(ValueError, match="same size in the mapped dimension"):
        ours.vmap(lambda x, y: x)(rl.ones(2), rl.ones(3))
    with pytest.raises(ValueError, match="must only return Tensors"):
        ours.vmap(lambda x: 3)(rl.ones(2))
    with pytest.raises(ValueError, match="dimensionality"):
        ours.vmap(lambda x: x, in_dims=2)(rl.ones(2))
    with pytest.raises(ValueError, match="non-Tensor"):
        ours.vmap(lambda x, y: x)(rl.ones(2), 3)
    same = ours.vmap(lambda x: x + rl.rand(1), randomness="same")(rl.zeros(3))
    assert len(set(same.reshape(-1).tolist())) == 1


def test_argument_checks():
    with pytest.raises(RuntimeError, match="argnum"):
        ours.grad(loss, argnums=5)(rl.ones(1), rl.ones(1))
    with pytest.raises(RuntimeError, match="aux"):
        ours.grad(lambda x: x.sum(), has_aux=True)(rl.ones(1))
    with pytest.raises(RuntimeError, match="tangent"):
        ours.jvp(lambda x: x, (rl.ones(2),), (rl.ones(3),))


@pytest.mark.parametrize("chunk_size", [None, 1, 4])
def test_jacobians_at_once_are_those_row_by_row(chunk_size):
    w = rl.randn(5, 3, dtype=rl.float64)

    def f(x, y):
        return rl.tanh(x @ w) * y, x.sum().reshape(1)

    x, y = rl.randn(2, 5, dtype=rl.float64), rl.randn(3, dtype=rl.float64)
    rows = rl.func.jacrev(f, (0, 1), chunk_size=chunk_size)(x, y)
    columns = rl.func.jacfwd(f, (0, 1))(x, y)
    expected = rl.autograd.functional.jacobian(f, (x, y))
    at_once = rl.autograd.functional.jacobian(f, (x, y), vectorize=True)
    forward = rl.autograd.functional.jacobian(f, (x, y), vectorize=True, strategy="forward-mode")
    for i in range(2):
        for k in range(2):
            for found in (rows, columns, at_once, forward):
                assert found[i][k].shape == expected[i][k].shape
                assert rl.allclose(found[i][k], expected[i][k])


def test_jacobians_of_what_cannot_be_mapped():
    """Values that decide, random numbers, writes to tensors from outside: row by row, and run once more at most."""
    counter = rl.zeros(1)

    def f(x):
        counter.add_(1)
        y = x * 2 if x.sum().item() > 0 else x * 3
        return rl.nn.functional.dropout(y, 0.0)

    x = rl.ones(3, dtype=rl.float64)
    assert rl.func.jacrev(f)(x).equal(2 * rl.eye(3, dtype=rl.float64))
    assert rl.func.jacfwd(f)(-x).equal(3 * rl.eye(3, dtype=rl.float64))
    assert counter.item() == 2


def test_jacobians_of_nested_transforms():
    x = rl.randn(4, 3, dtype=rl.float64)
    per_sample = rl.func.vmap(rl.func.jacrev(lambda v: v.sin() * v.sum()))(x)
    for k in range(4):
        expected = rl.autograd.functional.jacobian(lambda v: v.sin() * v.sum(), x[k])
        assert rl.allclose(per_sample[k], expected)
    h = rl.func.hessian(lambda v: (v**3).sum() * v[0])(x[0])
    assert rl.allclose(h, rl.autograd.functional.hessian(lambda v: (v**3).sum() * v[0], x[0]))


def test_functionalize_changes_no_result():
    x = rl.ones(2)
    assert rl.func.functionalize(lambda t: t.add_(1).mul(2))(x).tolist() == [4.0, 4.0] and x.tolist() == [
        2.0,
        2.0,
    ]
    with pytest.raises(RuntimeError, match="invalid argument for remove"):
        rl.func.functionalize(lambda t: t, remove="views")


def test_hessian_runs_at_once(monkeypatch):
    """The inner Jacobian of a scalar is mapped, too, not done row by row."""
    from rushlight import func

    calls = []
    pull_back = func._pull_back
    monkeypatch.setattr(func, "_pull_back", lambda *a, **k: calls.append(1) or pull_back(*a, **k))
    w = rl.arange(16.0, dtype=rl.float64).view(4, 4) / 16
    x = rl.tensor([0.1, -0.2, 0.3, 0.4], dtype=rl.float64)
    h = func.hessian(lambda x: (w @ x).tanh().square().sum())(x)
    assert len(calls) <= 4
    t = (w @ x).tanh()
    curve = 2 * (1 - t**2) * (1 - 3 * t**2)  # the second derivative of tanh^2
    assert rl.allclose(h, w.t() @ rl.diag(curve) @ w)
