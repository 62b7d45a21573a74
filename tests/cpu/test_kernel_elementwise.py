"""Elementwise kernels: values and lengths that send them along paths of their own, against NumPy."""

import itertools
import math

import numpy as np
import pytest

import rushlight as rl
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck, gradgradcheck


def array(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("exponent", [0.5, -0.5, -1, 2, -1.0, 2.0])
def test_simple_powers_are_their_functions(exponent):
    x = rl.tensor([4.0, 0.0, -0.0, math.inf, math.nan, 2.5])
    same = {0.5: rl.sqrt, -0.5: rl.rsqrt, -1: rl.reciprocal, 2: rl.square}[exponent]
    assert rl.equal((x**exponent).nan_to_num(7), same(x).nan_to_num(7))
    y = x.clone().pow_(exponent)
    assert rl.equal(y.nan_to_num(7), same(x).nan_to_num(7))
    assert (rl.tensor([4, 9]) ** 0.5).dtype == rl.float32
    assert (rl.tensor([4, 9]) ** 2).dtype == rl.int64


def test_powers_of_doubles():
    rng = np.random.default_rng(0)
    x, y = np.exp(rng.uniform(-20, 20, 1001)), rng.uniform(-30, 30, 1001)
    np.testing.assert_allclose(rl.pow(rl.tensor(x), rl.tensor(y)).numpy(), x**y, rtol=5e-16, atol=0)
    edges = np.array([0.0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, 1e300, 1e-310, math.inf, -math.inf, math.nan])
    x, y = (v.ravel() for v in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        want = x**y
    np.testing.assert_allclose(rl.pow(rl.tensor(x), rl.tensor(y)).numpy(), want, rtol=5e-16, atol=0)


def test_clamp_between_tensors_keeps_nan():
    nan = math.nan
    x, low, high = (
        rl.tensor([1.0, nan, 2.0, 5.0] * 5),
        rl.tensor([nan, 0.0, 0.0, 3.0] * 5),
        rl.tensor([1.0, 1.0, nan, 1.0] * 5),
    )
    assert x.clamp(low, high).isnan().tolist() == [True, True, True, False] * 5
    assert x.clamp(low, high)[3] == 1


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.bfloat16, rl.float16])
@pytest.mark.parametrize("n", [1, 31, 515, 1200])
def test_every_second_element(n, dtype):
    a = rl.arange(4.0 * n, dtype=rl.float64).remainder(119).to(dtype).reshape(n, 4)
    x, y = a[:, ::2], a[:, 1::2]
    assert rl.equal(x + y, x.contiguous() + y.contiguous())
    target = rl.zeros(n, 4, dtype=dtype)
    target[:, ::2].add_(x)
    assert rl.equal(target[:, ::2].contiguous(), x.contiguous()) and not target[:, 1::2].any()


def test_losses_of_clipped_squares():
    x, y = array(7, 5, dtype=np.float64) * 3, array(7, 5, seed=1, dtype=np.float64)
    d = np.abs(x - y)
    a, b = rl.tensor(x, requires_grad=True), rl.tensor(y, requires_grad=True)
    for limit in (0.3, 1.0, 2.5):
        huber = np.where(d < limit, d * d / 2, limit * (d - limit / 2))
        np.testing.assert_allclose(F.huber_loss(a, b, "none", limit).detach(), huber)
        np.testing.assert_allclose(F.smooth_l1_loss(a, b, beta=limit).item(), (huber / limit).mean())
        np.testing.assert_allclose(
            F.smooth_l1_loss(a, b, reduction="sum", beta=limit).item(), (huber / limit).sum()
        )
        for reduction in ("none", "mean", "sum"):
            assert gradcheck(
                lambda p, q, r=reduction, v=limit: F.smooth_l1_loss(p, q, reduction=r, beta=v), (a, b)
            )
            assert gradgradcheck(lambda p, q, r=reduction, v=limit: F.huber_loss(p, q, r, v), (a, b))
    assert F.smooth_l1_loss(a, b).grad_fn.name() == "SmoothL1LossBackward0"
    with pytest.raises(RuntimeError, match="non-positive"):
        F.huber_loss(a, b, delta=0)


def test_prelu():
    x = rl.tensor([[-2.0, 3.0], [0.0, -1.0]], dtype=rl.float64, requires_grad=True)
    for w in (rl.tensor([0.25], dtype=rl.float64), rl.tensor([0.25, 0.5], dtype=rl.float64)):
        w.requires_grad_()
        expected = np.where(
            x.detach().numpy() > 0, x.detach().numpy(), x.detach().numpy() * w.detach().numpy()
        )
        np.testing.assert_allclose(F.prelu(x, w).detach(), expected)
        assert gradcheck(F.prelu, (x + 0.5, w)) and gradgradcheck(F.prelu, (x + 0.5, w))


def test_complex_parts_at_the_edges():
    inf, nan = math.inf, math.nan
    z = np.array(
        [3 + 4j, 0, complex(inf, nan), complex(nan, 1), -1, complex(-0.0, -0.0), 1e30 + 1e30j], np.complex64
    )
    for kind in (np.complex64, np.complex128):
        t = rl.tensor(z.astype(kind))
        np.testing.assert_allclose(t.abs(), np.abs(z), rtol=1e-6)
        np.testing.assert_allclose(t.angle(), np.angle(z), rtol=1e-6)
    big = rl.tensor(np.array([1e300 + 1e300j, 3e-310 + 4e-310j]))
    np.testing.assert_allclose(big.abs(), [math.sqrt(2) * 1e300, 5e-310], rtol=1e-12)
    assert rl.tensor([0j, 3 + 4j]).sgn().tolist() == pytest.approx([0, 0.6 + 0.8j])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["erf", "erfc", "exp", "log", "log2", "log10", "sigmoid", "sqrt", "tanh"])
def test_functions_by_pieces_at_their_edges(name, dtype):
    """Every piece of the tables, the ends of the range, and vectors that are not full."""
    if name.startswith("erf"):
        exact = np.vectorize(getattr(math, name))
    elif name == "sigmoid":

        def exact(x):
            return np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-abs(x)))
    else:
        exact = getattr(np, name)
    low = 1e-3 if name.startswith("log") or name == "sqrt" else -6.5
    edges = [
        0.0,
        1.0,
        math.inf,
        -math.inf,
        math.nan,
        1e-40,
        1e-310,
        3.75,
        3.875,
        4.0,
        5.625,
        6.0,
        26.0,
        27.3,
        100.0,
    ]
    x = np.concatenate([np.linspace(low, 9.3, 1003), edges, [-e for e in edges]]).astype(dtype)
    with np.errstate(all="ignore"):
        want = exact(x.astype(np.float64)).astype(dtype)
    got = getattr(rl, name)(rl.tensor(x)).numpy()
    least = 1e-44 if dtype == np.float32 else 1e-320
    if name == "sigmoid":
        least = np.finfo(dtype).tiny  # e^-x may overflow before its reciprocal underflows
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype == np.float32 else 2e-15, atol=least)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frexp_of_every_kind_of_number(dtype):
    info = np.finfo(dtype)
    ends = [0.0, -0.0, info.max, -info.max, info.tiny, info.smallest_subnormal, -3 * info.smallest_subnormal]
    x = np.concatenate(
        [np.array([*ends, 1, 0.5, -2, math.inf, -math.inf], dtype), array(100, dtype=dtype) * 1e-3]
    )
    mantissa, exponent = rl.frexp(rl.tensor(x))
    expected = np.frexp(x)
    np.testing.assert_array_equal(mantissa.numpy(), expected[0])
    assert (np.signbit(mantissa.numpy()) == np.signbit(x)).all()
    np.testing.assert_array_equal(exponent.numpy(), expected[1])
    assert rl.frexp(rl.tensor(math.nan, dtype=mantissa.dtype))[0].isnan()


def test_bfloat16_arithmetic_rounds_once_for_every_number():
    bits = np.arange(65536, dtype=np.uint32)
    x = rl.tensor(bits.astype(np.uint16).view(np.int16)).view(rl.bfloat16)
    y = x[rl.randperm(65536, generator=rl.Generator().manual_seed(0))]
    checks = [(f, (x,)) for f in (rl.sqrt, rl.rsqrt, rl.reciprocal, rl.square)]
    checks += [(f, (x, y)) for f in (rl.add, rl.sub, rl.mul, rl.div)]
    checks += [(f, (x, rl.tensor(3.0, dtype=rl.bfloat16).expand(65536))) for f in (rl.add, rl.div)]
    for f, inputs in checks:
        expected = f(*(t.float() for t in inputs)).bfloat16()
        assert rl.equal(f(*inputs).view(rl.int16), expected.view(rl.int16)), f
        assert rl.equal(f(*(t[1::3] for t in inputs)).view(rl.int16), expected[1::3].view(rl.int16)), f


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "complex128", "bool"])
@pytest.mark.parametrize(
    "sizes", [(70, 16, 8), (3, 5, 7, 2), (600, 3), (2, 33, 1, 4), (9, 100, 2), (1000, 1), (5, 63)]
)
def test_short_rows_in_blocks(sizes, dtype):
    """Rows of few elements run several at a time: operands of every broadcasting and order, against NumPy."""
    rng = np.random.default_rng(0)
    kept = list(itertools.product([False, True], repeat=len(sizes)))

    def operand(repeated, transposed, skipped):
        shape = [1 if r else n for r, n in zip(repeated, sizes)]
        if transposed:
            shape = shape[::-1]
        x = rng.integers(0, 2 if dtype == "bool" else 9, [*shape[:-1], shape[-1] * 2]).astype(dtype)
        x = x[..., ::2] if skipped else x[..., : shape[-1]].copy()
        return x.T if transposed else x

    for repeated in kept:
        for transposed, skipped in itertools.product([False, True], repeat=2):
            a, b = operand(repeated, False, skipped), operand([not r for r in repeated], transposed, False)
            mine = rl.from_numpy(a), rl.from_numpy(b)
            name = "logical_xor" if dtype == "bool" else "add"
            expected = getattr(np, name)(a, b)
            assert np.array_equal(getattr(rl, name)(*mine).numpy(), expected)
            where = rl.where(mine[0] == mine[1], mine[0], mine[1]).numpy()
            assert np.array_equal(where, np.where(a == b, a, b))
            into = np.zeros([*sizes[:-1], sizes[-1] * 2], dtype)[..., ::2]  # a result with gaps
            getattr(rl, name)(*mine, out=rl.from_numpy(into))
            assert np.array_equal(into, expected)


def test_equal_finds_late_differences():
    x = rl.zeros(20000)
    y = x.clone()
    assert rl.equal(x, y) and rl.equal(x.view(100, 200).t(), y.view(100, 200).t())
    y[-1] = 1
    assert not rl.equal(x, y) and not rl.equal(x.view(100, 200).t(), y.view(100, 200).t())
    y[0] = math.nan
    assert not rl.equal(y, y)


def test_lists():
    assert rl.arange(6).view(2, 3).t().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert rl.tensor([[0.5], [1.5]]).tolist() == [[0.5], [1.5]] and rl.tensor([True, False]).tolist() == [
        True,
        False,
    ]
    assert rl.arange(10)[3:7:2].tolist() == [3, 5] and rl.tensor([1.5, 2.5]).half().tolist() == [1.5, 2.5]
    assert rl.zeros(2, 0).tolist() == [[], []] and rl.tensor(3).tolist() == 3


def test_normals_after_an_odd_number():
    rl.manual_seed(3)
    one_by_one = [rl.randn(1).item() for _ in range(30)]
    rl.manual_seed(3)
    together = [*rl.randn(5).tolist(), *rl.randn(7).tolist(), *rl.randn(4).tolist(), *rl.randn(14).tolist()]
    assert together == one_by_one


def test_quotients_of_complex_numbers():
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((4, 1000)) * 10.0 ** rng.integers(-3, 4, (4, 1000))
    x, y = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
    np.testing.assert_allclose((rl.tensor(x) / rl.tensor(y)).numpy(), x / y, rtol=1e-13)
    np.testing.assert_allclose(rl.tensor(y).reciprocal().numpy(), 1 / y, rtol=1e-13)
    np.testing.assert_allclose((rl.tensor(x) ** 2).numpy(), x * x, rtol=1e-13)
    assert (1 / rl.tensor([0j])).real.isnan().item() or (1 / rl.tensor([0j])).real.isinf().item()
    large = rl.tensor([3e200 + 4e200j], dtype=rl.complex128)
    assert rl.allclose(large / large, rl.tensor([1 + 0j], dtype=rl.complex128))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_logits_loss_and_its_derivatives(reduction):
    x = rl.tensor([[-800.0, -3.0, 0.0], [0.5, 40.0, 800.0]], dtype=rl.float64)
    t = rl.tensor([[0.0, 0.3, 1.0], [0.7, 1.0, 1.0]], dtype=rl.float64)
    each = np.logaddexp(0, x.numpy()) - x.numpy() * t.numpy()
    expected = {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]
    np.testing.assert_allclose(
        F.binary_cross_entropy_with_logits(x, t, reduction=reduction).numpy(), expected, atol=1e-15
    )
    a, b = (
        rl.randn(2, 3, dtype=rl.float64, requires_grad=True),
        rl.rand(2, 3, dtype=rl.float64, requires_grad=True),
    )
    loss = lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction=reduction)  # noqa: E731
    assert gradcheck(loss, (a, b))
    assert gradgradcheck(loss, (a, b))
    assert F.binary_cross_entropy_with_logits(a.float(), b).dtype == rl.float64
    zero = rl.zeros(3, requires_grad=True)
    F.binary_cross_entropy_with_logits(zero, rl.ones(3), reduction="sum").backward()
    assert zero.grad.tolist() == [-0.5] * 3


def test_logits_loss_with_weights_of_positives():
    rl.manual_seed(0)
    x, t = (
        rl.randn(4, 3, dtype=rl.float64, requires_grad=True),
        rl.rand(4, 3, dtype=rl.float64, requires_grad=True),
    )
    w = (rl.rand(3, dtype=rl.float64) + 0.5).requires_grad_()
    logs = np.logaddexp(0, -x.detach().numpy())
    a, b, c = (v.detach().numpy() for v in (x, t, w))
    each = (1 - b) * a + (1 + (c - 1) * b) * logs
    loss = lambda x, t, w: F.binary_cross_entropy_with_logits(x, t, pos_weight=w, reduction="none")  # noqa: E731
    np.testing.assert_allclose(loss(x, t, w).detach().numpy(), each)
    assert gradcheck(loss, (x, t, w))
    assert gradgradcheck(loss, (x, t, w))
    single = loss(x.float(), t.float(), w.float())
    np.testing.assert_allclose(single.detach().numpy(), each, rtol=1e-5)


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.int64])
def test_squared_differences(dtype):
    x, y = rl.arange(70, dtype=dtype).reshape(7, 10), (rl.arange(70) % 9).to(dtype).reshape(10, 7).T
    assert rl.equal(F.mse_loss(x, y, reduction="none"), (x - y) * (x - y))
    if dtype == rl.float64:
        assert gradcheck(
            lambda a: F.mse_loss(a, y, reduction="none"), (rl.randn(7, 10, dtype=dtype, requires_grad=True),)
        )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.bfloat16])
def test_gradients_of_squared_differences(reduction, dtype):
    x = rl.tensor([[1.0, math.inf, math.nan], [-2.5, 3.0, 1e30]], dtype=dtype, requires_grad=True)
    t = rl.tensor([[0.5, 1.0, 1.0], [2.0, 3.0, 0.0]], dtype=dtype, requires_grad=True)
    F.mse_loss(x, t, reduction=reduction).backward(
        rl.ones(2, 3, dtype=dtype) if reduction == "none" else None
    )
    expected = (x - t).detach() * (2 / 6 if reduction == "mean" else 2)
    assert rl.allclose(x.grad, expected, equal_nan=True)
    assert rl.allclose(t.grad, -expected, equal_nan=True)


def test_the_gradient_of_gelu_is_as_exact_as_its_type():
    """Every piece of its table, what lies beyond them, and NaN."""
    x = np.concatenate([np.linspace(-7, 7, 40001), [-1e30, -30, 30, 1e30, math.nan]])
    grads = []
    for dtype in (np.float32, np.float64):
        t = rl.tensor(x.astype(np.float32).astype(dtype), requires_grad=True)
        F.gelu(t).backward(rl.ones_like(t))
        grads.append(t.grad.numpy())
    np.testing.assert_allclose(grads[0], grads[1], rtol=0, atol=4e-7)
    np.testing.assert_allclose(grads[0][-5:], [0, 0, 1, 1, math.nan], rtol=0, atol=1e-7)
