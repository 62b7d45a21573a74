"""What the generic op tests do not reach: edges of types and values, and memory orders that take a path of their own."""

import math

import numpy as np
import pytest

import rushlight as rl

inf, nan = math.inf, math.nan


def same(actual, expected):
    """Equal with NaN equal to NaN and -0.0 different from 0.0."""
    actual, expected = actual.numpy(), np.asarray(expected, dtype=actual.numpy().dtype)
    np.testing.assert_array_equal(actual, expected)
    if actual.dtype.kind == "f":
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(actual[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("op", ["floor_divide", "remainder", "fmod"])
def test_integer_division_by_zero_is_an_error(op):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(rl, op)(rl.tensor([1, 2]), rl.tensor([1, 0]))


@pytest.mark.parametrize("dtype", [rl.int8, rl.int16, rl.int32, rl.int64])
def test_the_lowest_integer_divided_by_minus_one_wraps(dtype):
    low = rl.iinfo(dtype).min
    x, y = rl.tensor([low, -7], dtype=dtype), rl.tensor([-1, -1], dtype=dtype)
    assert rl.floor_divide(x, y).tolist() == [low, 7]
    assert rl.remainder(x, y).tolist() == [0, 0]
    assert rl.fmod(x, y).tolist() == [0, 0]


def test_signs_of_quotients_and_remainders():
    x, y = rl.tensor([7, -7, 7, -7]), rl.tensor([2, 2, -2, -2])
    assert (x // y).tolist() == [3, -4, -4, 3]
    assert (x % y).tolist() == [1, 1, -1, -1]
    assert rl.fmod(x, y).tolist() == [1, -1, 1, -1]
    assert rl.div(x, y, rounding_mode="trunc").tolist() == [3, -3, -3, 3]
    same(x.double() % y.double(), [1, 1, -1, -1])
    same(rl.tensor([5.0, -5.0, 5.0, nan]) % rl.tensor([inf, inf, 0.0, 1.0]), [5, inf, nan, nan])


def test_far_quotients_take_the_exact_path():
    x, y = np.array([1e18, 1e300, -1e17, 3.0]), np.array([3.0, 7.0, 9.0, 5e-324])
    np.testing.assert_array_equal(rl.fmod(rl.tensor(x), rl.tensor(y)).numpy(), np.fmod(x, y))
    np.testing.assert_array_equal(rl.remainder(rl.tensor(x), rl.tensor(y)).numpy(), np.remainder(x, y))


def test_powers_of_integers():
    assert (rl.tensor([2, -1, 1, 0, 3]) ** rl.tensor([-1, -3, -5, 0, 4])).tolist() == [0, -1, 1, 1, 81]
    with pytest.raises(RuntimeError, match="Integers to negative integer powers"):
        rl.tensor([2]) ** -1


def test_powers_at_the_edges():
    base = [0.0, -0.0, 0.0, -0.0, -8.0, -8.0, inf, -inf, 1.0, nan, -1.0, 2.0]
    exponent = [-1.0, -1.0, 3.0, 3.0, 3.0, 0.5, -1.0, 3.0, nan, 0.0, inf, 2000.0]
    expected = [inf, -inf, 0.0, -0.0, -512.0, nan, 0.0, -inf, 1.0, 1.0, 1.0, inf]
    for dtype in (rl.float32, rl.float64):
        same(rl.tensor(base, dtype=dtype) ** rl.tensor(exponent, dtype=dtype), expected)


def test_shifts_beyond_the_width():
    x = rl.tensor([1, -1, 5], dtype=rl.int32)
    assert (x << 40).tolist() == [0, 0, 0]
    assert (x >> 40).tolist() == [0, -1, 0]


def test_bool_arithmetic():
    a, b = rl.tensor([True, True, False]), rl.tensor([True, False, False])
    assert (a + b).tolist() == [True, True, False]
    assert (a * b).tolist() == [True, False, False]
    with pytest.raises(RuntimeError, match="bool"):
        a - b


def test_nan_in_choices():
    x, y = rl.tensor([nan, 1.0, nan, 2.0]), rl.tensor([1.0, nan, nan, 3.0])
    same(rl.maximum(x, y), [nan, nan, nan, 3])
    same(rl.minimum(x, y), [nan, nan, nan, 2])
    same(rl.fmax(x, y), [1, 1, nan, 3])
    same(rl.fmin(x, y), [1, 1, nan, 2])
    same(rl.clamp(x, 0.0, 1.5), [nan, 1, nan, 1.5])
    same(rl.clamp(rl.tensor([0.0, 5.0]), 3.0, 1.0), [1, 1])
    same(rl.relu(rl.tensor([nan, -1.0, 2.0])), [nan, 0, 2])
    same(rl.sign(rl.tensor([nan, -0.0, -3.0])), [0, 0, -1])
    same(rl.heaviside(rl.tensor([-1.0, 0.0, nan]), rl.tensor([9.0, 9.0, 9.0])), [0, 9, 0])


def test_rounding():
    same(rl.round(rl.tensor([0.5, 1.5, 2.5, -0.5, -1.5])), [0.0, 2.0, 2.0, -0.0, -2.0])
    np.testing.assert_allclose(
        rl.round(rl.tensor([1.2345, -1.2355]), decimals=2).numpy(), [1.23, -1.24], rtol=1e-6
    )
    same(rl.round(rl.tensor([1234.0]), decimals=-2), [1200])


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64])
def test_functions_at_the_edges_of_their_domain(dtype):
    def at(op, values, expected):
        same(op(rl.tensor(values, dtype=dtype)), expected)

    at(rl.exp, [-inf, inf, nan, 0.0, -1e9, 1e9], [0, inf, nan, 1, 0, inf])
    at(rl.log, [0.0, -0.0, -1.0, inf, nan, 1.0], [-inf, -inf, nan, inf, nan, 0])
    at(rl.log1p, [-1.0, -2.0, inf, -0.0, nan], [-inf, nan, inf, -0.0, nan])
    at(rl.expm1, [-inf, inf, -0.0, nan], [-1, inf, -0.0, nan])
    at(rl.tanh, [-inf, inf, -0.0, nan], [-1, 1, -0.0, nan])
    at(rl.sigmoid, [-inf, inf, nan], [0, 1, nan])
    at(rl.erf, [-inf, inf, -0.0, nan], [-1, 1, -0.0, nan])
    at(rl.erfc, [-inf, inf, 0.0, -0.0, nan], [2, 0, 1, 1, nan])
    at(rl.erfinv, [-1.0, 1.0, 1.5, -0.0, nan], [-inf, inf, nan, -0.0, nan])
    at(rl.sin, [inf, nan, -0.0], [nan, nan, -0.0])
    at(rl.asin, [1.5, -0.0, nan], [nan, -0.0, nan])
    at(rl.acosh, [0.5, 1.0, inf, -3.0], [nan, 0, inf, nan])
    at(rl.atanh, [1.0, -1.0, 2.0, -0.0], [inf, -inf, nan, -0.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "name", ["exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "sinh", "arctan", "arcsin"]
)
def test_accuracy_over_the_range(name, dtype):
    """Within a few units in the last place of long double, tiny and huge arguments included."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2 ** (32 if dtype is np.float32 else 64), 20000, dtype=np.uint64)
    x = np.concatenate([bits.astype(np.uint32).view(np.float32) if dtype is np.float32 else bits.view(np.float64),
                        rng.standard_normal(20000).astype(dtype) * 5])  # fmt: skip
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.longdouble))
        expected = exact.astype(dtype)
    ours = getattr(rl, {"arctan": "atan", "arcsin": "asin"}.get(name, name))(rl.tensor(x)).numpy()
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(expected))
    finite = np.isfinite(expected) & (np.abs(expected) > np.finfo(dtype).tiny)
    error = np.abs(ours[finite].astype(np.longdouble) - exact[finite]) / np.abs(exact[finite])
    assert error.max() < 4 * np.finfo(dtype).eps


def test_erfc_below_the_normal_numbers():
    x = np.linspace(9, 10.2, 5001, dtype=np.float32)
    exact = np.array([math.erfc(v) for v in x.tolist()])
    ours = rl.erfc(rl.tensor(x)).numpy().astype(np.float64)
    assert (np.abs(ours - exact) <= 3e-6 * exact + 1.5e-45).all()


def test_erfinv_of_floats_undoes_erf():
    x = np.concatenate(
        [np.linspace(-1, 1, 20001), 1 - np.geomspace(1e-7, 1e-2, 1000), np.geomspace(1e-38, 1, 999)]
    )
    y = rl.tensor(x).float()
    expected = rl.erfinv(y.double())
    finite = expected.isfinite() & (expected != 0)
    assert rl.equal(rl.erfinv(y)[~finite], expected[~finite].float())
    assert ((rl.erfinv(y).double() - expected) / expected)[finite].abs().max() < 3e-7


@pytest.mark.parametrize("shape", [(70, 90), (3, 40, 33), (200, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int16, np.float16])
def test_memory_orders(shape, dtype):
    """Transposed, spaced and broadcast operands give what contiguous ones give."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(dtype) for _ in range(2))
    transposed = rl.tensor(np.ascontiguousarray(b.T)).permute(*reversed(range(len(shape))))
    spaced = rl.tensor(np.repeat(b, 2, axis=-1))[..., ::2]
    for x, y in ((a, transposed), (a, spaced)):
        same(rl.tensor(x) + y, a + b)
        same(y * rl.tensor(x), a * b)
    same(rl.tensor(a) + rl.tensor(b[..., :1]), a + b[..., :1])
    same(rl.tensor(a) + rl.tensor(b[(0,) * (len(shape) - 1)]), a + b[(0,) * (len(shape) - 1)])
    out = rl.empty(*reversed(shape), dtype=rl.tensor(a).dtype).permute(*reversed(range(len(shape))))
    rl.sub(rl.tensor(a), transposed, out=out)
    same(out, a - b)


def test_half_types_round_once():
    x = rl.tensor(np.linspace(-5, 5, 301).astype(np.float32))
    for dtype in (rl.float16, rl.bfloat16):
        h = x.to(dtype)
        assert rl.equal(rl.exp(h), rl.exp(h.float()).to(dtype))
        assert rl.equal(h * h + 1, ((h.float() * h.float()).to(dtype).float() + 1).to(dtype))


def test_operators_refuse_what_is_no_number():
    x = rl.tensor([1.0, 2.0])
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    for operation in (lambda: x ** "a", lambda: x // [], lambda: x < None):
        with pytest.raises(TypeError):
            operation()
    assert (2**x).tolist() == [2.0, 4.0]
    assert (5 // x).tolist() == [5.0, 2.0]
    assert divmod(rl.tensor(7), 2)[1].item() == 1


@pytest.mark.parametrize("dtype", [rl.uint16, rl.uint32, rl.uint64])
def test_wide_unsigned_types_are_computed_in_themselves(dtype):
    """The factor of add and the sources of reductions exist for every type that has a loop."""
    a = rl.tensor([1, 2, 250], dtype=dtype)
    assert (a + 1).tolist() == [2, 3, 251] and (a - 1).tolist() == [0, 1, 249]
    assert rl.add(a, a, alpha=3).tolist() == [4, 8, 1000]
    assert a.sum().item() == 253 and a.sum().dtype == rl.int64 and a.prod().item() == 500
    assert rl.stack([a, a]).sum(0).tolist() == [2, 4, 500]
    assert a.all().item() and not rl.zeros(3, dtype=dtype).any().item()
    assert rl.tensor([256, 0], dtype=dtype).count_nonzero().item() == 1
    for to in (rl.uint16, rl.uint32, rl.uint64, rl.int32, rl.int8):
        total = rl.arange(6).view(2, 3).sum(0, dtype=to)
        assert total.dtype == to and total.tolist() == [3, 5, 7]
        assert rl.arange(1, 4).prod(dtype=to).item() == 6 and a[:2].sum(dtype=to).item() == 3


def test_half_complex_sums_and_truth():
    a = rl.tensor([1 + 1j, 2, 0], dtype=rl.complex32)
    assert (a + a).tolist() == [2 + 2j, 4, 0] and (a - a).tolist() == [0, 0, 0]
    assert a.any().item() and not a.all().item() and a.count_nonzero().item() == 2
    with pytest.raises(NotImplementedError):
        a.sum()


@pytest.mark.parametrize(
    "name", ["hardtanh", "relu6", "elu", "selu", "celu", "hardswish", "hardshrink", "softshrink", "relu"]
)
@pytest.mark.parametrize("dtype", [rl.float32, rl.float64])
def test_where_an_input_is_nan_activations_have_a_gradient(name, dtype):
    """As in PyTorch: NaN is not inside the part where the derivative is 0."""
    x = rl.full((20,), rl.nan, dtype=dtype, requires_grad=True)
    getattr(rl.nn.functional, name)(x).sum().backward()
    assert rl.allclose(x.grad, rl.full_like(x, 1.0507009873554805 if name == "selu" else 1.0))


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize(
    "name", ["hardtanh", "relu6", "elu", "selu", "celu", "hardswish", "leaky_relu", "relu"]
)
def test_second_derivatives_of_activations_where_pieces_meet(name, inplace):
    """Also at what is no number: the formula of a piece sees nothing of the others."""
    torch = pytest.importorskip("torch")

    def derivatives(T, value):
        x, dy = (T.tensor([v], dtype=T.float64, requires_grad=True) for v in (value, 3.0))
        y = getattr(T.nn.functional, name)(x * 1, inplace=inplace)
        (dx,) = T.autograd.grad((y * dy).sum(), x, create_graph=True)
        return [dx.item(), *(g.item() for g in T.autograd.grad(dx.sum() * 2, (x, dy)))]

    for value in (-1.5, -0.0, 0.0, 2.0, -1.0, 1.0, -3.0, 3.0, 6.0, rl.inf, -rl.inf, rl.nan):
        assert derivatives(rl, value) == pytest.approx(derivatives(torch, value), nan_ok=True), value


def test_exp_of_float_is_near_the_rounded_one():
    """Nine of ten results are those that rounding e^x gives, and none is more than the next number."""
    x = np.random.default_rng(0).uniform(-80, 80, 200_000).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    unit = np.spacing(exact.astype(np.float32)).astype(np.float64)
    error = np.abs(rl.exp(rl.from_numpy(x)).numpy() - exact) / unit
    assert error.max() < 1.05
    assert (error > 0.5).mean() < 0.12
