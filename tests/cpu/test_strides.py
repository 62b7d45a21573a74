"""Memory orders, odd lengths and edge values that send kernels along paths of their own."""

import math

import numpy as np
import pytest

import rushlight as rl
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck, gradgradcheck

REDUCED = [rl.bfloat16, rl.float16]


def array(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def channels_last(x):
    return x.contiguous(memory_format=rl.channels_last if x.dim() == 4 else rl.channels_last_3d)


def with_gradient(run, x, *parameters):
    """The result of run(x), and the gradients of x and the parameters for a gradient of its own order."""
    x = x.detach().requires_grad_()
    y = run(x)
    up = rl.linspace(-1, 1, y.numel(), dtype=rl.float64).reshape(y.shape).to(y.dtype)
    up = up if y.is_contiguous() else channels_last(up)
    return [y.detach(), *rl.autograd.grad(y, [x, *parameters], up)]


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, *REDUCED])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "shape", [(5, 3, 7, 9), (2, 64, 8, 8), (3, 33, 5, 5), (7, 2, 3, 3), (4, 300, 9, 9), (2, 5, 3, 4, 5)]
)
def test_batch_norm_in_both_orders(shape, training, dtype):
    x = (rl.tensor(array(*shape, dtype=np.float64)) * 3 + 50).to(dtype)
    weight = rl.linspace(0.5, 2, shape[1]).to(dtype).requires_grad_()
    bias = rl.linspace(-1, 1, shape[1]).to(dtype).requires_grad_()

    def run(x, T=dtype):
        mean, var = rl.full((shape[1],), 49.5, dtype=T), rl.full((shape[1],), 8.0, dtype=T)
        return F.batch_norm(x, mean, var, weight, bias, training)

    last = with_gradient(run, channels_last(x), weight, bias)
    assert not last[0].is_contiguous() and last[0].stride() == last[1].stride() == channels_last(x).stride()
    tolerance = {rl.float32: 2e-5, rl.float64: 1e-12, rl.bfloat16: 2e-2, rl.float16: 3e-3}[dtype]
    for got, expected in zip(last, with_gradient(run, x, weight, bias), strict=True):
        scale = expected.double().abs().max().item()
        rl.testing.assert_close(
            got.double().contiguous(), expected.double(), rtol=0, atol=tolerance * max(scale, 1)
        )


@pytest.mark.parametrize("rows", [1, 2, 63, 300, 70001])
@pytest.mark.parametrize("channels", [1, 3, 33])
def test_statistics_of_columns_far_from_zero(rows, channels):
    x = array(rows, channels) + np.float32(1000)
    running = rl.zeros(channels), rl.zeros(channels)
    y = F.batch_norm(rl.tensor(x), *running, training=True, momentum=1.0) if rows > 1 else None
    if rows == 1:
        with pytest.raises(ValueError, match="more than 1 value"):
            F.batch_norm(rl.tensor(x), *running, training=True)
        return
    exact = x.astype(np.float64)
    np.testing.assert_allclose(running[0].numpy(), exact.mean(0), rtol=1e-6)
    np.testing.assert_allclose(running[1].numpy(), exact.var(0, ddof=1), rtol=2e-6)
    assert y.isfinite().all()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_channel_that_is_not_finite_stays_alone(value):
    x = array(40, 6)
    x[3, 2] = value
    y = F.batch_norm(rl.tensor(x), None, None, training=True)
    assert y[:, 2].isnan().all() and y[:, [0, 1, 3, 4, 5]].isfinite().all()


@pytest.mark.parametrize("threads", [2, 3])
def test_orders_do_not_depend_on_threads(threads):
    x = channels_last(rl.tensor(array(9, 37, 24, 24)))
    norm = rl.nn.BatchNorm2d(37)
    runs = [
        norm,
        lambda x: F.avg_pool2d(x, 3, 2, 1),
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        lambda x: F.conv2d(x, rl.ones(5, 37, 1, 1)),
    ]
    before = rl.get_num_threads()
    try:
        for run in runs:
            rl.set_num_threads(1)
            expected = with_gradient(run, x)
            rl.set_num_threads(threads)
            for got, one in zip(with_gradient(run, x), expected, strict=True):
                assert rl.equal(got, one)
    finally:
        rl.set_num_threads(before)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 17, 31, 32, 33, 65, 1000, 1030])
@pytest.mark.parametrize("log", [False, True])
def test_softmax_of_doubles(n, log):
    x = array(19, n, dtype=np.float64) * 5
    x[1, 0], x[2, -1], x[3] = -math.inf, -740.0, -math.inf
    x[4, n // 2], x[5, 0] = math.nan, math.inf
    with np.errstate(all="ignore"):
        rest = x - x.max(1, keepdims=True)
        total = np.exp(rest).sum(1, keepdims=True)
        expected = rest - np.log(total) if log else np.exp(rest) / total
    got = (rl.log_softmax if log else rl.softmax)(rl.tensor(x), 1)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-13, atol=1e-15 if log else 1e-300)


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("n", [1, 10, 33, 700, 9000])
def test_half_rows_are_what_they_are_alone(n, dtype):
    x, g = rl.tensor(array(21, n)).to(dtype), rl.tensor(array(21, n, seed=1)).to(dtype)
    target = rl.arange(21) % n
    for run in (
        lambda x, t: x.softmax(1),
        lambda x, t: x.log_softmax(1),
        lambda x, t: x.logsumexp(1),
        lambda x, t: F.cross_entropy(x, t, reduction="none"),
    ):

        def both(x, t, g, run=run):
            x = x.detach().requires_grad_()
            y = run(x, t)
            return y.detach(), rl.autograd.grad(y, x, g if y.dim() == 2 else g[:, 0])[0]

        for all_rows, alone in zip(both(x, target, g), both(x[5:6], target[5:6], g[5:6]), strict=True):
            assert rl.equal(all_rows[5:6], alone)


@pytest.mark.parametrize("dtype", REDUCED)
def test_cross_entropy_of_half_precision_images(dtype):
    x, t = (
        rl.tensor(array(2, 5, 7, 90)).to(dtype).requires_grad_(),
        rl.arange(2 * 7 * 90).reshape(2, 7, 90) % 5,
    )
    F.cross_entropy(x, t, ignore_index=3, reduction="sum").backward()
    exact = x.detach().double().requires_grad_()
    F.cross_entropy(exact, t, ignore_index=3, reduction="sum").backward()
    rl.testing.assert_close(x.grad.double(), exact.grad, rtol=2e-2, atol=1e-2)
    assert not x.grad.movedim(1, -1)[t == 3].any()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_quotients_of_integers(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    near = [2**50 - 1, 2**50, 2**50 + 1, -(2**50), 2**53 + 1] if dtype == "int64" else []
    values = [0, 1, -1, 2, -2, 3, 7, -7, 1000003, low, low + 1, high, high - 1, *near]
    x = rl.tensor(values * 30, dtype=getattr(rl, dtype))
    for divisor in [v for v in values if v]:
        # The lowest value divided by -1 is itself again.
        floors = [v // divisor if v // divisor <= high else low for v in values] * 30
        rests = [abs(v) % abs(divisor) * (1 if v > 0 else -1) for v in values] * 30
        for by in (divisor, rl.full_like(x, divisor)):
            assert (x // by).tolist() == floors
            assert (x % by).tolist() == [v % divisor for v in values] * 30
            assert rl.fmod(x, by).tolist() == rests
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x // 0


@pytest.mark.parametrize(
    "n", [37, 74, 101, 111, 127, 131, 254, 1009, 4099, 10007, 2 * 4099, 73 * 89 * 2, 509 * 64]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transforms_of_large_prime_factors(n, dtype):
    b = 3 if n > 2000 else 20
    x, y = array(b, n, dtype=np.float64), array(b, n, seed=1, dtype=np.float64)
    c = x + 1j * y
    exact, tolerance = np.fft.fft(c), 2e-6 if dtype == "float32" else 1e-14
    tolerance *= math.sqrt(n) * math.log2(n)
    given = rl.tensor(c.astype("complex64" if dtype == "float32" else "complex128"))
    real = rl.tensor(x.astype(dtype))
    got = rl.fft.fft(given)
    np.testing.assert_allclose(got.numpy(), exact, rtol=0, atol=tolerance)
    np.testing.assert_allclose(rl.fft.ifft(got).numpy(), c, rtol=0, atol=tolerance)
    np.testing.assert_allclose(rl.fft.rfft(real).numpy(), np.fft.rfft(x), rtol=0, atol=tolerance)
    np.testing.assert_allclose(rl.fft.irfft(rl.fft.rfft(real), n).numpy(), x, rtol=0, atol=tolerance)
    transposed = rl.fft.fft(given.t().contiguous(), dim=0)
    np.testing.assert_allclose(transposed.t().numpy(), exact, rtol=0, atol=tolerance)
    assert rl.equal(rl.fft.fft(given[b - 1]), got[b - 1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "bool", "float16"])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 9])
def test_running_totals_of_few(width, dtype):
    x = (array(501, width) * 3).astype(dtype)
    kind = np.float64 if dtype.startswith("float") else np.int64
    tolerance = {"float32": 1e-5, "float16": 2e-1}.get(dtype, 1e-12)
    for dim in (0, 1):
        for got, given in ((rl.tensor(x), x), (rl.tensor(x)[::2], x[::2]), (rl.tensor(x).t(), x.T)):
            np.testing.assert_allclose(
                got.cumsum(dim).numpy().astype(kind),
                given.cumsum(dim, dtype=kind),
                rtol=tolerance,
                atol=tolerance,
            )


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("n", [1, 5, 8, 9, 16, 17, 24, 33])
def test_distances_of_few_rows(n, p):
    a, b = array(6, 4, 7, dtype=np.float64), array(6, n, 7, seed=1, dtype=np.float64)
    d = np.abs(a[:, :, None] - b[:, None])
    norms = {0.0: lambda: (d != 0).sum(-1), math.inf: lambda: d.max(-1)}
    expected = norms.get(p, lambda: (d**p).sum(-1) ** (1 / p))()
    for dtype, tolerance in ((rl.float32, 1e-5), (rl.float64, 1e-12)):
        got = rl.cdist(rl.tensor(a, dtype=dtype), rl.tensor(b, dtype=dtype), p)
        np.testing.assert_allclose(got.double().numpy(), expected, rtol=tolerance, atol=tolerance)


POOLS = {
    "max": lambda n, x: getattr(F, f"max_pool{n}d")(x, 2),
    "max padded": lambda n, x: getattr(F, f"max_pool{n}d")(x, 3, 2, 1),
    "max dilated": lambda n, x: getattr(F, f"max_pool{n}d")(x, 2, 1, 1, 2),
    "average": lambda n, x: getattr(F, f"avg_pool{n}d")(x, 2),
    "average padded": lambda n, x: getattr(F, f"avg_pool{n}d")(
        x, 3, 2, 1, ceil_mode=True, count_include_pad=False
    ),
    "adaptive average": lambda n, x: getattr(F, f"adaptive_avg_pool{n}d")(x, 3),
    "whole": lambda n, x: getattr(F, f"adaptive_avg_pool{n}d")(x, 1),
    "adaptive max": lambda n, x: getattr(F, f"adaptive_max_pool{n}d")(x, 3),
}


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, *REDUCED])
@pytest.mark.parametrize(
    "shape", [(2, 5, 9, 11), (3, 70, 8, 8), (2, 3, 6, 5, 4), (2, 1, 8, 8), (1, 33, 20, 20)]
)
@pytest.mark.parametrize("name", POOLS)
def test_pooling_in_both_orders(name, shape, dtype):
    x = array(*shape)
    x.reshape(-1)[[3, 50]] = math.nan, math.inf
    x[0, 0].reshape(-1)[10:16] = 1.0  # of equal ones the first
    x = rl.tensor(x).to(dtype)

    def run(x):
        return POOLS[name](len(shape) - 2, x)

    tolerance = (
        0
        if name.startswith(("max", "adaptive max"))
        else {rl.bfloat16: 2e-2, rl.float16: 3e-3}.get(dtype, 1e-5)
    )
    for got, expected in zip(with_gradient(run, channels_last(x)), with_gradient(run, x), strict=True):
        rl.testing.assert_close(
            got.double().contiguous(), expected.double(), rtol=tolerance, atol=tolerance, equal_nan=True
        )


def test_indices_of_maxima_in_both_orders():
    x = rl.tensor(array(2, 37, 6, 6))
    y, positions = F.max_pool2d(channels_last(x), 2, return_indices=True)
    expected, same = F.max_pool2d(x, 2, return_indices=True)
    assert rl.equal(y.contiguous(), expected) and rl.equal(positions.contiguous(), same)
    assert rl.equal(F.max_unpool2d(y, positions, 2).contiguous(), F.max_unpool2d(expected, same, 2))


@pytest.mark.parametrize(
    "run",
    [
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.avg_pool2d(x, 3, 1, 1),
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        lambda x: F.interpolate(x, scale_factor=2),
        lambda x: F.pad(x, (1, 0, -1, 2)),
        lambda x: F.conv2d(x, x[:1].sum((2, 3), keepdim=True)),
        lambda x: F.batch_norm(x, None, None, training=True),
    ],
)
def test_derivatives_with_channels_last(run):
    x = channels_last(rl.tensor(array(2, 3, 4, 4, dtype=np.float64))).requires_grad_()
    assert gradcheck(run, (x,)) and gradgradcheck(run, (x,))


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.bfloat16])
@pytest.mark.parametrize("shape", [(2, 5, 9, 11), (1, 64, 7, 7), (2, 3, 6, 5, 4), (2, 1, 8, 8)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "constant"])
def test_resizing_in_both_orders(mode, shape, dtype):
    x, n = rl.tensor(array(*shape)).to(dtype), len(shape) - 2
    mode = {"linear": "bilinear" if n == 2 else "trilinear"}.get(mode, mode)
    for sizes in (
        [s + 3 for s in shape[2:]],
        [2 * s for s in shape[2:]],
        [shape[2], *[s - 2 for s in shape[3:]]],
    ):

        def run(x, sizes=sizes):
            if mode == "constant":
                return F.pad(x, [p for s in reversed(sizes) for p in (1, s % 3)], value=2.5)
            return F.interpolate(x, size=sizes, mode=mode)

        for got, expected in zip(with_gradient(run, channels_last(x)), with_gradient(run, x), strict=True):
            tolerance = 4e-2 if dtype == rl.bfloat16 else 2e-6
            rl.testing.assert_close(got.contiguous(), expected, rtol=tolerance, atol=tolerance)
        assert run(channels_last(x)).stride() == channels_last(run(x)).stride()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.bfloat16])
def test_filters_of_one_tap_in_both_orders(dtype, bias):
    for shape in ((2, 5, 4, 3), (3, 65, 7, 9), (2, 5, 4, 3, 2), (0, 5, 4, 3)):
        x, n = rl.tensor(array(*shape)).to(dtype), len(shape) - 2
        w = rl.tensor(array(7, shape[1], *[1] * n, seed=1)).to(dtype).requires_grad_()
        b = rl.linspace(-1, 1, 7).to(dtype).requires_grad_() if bias else None
        run = getattr(F, f"conv{n}d")
        parameters = [w, b] if bias else [w]
        last = with_gradient(lambda x, run=run, w=w, b=b: run(x, w, b), channels_last(x), *parameters)
        first = with_gradient(lambda x, run=run, w=w, b=b: run(x, w, b), x, *parameters)
        for got, expected in zip(last, first, strict=True):
            scale = max(1.0, expected.double().abs().max().item()) if expected.numel() else 1.0
            tolerance = {rl.float32: 1e-5, rl.float64: 1e-12, rl.bfloat16: 2e-2}[dtype] * scale
            rl.testing.assert_close(got.contiguous(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", REDUCED)
def test_signs_of_reduced_precision(dtype):
    x = rl.tensor([0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 1e-7, -1e-7] * 9).to(dtype)
    for given in (x, x[::2]):
        exact = given.double()
        for run in (rl.neg, rl.abs):
            got, expected = run(given).double(), run(exact)
            assert rl.equal(got.nan_to_num(7), expected.nan_to_num(7))
            assert rl.equal(got.isnan(), exact.isnan())
            assert rl.equal(got.signbit()[~exact.isnan()], expected.signbit()[~exact.isnan()])


@pytest.mark.parametrize("shape", [(300, 401), (7, 3, 5), (65, 2, 33), (3, 10001), (5, 0)])
def test_sums_of_bool_and_extrema_of_int32(shape):
    random = np.random.default_rng(0)
    mask = random.random(shape) < 0.5
    ints = random.integers(-(2**31), 2**31 - 1, shape).astype(np.int32)
    for view in (lambda a: a, lambda a: a.T, lambda a: a[..., ::2], lambda a: a[..., 1::3]):
        m, i = view(mask), view(ints)
        for dim in (None, *range(len(shape))):
            got = rl.from_numpy(m).sum() if dim is None else rl.from_numpy(m).sum(dim)
            assert got.dtype == rl.int64
            np.testing.assert_array_equal(got.numpy(), m.sum(dim))
            if dim is None or i.shape[dim] == 0 or i.size == 0:
                continue
            for name, oracle in (("amax", np.max), ("amin", np.min)):
                got = getattr(rl.from_numpy(i), name)(dim)
                assert got.dtype == rl.int32
                np.testing.assert_array_equal(got.numpy(), oracle(i, dim))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["exp", "exp2", "sigmoid", "erfc"])
def test_results_down_to_the_smallest_number(name, dtype):
    deep = {"exp": 1.0, "exp2": 1.45, "sigmoid": 1.0, "erfc": 0}[name] * (104 if dtype == "float32" else 746)
    x = np.linspace(0, deep + 6, 4001) if deep else np.linspace(0, 30, 4001)
    x = np.concatenate([x, [1e4, 1e30, math.inf, math.nan]])
    given = (x if name == "erfc" else -x).astype(dtype)
    wide = given.astype(np.longdouble)
    with np.errstate(all="ignore"):
        expected = {
            "exp": lambda: np.exp(wide),
            "exp2": lambda: np.exp2(wide),
            "sigmoid": lambda: np.exp(wide) / (1 + np.exp(wide)),
            "erfc": lambda: np.array([math.erfc(v) for v in given]),
        }[name]().astype(dtype)
    got = getattr(rl, name)(rl.tensor(given)).numpy()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    # Where values have all their digits, and the steps between those that have fewer.
    step = {"float32": 2.0**-149, "float64": 5e-324}[dtype]
    least = np.finfo(dtype).tiny if name == "sigmoid" else 4 * step
    np.testing.assert_allclose(got, expected, rtol=3e-7 * 4 if dtype == "float32" else 2e-15, atol=least)
    assert (got[-4:-1] == 0).all()


@pytest.mark.parametrize("n", [1, 7, 1000, 200_000])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.int16, np.int64])
def test_different_integers_and_their_extremes(dtype, n):
    """Bytes are counted, wider integers sorted; pieces that are no whole blocks."""
    rng = np.random.default_rng(n)
    x = rng.integers(-100, 100, n).astype(dtype)
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    t = rl.tensor(x)
    got = rl.unique(t, return_inverse=True, return_counts=True)
    for mine, expected in zip(got, (values, inverse, counts), strict=True):
        np.testing.assert_array_equal(mine.numpy(), expected)
    np.testing.assert_array_equal(rl.unique(t).numpy(), values)
    for keepdim in (False, True):
        low, high = rl.aminmax(t, keepdim=keepdim)
        assert (low.item(), high.item(), low.dtype, low.dim()) == (x.min(), x.max(), t.dtype, int(keepdim))
    low, high = t[::2].aminmax()  # not side by side
    assert (low.item(), high.item()) == (x[::2].min(), x[::2].max())


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, *REDUCED])
def test_dropout_keeps_what_its_slope_keeps(dtype):
    for x in (rl.ones(33, 70), rl.ones(70, 33).t(), rl.ones(2, 50_000)[:, ::2], rl.ones(0, 3)):
        x = x.to(dtype).detach().requires_grad_()
        y = F.dropout(x, 0.3)
        up = rl.tensor(array(*x.shape)).to(dtype)
        derivative, graph = (
            rl.autograd.grad(y, x, up, create_graph=c, retain_graph=True)[0] for c in (False, True)
        )
        assert rl.equal(derivative, graph.detach())
        assert rl.equal(derivative, (up * y).detach())
    x = rl.ones(64, dtype=dtype).requires_grad_()
    y = F.dropout(x, 0.5)
    assert rl.autograd.grad(y, x, rl.full_like(y, math.nan))[0].isnan().all()


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("weight", [0.3, 0.7, -2.5, math.nan])
def test_lerp_of_reduced_precision_by_a_scalar_rounds_once(weight, dtype):
    x, y = (rl.tensor(array(70, 33, seed=i)).to(dtype) for i in (0, 1))
    for a, b in ((x, y), (x.t(), y.t()), (x[::2], y[1::2]), (x, y[0])):
        expected = rl.lerp(a.float(), b.float(), weight).to(dtype)
        np.testing.assert_array_equal(rl.lerp(a, b, weight).float().numpy(), expected.float().numpy())
        into = a.clone()
        np.testing.assert_array_equal(into.lerp_(b, weight).float().numpy(), expected.float().numpy())
