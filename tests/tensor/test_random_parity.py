"""Every distribution against torch, bit for bit: numbers and the state that is left behind."""

import ctypes
import warnings

import pytest

import rushlight as rl

torch = pytest.importorskip("torch")

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
SHAPES = {
    "1": lambda m, t: m.zeros(1, dtype=t),
    "15": lambda m, t: m.zeros(15, dtype=t),
    "16": lambda m, t: m.zeros(16, dtype=t),
    "33": lambda m, t: m.zeros(33, dtype=t),
    "625": lambda m, t: m.zeros(625, dtype=t),
    "5003": lambda m, t: m.zeros(5003, dtype=t),
    "0-dim": lambda m, t: m.zeros((), dtype=t),
    "transposed": lambda m, t: m.zeros(7, 9, dtype=t).t(),
    "permuted": lambda m, t: m.zeros(7, 9, 4, dtype=t).permute(1, 2, 0),
    "column": lambda m, t: m.zeros(40, 5, dtype=t)[:, 2],
}


def bits(t):
    t = t.detach().contiguous()
    return ctypes.string_at(t.data_ptr(), t.numel() * t.element_size()) if t.numel() else b""


def same(call, seed=11):
    """call(module, dtypes by name) in both libraries, from one seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        theirs = call(torch)
        rl.manual_seed(seed)
        ours = call(rl)
    theirs, ours = (x if isinstance(x, tuple) else (x,) for x in (theirs, ours))
    for a, b in zip(theirs, ours, strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        assert str(a.dtype) == str(b.dtype)
        assert bits(a) == bits(b)
    assert bits(torch.get_rng_state()) == bits(rl.get_rng_state())


FILLS = {
    "uniform": (FLOATS, [(), (-1.0, 2.0), (0.3, 0.30001), (5.0, 5.0)]),
    "normal": (FLOATS, [(), (3.0, 2.0), (-1.0, 0.0)]),
    "log_normal": (FLOATS, [(), (0.5, 1.5)]),
    "cauchy": (FLOATS, [(), (0.5, 1.5)]),
    "exponential": (FLOATS, [(), (0.3,)]),
    "geometric": (FLOATS + INTEGERS, [(0.2,), (0.9,)]),
    "random": (FLOATS + INTEGERS + ["bool"], [(), (0, 2)]),
    "bernoulli": (FLOATS + INTEGERS + ["bool"], [(), (0.1,), (0.0,), (1.0,)]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FILLS)
def test_fills(name, shape):
    dtypes, arguments = FILLS[name]
    for dtype in dtypes:
        for args in arguments:
            same(lambda m: getattr(SHAPES[shape](m, getattr(m, dtype)), name + "_")(*args))  # noqa: B023


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_random_ranges(dtype):
    ranges = [(0, 100), (3, 117)] + [(-5, 7)] * (dtype != "uint8")
    if dtype in ("int32", "int64", "float32", "float64"):
        ranges += [(0, 2**28), (0, 2**28 - 1), (-(2**27), 2**28 + 5), (2**24 - 1, 2**24 + 3)]
    if dtype == "float16":
        ranges += [(0, 4096), (-4097, 2049), (0, 65504)]
    if dtype == "int64":
        ranges += [(-(2**62), 2**62), (-(2**63), 2**63 - 1), (-(2**63), None), (-5, None)]
    for low, high in ranges:
        same(lambda m: m.zeros(1000, dtype=getattr(m, dtype)).random_(low, high))  # noqa: B023
        if high is not None:
            same(lambda m: m.randint(low, high, (1000,), dtype=getattr(m, dtype)))  # noqa: B023


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 100, 4097])
def test_factories(n):
    for dtype in FLOATS + ["complex64", "complex128"]:
        same(lambda m: m.rand(n, dtype=getattr(m, dtype)))  # noqa: B023
        same(lambda m: m.randn(2, n, dtype=getattr(m, dtype)))  # noqa: B023
        same(lambda m: m.randn_like(m.zeros(n, 3, dtype=getattr(m, dtype)).t()))  # noqa: B023
        same(lambda m: m.rand_like(m.zeros(n, 3, dtype=getattr(m, dtype)).t()))  # noqa: B023
    same(lambda m: m.randint_like(m.zeros(n), 3, 100))
    same(lambda m: m.normal(1.5, 2.5, (n,)))
    same(lambda m: m.rand(n, out=m.zeros(n, dtype=m.float64)))
    for dtype in ["int64", "int32", "float32", "float64"] + ["uint8", "int8"] * (n <= 100):
        same(lambda m: m.randperm(n, dtype=getattr(m, dtype)))  # noqa: B023


@pytest.mark.parametrize("dtype", FLOATS)
def test_samples(dtype):
    def make(m, values):
        return m.tensor(values, dtype=m.float32).to(getattr(m, dtype))

    ramp = [i / 40 for i in range(40)]
    same(lambda m: m.bernoulli(make(m, ramp)))
    same(lambda m: m.bernoulli(make(m, ramp), 0.3))
    same(lambda m: m.zeros(40, dtype=m.int32).bernoulli_(make(m, ramp)))
    same(lambda m: m.zeros(6, 40).t().bernoulli_(make(m, ramp)[:, None]))
    for count in (1, 2, 7, 30):
        same(lambda m: m.multinomial(make(m, ramp), count))  # noqa: B023
        same(lambda m: m.multinomial(make(m, ramp), count, True))  # noqa: B023
        same(lambda m: m.multinomial(make(m, ramp).reshape(4, 10), min(count, 9), count > 9))  # noqa: B023
    same(lambda m: m.multinomial(make(m, [0, 0, 1, 0, 0, 0, 2, 0, 0, 0] * 20), 100))
    same(lambda m: m.multinomial(make(m, [0, 0, 1, 0, 0, 0, 2, 0, 0, 0] * 40), 5))
    for rate in (0.0, 0.5, 9.5, 10.0, 37.0, 1000.0):
        same(lambda m: m.poisson(make(m, [rate] * 100)))  # noqa: B023
    same(lambda m: m.normal(make(m, ramp), make(m, ramp)))
    same(lambda m: m.normal(make(m, ramp), 0.3))
    same(lambda m: m.normal(2.0, make(m, ramp)))
    same(lambda m: m.dropout(make(m, ramp), 0.3, True))
    same(lambda m: m.dropout(make(m, ramp).reshape(4, 10).t(), 0.3, True))
    same(lambda m: m.native_dropout(make(m, ramp), 0.3, True))
    same(lambda m: m.feature_dropout(make(m, ramp).reshape(4, 2, 5), 0.3, True))
    same(lambda m: m.alpha_dropout(make(m, ramp), 0.3, True))
    same(lambda m: m.feature_alpha_dropout(make(m, ramp).reshape(4, 2, 5), 0.3, True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_and_binomial(dtype):
    for alpha in (0.0, 1e-3, 0.3, 1.0, 1.5, 7.0, 1000.0):
        same(lambda m: m._standard_gamma(m.full((100,), alpha, dtype=getattr(m, dtype))))  # noqa: B023
    for count in (0.0, 1.0, 7.0, 30.0, 1000.0, 1e5):
        for p in (0.0, 0.01, 0.3, 0.5, 0.51, 0.97, 1.0):
            same(
                lambda m: m.binomial(
                    m.full((50,), count, dtype=getattr(m, dtype)),  # noqa: B023
                    m.full((50,), p, dtype=getattr(m, dtype)),  # noqa: B023
                )
            )
    same(lambda m: m._sample_dirichlet(m.full((20, 3), 0.7, dtype=getattr(m, dtype))))


def test_gradients_of_samples():
    alpha = [0.01, 0.3, 1.0, 2.5, 7.0, 30.0, 500.0]
    torch.manual_seed(0)
    a = torch.tensor(alpha, dtype=torch.float64).repeat(50)
    x = torch._standard_gamma(a)
    ours = rl._standard_gamma_grad(
        rl.tensor(a.tolist(), dtype=rl.float64), rl.tensor(x.tolist(), dtype=rl.float64)
    )
    torch.testing.assert_close(
        torch.tensor(ours.tolist(), dtype=torch.float64), torch._standard_gamma_grad(a, x)
    )
    a = a.reshape(50, 7)
    x = torch._sample_dirichlet(a)
    total = a.sum(-1, True).expand_as(a)
    ours = rl._dirichlet_grad(*(rl.tensor(t.tolist(), dtype=rl.float64) for t in (x, a, total)))
    torch.testing.assert_close(
        torch.tensor(ours.tolist(), dtype=torch.float64), torch._dirichlet_grad(x, a, total)
    )


def test_states_interchange():
    torch.manual_seed(2**40 + 5)
    torch.randn(3)
    rl.set_rng_state(rl.tensor(torch.get_rng_state().tolist(), dtype=rl.uint8))
    assert bits(torch.randn(5)) == bits(rl.randn(5))
    torch.set_rng_state(torch.tensor(rl.get_rng_state().tolist(), dtype=torch.uint8))
    assert bits(torch.rand(9)) == bits(rl.rand(9))
