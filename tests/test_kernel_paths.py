"""Shapes and values that send kernels along paths of their own, against NumPy."""

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


@pytest.mark.parametrize("n", [1, 2, 3, 8, 16, 24, 32, 48, 64, 100, 128, 512, 1000, 37])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fft_lengths(n, dtype):
    x = array(5, n, dtype=dtype)
    z = x + 1j * array(5, n, seed=1, dtype=dtype)
    tolerance = {"rtol": 0, "atol": (2e-6 if dtype == np.float32 else 1e-14) * math.sqrt(n) * 4}
    np.testing.assert_allclose(rl.fft.fft(rl.tensor(z)), np.fft.fft(z), **tolerance)
    np.testing.assert_allclose(rl.fft.ifft(rl.tensor(z)), np.fft.ifft(z), **tolerance)
    np.testing.assert_allclose(rl.fft.fft(rl.tensor(x)), np.fft.fft(x), **tolerance)
    np.testing.assert_allclose(rl.fft.ifft(rl.tensor(x)), np.fft.ifft(x), **tolerance)
    np.testing.assert_allclose(rl.fft.rfft(rl.tensor(x)), np.fft.rfft(x), **tolerance)
    # a line's result does not depend on the lines beside it
    whole = rl.fft.fft(rl.tensor(z))
    assert all(rl.equal(whole[i], rl.fft.fft(rl.tensor(z[i]))) for i in range(5))


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (2, 0), (1, 2), (0, 1, 2)])
def test_real_inputs_have_mirrored_spectra(dims):
    x = array(4, 5, 6, dtype=np.float64)
    np.testing.assert_allclose(rl.fft.fftn(rl.tensor(x), dim=dims), np.fft.fftn(x, axes=dims), atol=1e-13)
    np.testing.assert_allclose(rl.fft.ifftn(rl.tensor(x), dim=dims), np.fft.ifftn(x, axes=dims), atol=1e-13)
    assert gradcheck(lambda t: rl.fft.fftn(t, dim=dims), (rl.tensor(x, requires_grad=True),))


@pytest.mark.parametrize("shape", [(3, 8, 5), (6, 47, 46), (2, 70, 300, 9), (40, 3, 520)])
def test_sums_over_outer_and_inner_dimensions(shape):
    x = array(*shape, dtype=np.float64)
    dims = (0, *range(2, len(shape)))
    np.testing.assert_allclose(rl.tensor(x).sum(dims), x.sum(dims), atol=1e-10)
    np.testing.assert_allclose(rl.tensor(x).mean(dims), x.mean(dims), atol=1e-12)
    np.testing.assert_array_equal(rl.tensor(x).amax(dims), x.max(dims))
    k = (x * 1000).astype(np.int64)
    np.testing.assert_array_equal(rl.tensor(k).sum(dims), k.sum(dims))
    np.testing.assert_array_equal(rl.tensor(k).amin(dims), k.min(dims))
    half = rl.tensor(x).bfloat16()
    np.testing.assert_allclose(half.sum(dims).float(), half.double().sum(dims), rtol=0.01, atol=0.05)


@pytest.mark.parametrize("n", [1, 2, 3, 9, 67, 1025, 5000])
def test_sums_of_whole_and_complex_numbers(n):
    k = (array(n, dtype=np.float64) * 1e6).astype(np.int64)
    t = rl.tensor(k)
    assert (t.sum().item(), t.max().item(), t.min().item()) == (k.sum(), k.max(), k.min())
    assert t.argmax().item() == k.argmax() and t.argmin().item() == k.argmin()
    z = array(3, n, dtype=np.float64) + 1j * array(3, n, seed=1, dtype=np.float64)
    np.testing.assert_allclose(rl.tensor(z).sum(1), z.sum(1), atol=1e-10)
    np.testing.assert_allclose(rl.tensor(z).mean(), z.mean(), atol=1e-12)


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


@pytest.mark.parametrize("shape", [(3, 4), (700, 10), (40, 130), (5, 600), (300, 1)])
@pytest.mark.parametrize("op", ["add", "set", "amax"])
def test_scatter_along_rows(shape, op):
    rows, columns = shape
    x, k = array(*shape, dtype=np.float64), np.random.default_rng(2).integers(0, columns, shape)
    base = array(*shape, seed=3, dtype=np.float64)
    expected = base.copy()
    for i in range(rows):
        for j in range(columns):
            at = i, k[i, j]
            expected[at] = {
                "add": expected[at] + x[i, j],
                "set": x[i, j],
                "amax": max(expected[at], x[i, j]),
            }[op]
    t, index, source = rl.tensor(base), rl.tensor(k), rl.tensor(x)
    for s, i in ((source, index), (source.t().contiguous().t(), index), (source, index.t().contiguous().t())):
        if op == "add":
            found = t.scatter_add(1, i, s)
        elif op == "set":
            found = t.scatter(1, i, s)
        else:
            found = t.scatter_reduce(1, i, s, "amax")
        np.testing.assert_allclose(found, expected)
    bad = index.clone()
    bad[rows // 2, columns - 1] = columns
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        t.scatter_add(1, bad, source)


def test_copies_of_short_rows():
    x = array(70, 90)
    t = rl.tensor(x)
    np.testing.assert_array_equal(t.repeat_interleave(2, 1), x.repeat(2, 1))
    np.testing.assert_array_equal(t.repeat_interleave(3, 0), x.repeat(3, 0))
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)
    np.testing.assert_array_equal(t.unfold(1, 3, 1).contiguous(), windows)
    cube = array(40, 3, 50, 4)
    np.testing.assert_array_equal(
        rl.tensor(cube).permute(2, 0, 3, 1).contiguous(), cube.transpose(2, 0, 3, 1)
    )


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


def test_counts():
    k = np.random.default_rng(0).integers(0, 50, 3001)
    np.testing.assert_array_equal(rl.bincount(rl.tensor(k)), np.bincount(k))
    np.testing.assert_array_equal(rl.bincount(rl.tensor(k), minlength=80), np.bincount(k, minlength=80))
    k[1700] = -1
    with pytest.raises(RuntimeError):
        rl.bincount(rl.tensor(k))


@pytest.mark.parametrize("k", [1, 3, 15, 16, 33])
@pytest.mark.parametrize("largest", [True, False])
def test_few_of_many(k, largest):
    x = array(6, 400)
    x[2, 17] = np.nan
    values, places = rl.tensor(x).topk(k, 1, largest=largest)
    order = np.sort(x, 1)  # NaN last
    expected = order[:, ::-1][:, :k] if largest else order[:, :k]
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(rl.tensor(x).gather(1, places), expected)


@pytest.mark.parametrize("n", [511, 512, 5000, 70_000])
def test_sorting_numbers_of_64_bits(n):
    """By 32 bits of them where those tell them apart, else by all."""
    rng = np.random.default_rng(n)
    doubles = np.where(rng.random(n) < 0.3, -0.0, rng.standard_normal(n))
    doubles[::17] = np.nan
    rows = [
        doubles,
        np.exp(rng.standard_normal(n) * 100),
        rng.integers(-(2**63), 2**63 - 1, n),
        rng.integers(0, 5, n),
        rng.integers(0, 70_000, n) - 40_000,
        rng.integers(0, 3, n) * 2**40 + rng.integers(0, 9, n),
        np.zeros(n, np.int64),
    ]
    for x in rows:
        values, places = rl.sort(rl.tensor(x), stable=True)
        order = np.argsort(x, kind="stable")
        np.testing.assert_array_equal(places, order)
        assert values.numpy().tobytes() == x[order].tobytes()
        values, places = rl.sort(rl.tensor(x), stable=True, descending=True)
        backwards = n - 1 - np.argsort(x[::-1], kind="stable")[::-1]
        np.testing.assert_array_equal(places, backwards)
        assert values.numpy().tobytes() == x[backwards].tobytes()
        np.testing.assert_array_equal(rl.tensor(np.stack([x, x], 1)).sort(0).indices[:, 1], order)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int16, np.uint8])
@pytest.mark.parametrize("n", [2049, 40_000, 100_001])
def test_ranks_in_long_rows(n, dtype):
    """Found digit by digit: spread values, few values, one value, NaN above all; equal ones in their order."""
    rng = np.random.default_rng(n)
    if np.issubdtype(dtype, np.integer):
        spread = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, n, dtype)
    else:
        spread = np.exp(rng.standard_normal(n) * 15).astype(dtype)
        spread[::7], spread[::11] = np.nan, -0.0
    for x in (spread, rng.integers(0, 3, n).astype(dtype), np.full(n, 3, dtype)):
        order = np.argsort(x, kind="stable")
        for k in (1, n // 3, n // 2 + 1, n):
            value, place = rl.kthvalue(rl.tensor(x), k)
            assert place.item() == order[k - 1]
            np.testing.assert_equal(value.numpy(), x[order[k - 1]])
        columns = rl.kthvalue(rl.tensor(np.stack([x, x], 1)), n // 3, dim=0).indices
        assert columns.tolist() == [order[n // 3 - 1]] * 2
        np.testing.assert_equal(
            rl.nanmedian(rl.tensor(x)).numpy(), np.sort(x[x == x])[(np.sum(x == x) - 1) // 2]
        )


@pytest.mark.parametrize("shape", [(6, 7, 7), (3, 1, 1), (2, 40, 41)])
def test_global_average_pool(shape):
    x = array(2, *shape, dtype=np.float64)
    t = rl.tensor(x, requires_grad=True)
    y = F.adaptive_avg_pool2d(t, 1)
    np.testing.assert_allclose(y.detach(), x.mean((2, 3), keepdims=True), atol=1e-14)
    y.sum().backward()
    np.testing.assert_allclose(t.grad, np.full_like(x, 1 / (shape[1] * shape[2])))


@pytest.mark.parametrize("width", [1, 31, 32, 100])
def test_bags(width):
    table, k = array(20, width), np.random.default_rng(1).integers(0, 20, 17)
    starts = [0, 4, 4, 9]
    found = F.embedding_bag(rl.tensor(k), rl.tensor(table), rl.tensor(starts), mode="sum")
    expected = [table[k[a:b]].sum(0) for a, b in zip(starts, [*starts[1:], 17], strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("mode, shape, size", [("linear", (2, 3, 9), 14), ("bilinear", (2, 2, 5, 6), (9, 4)),
                                               ("bicubic", (1, 2, 6, 5), (8, 11)), ("trilinear", (1, 1, 3, 4, 5), (5, 3, 7))])  # fmt: skip
@pytest.mark.parametrize("align_corners", [False, True])
def test_resized_derivatives(mode, shape, size, align_corners):
    x = rl.tensor(array(*shape, dtype=np.float64), requires_grad=True)

    def resized(t):
        return F.interpolate(t, size, mode=mode, align_corners=align_corners)

    assert gradcheck(resized, (x,)) and gradgradcheck(resized, (x,))
    flat = F.interpolate(rl.full(shape, 2.5), size, mode=mode, align_corners=align_corners)
    np.testing.assert_allclose(flat, 2.5, rtol=1e-6)
    half = F.interpolate(x.detach().half(), size, mode=mode, align_corners=align_corners)
    np.testing.assert_allclose(half.double(), resized(x).detach(), atol=5e-3)


def test_resize_of_a_ramp():
    x = rl.arange(4.0).view(1, 1, 4)
    assert F.interpolate(x, 7, mode="linear", align_corners=True).flatten().tolist() == [
        0,
        0.5,
        1,
        1.5,
        2,
        2.5,
        3,
    ]
    assert F.interpolate(x, 8, mode="linear").flatten().tolist() == [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]
    assert F.interpolate(x.expand(0, 1, 4), 8, mode="linear").shape == (0, 1, 8)


def test_normals_after_an_odd_number():
    rl.manual_seed(3)
    one_by_one = [rl.randn(1).item() for _ in range(30)]
    rl.manual_seed(3)
    together = [*rl.randn(5).tolist(), *rl.randn(7).tolist(), *rl.randn(4).tolist(), *rl.randn(14).tolist()]
    assert together == one_by_one


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(5, 7, 9), (40, 31), (64, 62), (3, 33, 64), (1, 8192), (2, 12288), (1, 10125)]
)
def test_fourier_lines_of_any_number_and_length(shape, dtype):
    """Groups of lines that fill no vector, radices without a butterfly of their own, lines that are split in two."""
    x = array(*shape, dtype=dtype)
    z = x + 1j * array(*shape, seed=1, dtype=dtype)
    tolerance = {"rtol": 0, "atol": (2e-6 if dtype == np.float32 else 1e-14) * math.sqrt(x.size) * 4}
    for dim in range(x.ndim):
        full = np.fft.fft(z, axis=dim)
        np.testing.assert_allclose(rl.fft.fft(rl.tensor(z), dim=dim).numpy(), full, **tolerance)
        np.testing.assert_allclose(rl.fft.ifft(rl.tensor(full), dim=dim).numpy(), z, **tolerance)
        half = np.fft.rfft(x, axis=dim)
        np.testing.assert_allclose(rl.fft.rfft(rl.tensor(x), dim=dim).numpy(), half, **tolerance)
        back = rl.fft.irfft(rl.tensor(half), n=shape[dim], dim=dim)
        np.testing.assert_allclose(back.numpy(), x, **tolerance)
    np.testing.assert_allclose(rl.fft.fftn(rl.tensor(x)).numpy(), np.fft.fftn(x), **tolerance)


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


def test_powers_of_doubles():
    rng = np.random.default_rng(0)
    x, y = np.exp(rng.uniform(-20, 20, 1001)), rng.uniform(-30, 30, 1001)
    np.testing.assert_allclose(rl.pow(rl.tensor(x), rl.tensor(y)).numpy(), x**y, rtol=5e-16, atol=0)
    edges = np.array([0.0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, 1e300, 1e-310, math.inf, -math.inf, math.nan])
    x, y = (v.ravel() for v in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        want = x**y
    np.testing.assert_allclose(rl.pow(rl.tensor(x), rl.tensor(y)).numpy(), want, rtol=5e-16, atol=0)


@pytest.mark.parametrize("size, step", [(4, 2), (7, 3), (16, 4), (5, 9)])
def test_gradient_of_overlapping_windows(size, step):
    x = rl.tensor(array(3, 50, dtype=np.float64), requires_grad=True)
    y = x.unfold(1, size, step).unfold(0, 2, 1)
    g = array(*y.shape, seed=1, dtype=np.float64)
    y.backward(rl.tensor(g))
    want = np.zeros((3, 50))
    for i, j, k, m in np.ndindex(*g.shape):
        want[i + m, j * step + k] += g[i, j, k, m]
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-12)


def test_places_outside_a_picture_count_nothing():
    x = rl.zeros(1, 1, 3, 3)
    x[0, 0, 0, 0] = math.inf
    outside = rl.full((1, 1, 1, 2), 1.2)
    assert F.grid_sample(x, outside, align_corners=False).tolist() == [[[[0.0]]]]
    empty = rl.zeros(2, 0, 4, 5, requires_grad=True), rl.zeros(2, 3, 4, 2, requires_grad=True)
    F.grid_sample(*empty, align_corners=False).sum().backward()
    assert empty[0].grad.shape == (2, 0, 4, 5) and empty[1].grad.abs().sum() == 0


@pytest.mark.parametrize("n", [1, 8191, 8193, 30000])
def test_equal_neighbours_across_blocks(n):
    x = np.random.default_rng(n).integers(0, 3, n) // 2 * 1.0
    x[::7] = -0.0
    starts = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    values, inverse, counts = rl.unique_consecutive(rl.tensor(x), return_inverse=True, return_counts=True)
    assert np.array_equal(values.numpy(), x[starts])
    assert np.array_equal(np.signbit(values.numpy()), np.signbit(x[starts]))
    assert np.array_equal(counts.numpy(), np.diff(np.append(starts, n)))
    assert np.array_equal(inverse.numpy(), np.repeat(np.arange(len(starts)), np.diff(np.append(starts, n))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [3, 8, 9, 47, 48, 97, 300])
def test_systems_of_every_size(n, dtype):
    """On the stack, by LAPACK, and by products of halves."""
    a = array(n, n, dtype=dtype) + n**0.5 * np.eye(n, dtype=dtype)
    s = a @ a.T + n * np.eye(n, dtype=dtype)
    b = array(n, 20, seed=1, dtype=dtype)
    close = {"rtol": 2e-3 if dtype == np.float32 else 1e-10, "atol": 2e-3 if dtype == np.float32 else 1e-10}
    ta, ts, tb = rl.tensor(a), rl.tensor(s), rl.tensor(b)
    np.testing.assert_allclose(rl.linalg.solve(ta, tb).numpy(), np.linalg.solve(a, b), **close)
    np.testing.assert_allclose(rl.linalg.solve(ta.mT, tb).numpy(), np.linalg.solve(a.T, b), **close)
    np.testing.assert_allclose((ta @ rl.linalg.inv(ta)).numpy(), np.eye(n), **close)
    p, low, up = rl.linalg.lu(ta)
    np.testing.assert_allclose((p @ low @ up).numpy(), a, **close)
    for upper in (False, True):
        c = rl.linalg.cholesky(ts, upper=upper)
        np.testing.assert_allclose(((c.mT @ c) if upper else (c @ c.mT)).numpy(), s, rtol=1e-4, atol=1e-2)
        np.testing.assert_allclose(
            rl.cholesky_solve(tb, c, upper=upper).numpy(), np.linalg.solve(s, b), **close
        )
        x = rl.linalg.solve_triangular(c, tb.mT.contiguous(), upper=upper, left=False)
        np.testing.assert_allclose((x @ c).numpy(), b.T, **close)
    assert rl.linalg.inv_ex(rl.zeros(n, n)).info == 1
    assert rl.linalg.cholesky_ex(-ts).info == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int16", "complex128", "bool"])
@pytest.mark.parametrize(
    "sizes", [(70, 16, 8), (3, 5, 7, 2), (600, 3), (2, 33, 1, 4), (9, 100, 2), (1000, 1), (5, 63)]
)
def test_short_rows_in_blocks(sizes, dtype):
    """Rows of few elements run several at a time: operands of every broadcasting and order, against NumPy."""
    rng = np.random.default_rng(0)
    kept = list(itertools.product([False, True], repeat=len(sizes)))

    def operand(repeated, turned, skipped):
        shape = [1 if r else n for r, n in zip(repeated, sizes)]
        if turned:
            shape = shape[::-1]
        x = rng.integers(0, 2 if dtype == "bool" else 9, [*shape[:-1], shape[-1] * 2]).astype(dtype)
        x = x[..., ::2] if skipped else x[..., : shape[-1]].copy()
        return x.T if turned else x

    for repeated in kept:
        for turned, skipped in itertools.product([False, True], repeat=2):
            a, b = operand(repeated, False, skipped), operand([not r for r in repeated], turned, False)
            mine = rl.from_numpy(a), rl.from_numpy(b)
            name = "logical_xor" if dtype == "bool" else "add"
            expected = getattr(np, name)(a, b)
            assert np.array_equal(getattr(rl, name)(*mine).numpy(), expected)
            where = rl.where(mine[0] == mine[1], mine[0], mine[1]).numpy()
            assert np.array_equal(where, np.where(a == b, a, b))
            into = np.zeros([*sizes[:-1], sizes[-1] * 2], dtype)[..., ::2]  # a result with gaps
            getattr(rl, name)(*mine, out=rl.from_numpy(into))
            assert np.array_equal(into, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("columns", [1, 2, 3, 7, 8, 9, 10, 15, 16, 17, 31, 33, 63, 64, 65, 130])
def test_reductions_of_short_rows(columns, dtype):
    """Several rows are reduced side by side; the rows left over give the same bits."""
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, (35, columns)).astype(dtype)
    if dtype != "int64":
        x = x / 9 + rng.standard_normal(x.shape).astype(dtype)
    y = rl.from_numpy(x)
    for name in ("sum", "prod") if dtype != "int64" else ("sum",):
        mine = getattr(y, name)(1)
        np.testing.assert_allclose(mine.numpy(), getattr(x.astype("float64"), name)(1), rtol=1e-4, atol=1e-4)
        alone = rl.stack([getattr(row, name)() for row in y])
        assert rl.equal(mine, alone)
    assert rl.equal(y[:, 1:].sum(1), y[:, 1:].clone().sum(1))


@pytest.mark.parametrize("columns", [1, 3, 16, 17, 40, 64, 100, 1030])
def test_softmax_of_rows(columns):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((37, columns)) * 30
    x[3], x[4, 0], x[5, -1], x[6, 0], x[7] = -np.inf, np.inf, np.nan, -np.inf, -1e30
    with np.errstate(all="ignore"):
        top = x.max(1, keepdims=True)
        total = np.exp(x - top).sum(1, keepdims=True)
        logs = x - top - np.log(total)
        lse = np.where(np.isfinite(top), top + np.log(total), top)[:, 0]
    for dtype, tolerance in ((rl.float32, 2e-5), (rl.float64, 1e-12)):
        y = rl.from_numpy(x).to(dtype)
        for mine, expected in ((y.softmax(1), np.exp(logs)), (y.log_softmax(1), logs), (y.logsumexp(1), lse)):
            np.testing.assert_allclose(mine.double().numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bfloat16"])
@pytest.mark.parametrize("columns", [2, 3, 5, 8, 10, 16, 31, 32])
@pytest.mark.parametrize("rows", [63, 320, 323, 30011])
def test_reductions_over_narrow_rows(rows, columns, dtype):
    a = np.random.default_rng(rows).integers(-40, 40, (rows, columns))
    x = rl.tensor(a).to(getattr(rl, dtype))
    for name in ("amax", "amin"):
        assert np.array_equal(getattr(x, name)(0).to(rl.int64).numpy(), getattr(a, name[1:])(0))
    if dtype != "bfloat16":
        assert np.array_equal(x.sum(0).to(rl.int64).numpy(), a.sum(0))
    assert np.array_equal(
        x[: rows // 2 * 2 : 2].contiguous().ne(0).any(0).numpy(), (a[: rows // 2 * 2 : 2] != 0).any(0)
    )
    for name in ("max", "min"):  # of equal ones the first
        values, places = getattr(x, name)(0)
        assert np.array_equal(values.to(rl.int64).numpy(), getattr(a, name)(0))
        assert np.array_equal(places.numpy(), getattr(a, "arg" + name)(0))


@pytest.mark.parametrize("rows", [320, 323])
def test_first_nan_of_narrow_rows(rows):
    a = array(rows, 3)
    a[200, 1] = a[77, 1] = a[rows - 1, 2] = math.nan
    x = rl.tensor(a)
    for name in ("max", "min"):
        values, places = getattr(x, name)(0)
        assert places.tolist()[1:] == [77, rows - 1] and values.isnan().tolist() == [False, True, True]
    assert x.amax(0).isnan().tolist() == x.sum(0).isnan().tolist() == [False, True, True]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 25, 31, 32, 33, 40, 64, 65])
def test_short_rows_of_wide_ones_are_copied(width, dtype):
    a = np.random.default_rng(width).integers(0, 200, (5, 41, width + 3)).astype(dtype)
    x = rl.tensor(a)
    for start in (0, 3):
        assert np.array_equal(
            x[..., start : start + width].contiguous().numpy(), a[..., start : start + width]
        )
    both = rl.cat([x[..., 3:], x[..., :1], x[..., 1:4]], -1)
    assert np.array_equal(both.numpy(), np.concatenate([a[..., 3:], a[..., :1], a[..., 1:4]], -1))
    target = rl.zeros(5, 41, width + 3, dtype=x.dtype)
    target[..., 1 : width + 1] = x[..., 2 : width + 2]
    assert np.array_equal(target[..., 1 : width + 1].numpy(), a[..., 2 : width + 2])
    assert not target[..., 0].any() and not target[..., width + 1 :].any()


def triangle_filter(n_in, n_out):
    """(n_out, n_in): how much each result of an antialiased resize takes of each element."""
    step = n_in / n_out
    reach = max(step, 1.0)
    centres = (np.arange(n_out)[:, None] + 0.5) * step
    w = np.maximum(1 - np.abs(np.arange(n_in) + 0.5 - centres) / reach, 0)
    return w / w.sum(1, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape, size", [((2, 3, 21, 40), (9, 11)), ((1, 1, 7, 600), (9, 311)), ((3, 5, 33, 17), (70, 5))]
)
def test_filtered_resize(shape, size, dtype):
    a = array(*shape, dtype=dtype)
    tall, wide = triangle_filter(shape[2], size[0]), triangle_filter(shape[3], size[1])
    expected = np.einsum("ih,nchw,jw->ncij", tall, a, wide)
    got = F.interpolate(rl.tensor(a), size=size, mode="bilinear", antialias=True).numpy()
    # Places are computed in the type of the elements.
    np.testing.assert_allclose(got, expected, atol=2e-4 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize(
    "shape, size", [((2, 3, 21, 40), (9, 11)), ((1, 1, 7, 600), (9, 311)), ((3, 5, 33, 17), (70, 5))]
)
def test_filtered_resize_of_bytes(shape, size):
    # Each pass rounds to bytes, the one along rows first.
    a = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    rows = np.floor(np.einsum("nchw,jw->nchj", a.astype(float), triangle_filter(shape[3], size[1])) + 0.5)
    expected = np.floor(np.einsum("ih,nchj->ncij", triangle_filter(shape[2], size[0]), rows) + 0.5)
    got = F.interpolate(rl.tensor(a), size=size, mode="bilinear", antialias=True)
    assert got.dtype == rl.uint8
    off = np.abs(got.numpy().astype(float) - expected)
    assert off.max() <= 1 and (off > 0).mean() < 0.03  # weights have 15 bits
    white = F.interpolate(rl.full(shape, 255, dtype=rl.uint8), size=size, mode="bicubic", antialias=True)
    assert (white == 255).all()


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_filtered_bytes_are_those_of_torch(mode):
    torch = pytest.importorskip("torch")
    a = np.random.default_rng(2).integers(0, 256, (2, 3, 40, 37)).astype(np.uint8)
    for size in ((19, 300), (64, 8), (40, 20), (41, 37)):
        expected = torch.nn.functional.interpolate(
            torch.tensor(a), size=size, mode=mode, antialias=True
        ).numpy()
        got = F.interpolate(rl.tensor(a), size=size, mode=mode, antialias=True).numpy()
        assert np.array_equal(got, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m, n", [(48, 48), (70, 65), (64, 200), (200, 64), (129, 129), (530, 520)])
def test_reflections_in_blocks(m, n, dtype):
    a = array(m, n, dtype=dtype)
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    for mode in ("reduced", "complete"):
        q, r = (t.numpy() for t in rl.linalg.qr(rl.tensor(a), mode=mode))
        np.testing.assert_allclose(q.T @ q, np.eye(q.shape[1]), atol=tolerance)
        np.testing.assert_allclose(q @ r, a, atol=20 * tolerance)
        assert np.array_equal(r, np.triu(r))
    expected = np.linalg.qr(a.astype(np.float64), mode="r")
    np.testing.assert_allclose(
        np.abs(rl.linalg.qr(rl.tensor(a), mode="r").R.numpy()), np.abs(expected), atol=2e-3
    )
    packed, tau = rl.geqrf(rl.tensor(a))
    q = rl.linalg.qr(rl.tensor(a), mode="complete").Q
    c = rl.tensor(array(m, 50, seed=1, dtype=dtype))
    np.testing.assert_allclose(rl.ormqr(packed, tau, c), q @ c, atol=20 * tolerance)
    np.testing.assert_allclose(rl.ormqr(packed, tau, c, transpose=True), q.T @ c, atol=20 * tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e30, 1e-30, 1e-42])
def test_reflections_of_equal_columns(scale, dtype):
    """What is left of a column is rounding errors, or nothing: Q is orthogonal all the same."""
    a = np.full((60, 60), scale, dtype)
    a[:, 7] = 0
    q, r = (t.numpy() for t in rl.linalg.qr(rl.tensor(a)))
    np.testing.assert_allclose(q.T @ q, np.eye(60), atol=1e-5)
    np.testing.assert_allclose(q @ r, a, atol=2e-5 * scale + 2e-43)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("driver", ["gelsy", "gels"])
@pytest.mark.parametrize("columns", [1, 5])
def test_least_squares_by_reflections(columns, driver, dtype):
    for m, n in ((60, 60), (200, 60), (400, 100)):
        a, b = (
            array(m, n, dtype=dtype) + np.eye(m, n, dtype=dtype) * 9,
            array(m, columns, seed=1, dtype=dtype),
        )
        expected, residuals = np.linalg.lstsq(a.astype(float), b.astype(float), rcond=None)[:2]
        got = rl.linalg.lstsq(rl.tensor(a), rl.tensor(b), driver=driver)
        np.testing.assert_allclose(got.solution, expected, atol=1e-4 if dtype == np.float32 else 1e-11)
        if driver == "gels":
            assert got.rank.numel() == 0
            if m > n:
                np.testing.assert_allclose(got.residuals, residuals, rtol=1e-4)
        else:
            assert got.rank == n
    # Where columns depend on each other the shortest of all solutions is wanted.
    a = (array(200, 40, dtype=np.float64) @ array(40, 60, seed=2, dtype=np.float64)).astype(dtype)
    got = rl.linalg.lstsq(rl.tensor(a), rl.tensor(array(200, 1, seed=3, dtype=dtype)))
    expected = np.linalg.lstsq(a.astype(float), array(200, 1, seed=3, dtype=dtype).astype(float), rcond=1e-5)[
        0
    ]
    assert got.rank == 40
    np.testing.assert_allclose(got.solution, expected, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "uint8", "int8"])
@pytest.mark.parametrize("n", [5, 33, 257, 1000])
def test_the_few_largest_come_in_order(n, dtype):
    a = np.random.default_rng(n).integers(-30, 30, (3, n))
    x = rl.tensor(a).to(getattr(rl, dtype))
    if dtype.startswith("float") and n > 30:
        x[0, 7], x[1, 3], x[1, 9], x[2, 1] = math.nan, math.inf, -math.inf, -0.0
    for k, largest in itertools.product((1, 2, 5, 8, 31, 32, 40), (True, False)):
        if k > n:
            continue
        for t, dim in ((x, 1), (x.t().contiguous(), 0), (x[:, ::2], 1)):
            if k > t.shape[dim]:
                continue
            values, places = t.topk(k, dim, largest=largest)
            expected, first = t.sort(dim=dim, descending=largest, stable=True)
            assert np.array_equal(
                values.double().numpy(), expected.narrow(dim, 0, k).double().numpy(), equal_nan=True
            )
            assert k > 32 or rl.equal(places, first.narrow(dim, 0, k))


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 64, 300), (1, 5000, 40), (2, 3, 1030)])
def test_softmax_of_half_columns_rounds_once(shape, dtype):
    x = (rl.tensor(array(*shape)) * 4).to(dtype)
    x[0, 1, 1] = -math.inf
    for f in (rl.softmax, rl.log_softmax):
        # As float, then rounded: at most one unit in the last place apart, where the float itself is on the edge.
        expected = f(x.float(), 1).to(dtype).view(rl.int16).int()
        assert (f(x, 1).view(rl.int16).int() - expected).abs().max() <= 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(5, 7), (64, 70), (300, 64), (3, 70, 5, 5), (2, 6, 17, 19), (2, 8, 3)])
def test_normalised_channels_and_rows(shape, dtype):
    a, up = array(*shape, dtype=np.float64) + 1, rl.tensor(array(*shape, seed=1, dtype=np.float64))
    atol = {"float32": 1e-5, "float64": 1e-12, "float16": 1e-2, "bfloat16": 1e-1}[dtype]
    others = (0, *range(2, len(shape)))

    def batch(t):
        return F.batch_norm(t, None, None, training=True)

    def batch_by_hand(t):
        off = t - t.mean(others, keepdim=True)
        return off / (off.square().mean(others, keepdim=True) + 1e-5).sqrt()

    def rows(t):
        return F.layer_norm(t, t.shape[-1:])

    def rows_by_hand(t):
        off = t - t.mean(-1, keepdim=True)
        return off / (off.square().mean(-1, keepdim=True) + 1e-5).sqrt()

    for f, by_hand in ((batch, batch_by_hand), (rows, rows_by_hand)):
        x = rl.tensor(a).to(getattr(rl, dtype)).requires_grad_()
        exact = x.detach().double().requires_grad_()
        y, expected = f(x), by_hand(exact)
        np.testing.assert_allclose(y.detach().double(), expected.detach(), atol=atol)
        y.backward(up.to(x.dtype))
        expected.backward(up.to(x.dtype).double())
        # Rows of a few numbers that lie close have large slopes.
        np.testing.assert_allclose(
            x.grad.double(), exact.grad, atol=2 * atol * max(1, exact.grad.abs().max().item())
        )


def test_mean_by_an_index_that_repeats_itself():
    index, src = rl.tensor([0, 2, 2, 3, 0, 2]), rl.tensor(array(6, 5, dtype=np.float64), requires_grad=True)
    for wide in (
        index[:, None].expand(6, 5),
        index[:, None].expand(6, 5).contiguous(),
        index[:, None].expand(6, 3),
    ):
        for include in (True, False):
            x = rl.tensor(array(4, 5, seed=1, dtype=np.float64))
            y = x.scatter_reduce(0, wide, src, "mean", include_self=include)
            for place, column in itertools.product(range(4), range(5)):
                met = [
                    src[i, column].item() for i in range(6) if index[i] == place and column < wide.shape[1]
                ]
                met += [x[place, column].item()] if include or not met else []
                assert math.isclose(y[place, column].item(), sum(met) / len(met))
    assert gradcheck(lambda s: x.scatter_reduce(0, index[:, None].expand(6, 5), s, "mean"), (src,))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 8, 11, 12, 13, 24, 25])
def test_products_of_few_rows_with_stored_weights(rows, dtype):
    """Rows of the weights beyond those that are taken together, sums that are no whole vectors, addends, columns."""
    for width, outputs in ((32, 3), (45, 9), (513, 257), (700, 203)):
        x, w, b = (
            array(*shape, seed=i, dtype=dtype)
            for i, shape in enumerate([(rows, width), (outputs, width), (outputs,)])
        )
        want = x.astype(np.float64) @ w.T.astype(np.float64)
        atol = (1e-5 if dtype == np.float32 else 1e-13) * np.sqrt(width)
        tx, tw, tb = map(rl.tensor, (x, w, b))
        np.testing.assert_allclose(F.linear(tx, tw), want, atol=atol)
        np.testing.assert_allclose(F.linear(tx, tw, tb), want + b, atol=atol)
        np.testing.assert_allclose((tw @ tx.t()).t(), want, atol=atol)
        np.testing.assert_allclose(
            rl.addmm(tb, tx, tw.t(), beta=0.5, alpha=2), 0.5 * b + 2 * want, atol=4 * atol
        )
        wide = rl.tensor(np.repeat(w, 2, axis=1))[:, ::2]  # rows that are not dense
        np.testing.assert_allclose(F.linear(tx, wide), want, atol=atol)
        spaced = rl.tensor(np.concatenate([w, w], axis=1))[:, :width]
        np.testing.assert_allclose(F.linear(tx, spaced), want, atol=atol)
        if rows == 1:
            np.testing.assert_allclose(tw @ tx[0], want[0], atol=atol)
            np.testing.assert_allclose(rl.addmv(tb, tw, tx[0], beta=0.5), 0.5 * b + want[0], atol=atol)


@pytest.mark.parametrize(
    "rows, width, places", [(63, 300, 7), (700, 33, 50), (1500, 16, 3), (1200, 40, 1), (600, 5, 600)]
)
def test_rows_added_at_places(rows, width, places):
    """In bands of the target: the sums have the same bits for every number of threads, the last of written rows stays."""
    x, index = array(rows, width), np.random.default_rng(1).integers(-places, places, rows)
    want = np.zeros((places, width), dtype=np.float32)
    np.add.at(want, index, x)
    threads, results = rl.get_num_threads(), []
    try:
        for count in (1, 2, 3, 8):
            rl.set_num_threads(count)
            at, given = rl.tensor(index), rl.tensor(x)
            results.append(rl.zeros(places, width).index_put_((at,), given, accumulate=True).numpy())
            added = rl.zeros(places, width).index_add_(0, at % places, given)
            np.testing.assert_array_equal(added, results[-1])
            turned = rl.zeros(width, places).t().index_add_(0, at % places, given)
            np.testing.assert_array_equal(turned, results[-1])
            most = rl.zeros(places, width).scatter_reduce(
                0, (at % places)[:, None].expand(-1, width), given, "amax"
            )
            np.testing.assert_array_equal(most, np.maximum.reduceat(*_grouped(x, index % places, places)))
            last = rl.zeros(places, width)
            last[at] = given
            for place in range(places):
                met = np.flatnonzero(index % places == place)
                np.testing.assert_array_equal(last[place], x[met[-1]] if len(met) else np.zeros(width))
            with pytest.raises(IndexError):
                rl.zeros(places, width).index_put_((at + places,), given, accumulate=True)
    finally:
        rl.set_num_threads(threads)
    np.testing.assert_allclose(results[0], want, rtol=1e-6)
    assert all(np.array_equal(r, results[0]) for r in results)


def _grouped(x, index, places):
    """Rows by place, with a row of zeros before each place's, and where each place begins."""
    parts = [np.concatenate([np.zeros_like(x[:1]), x[index == place]]) for place in range(places)]
    return np.concatenate(parts), np.cumsum([0, *map(len, parts[:-1])])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "m, n", [(2, 2), (3, 3), (4, 4), (8, 8), (3, 1), (1, 8), (2, 4), (8, 3), (1, 2), (5, 8), (4, 3), (7, 6)]
)
def test_many_tiny_products(m, n, dtype):
    for k in (1, 3, 16, 17):
        a, b, c = (array(6, *shape, seed=i, dtype=dtype) for i, shape in enumerate([(m, k), (k, n), (m, n)]))
        want, atol = a.astype(np.float64) @ b, 1e-5 if dtype == np.float32 else 1e-13
        ta, tb, tc = map(rl.tensor, (a, b, c))
        np.testing.assert_allclose(ta @ tb, want, atol=atol)
        turned = [rl.tensor(np.ascontiguousarray(x.transpose(0, 2, 1))).transpose(1, 2) for x in (a, b)]
        np.testing.assert_allclose(turned[0] @ turned[1], want, atol=atol)
        np.testing.assert_allclose(ta[0] @ tb, a[0] @ b.astype(np.float64), atol=atol)
        np.testing.assert_allclose(
            rl.baddbmm(tc, ta, tb, beta=0.5, alpha=2), 0.5 * c + 2 * want, atol=4 * atol
        )
        np.testing.assert_allclose(tc.clone().baddbmm_(ta, tb), c + want, atol=2 * atol)
        out = rl.empty(6, n, m, dtype=ta.dtype).transpose(1, 2)
        np.testing.assert_allclose(rl.bmm(ta, tb, out=out), want, atol=atol)
    a[0, 0, 0] = np.inf
    assert np.isinf((rl.tensor(a) @ rl.tensor(np.abs(b) + 1))[0, 0]).all()
    assert np.isfinite((rl.tensor(a) @ rl.tensor(b))[0, 1:]).all()


# Lines shorter than a register, as long, longer, longer than a unit; lines that stop at the end of their memory.
@pytest.mark.parametrize(
    "shape", [(7, 3, 5), (1, 2, 1), (300, 2, 2), (9, 32, 8), (9, 33, 8), (3, 2, 449), (2, 3, 1000)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.float16])
@pytest.mark.parametrize("part", [np.s_[:], np.s_[1:], np.s_[:, :, 1:], np.s_[:, 1:]])
def test_reductions_of_a_small_middle_dimension(shape, dtype, part):
    a = (4 * array(*shape)).astype(dtype)
    if a.dtype.kind == "f" and a.size > 2:
        a[shape[0] // 2, 0, -1] = math.nan
    x, a = rl.tensor(a)[part], a[part]
    if a.size == 0:
        return
    wide = a.astype(np.float64)
    close = dict(rtol=1e-2, atol=1e-2) if dtype == np.float16 else dict(rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(x.sum(1).double().numpy(), wide.sum(1), **close)
    np.testing.assert_array_equal(x.amax(1).numpy(), a.max(1))
    np.testing.assert_array_equal(x.amin(1).numpy(), a.min(1))
    np.testing.assert_array_equal((x > 0).any(1).numpy(), (a > 0).any(1))
    np.testing.assert_array_equal(x.count_nonzero(1).numpy(), np.count_nonzero(a, 1))
    values, places = x.max(1)
    np.testing.assert_array_equal(values.numpy(), a.max(1))
    np.testing.assert_array_equal(places.numpy(), a.argmax(1))
    np.testing.assert_array_equal(x.argmin(1).numpy(), a.argmin(1))


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


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("channels", [1, 3, 17])
@pytest.mark.parametrize("pad", [(1, 2, 3, 0), (0, 0, 1, 2), (2, 1, 0, 0), (0, 0, 0, 0)])
def test_frames_around_channels_last(mode, channels, pad):
    a = array(2, channels, 5, 4)
    frame = ((0, 0), (0, 0), pad[2:], pad[:2])
    expected = np.pad(a, frame, mode="edge" if mode == "replicate" else "reflect")
    x = rl.tensor(a).contiguous(memory_format=rl.channels_last)
    y = F.pad(x, pad, mode=mode)
    np.testing.assert_array_equal(y.numpy(), expected)
    assert y.is_contiguous(memory_format=rl.channels_last)
    part = F.pad(x[:, :, 1:], pad[:2] + (0, 0), mode=mode)  # not dense
    same = F.pad(rl.tensor(a[:, :, 1:].copy()), pad[:2] + (0, 0), mode=mode)
    assert rl.equal(part, same)
    wide = rl.tensor(array(2, channels, 3, 20)).contiguous(
        memory_format=rl.channels_last
    )  # little frame, much inside
    assert rl.equal(
        F.pad(wide, (*pad[:2], 1, 2), mode=mode), F.pad(wide.contiguous(), (*pad[:2], 1, 2), mode=mode)
    )
    volume = rl.tensor(array(2, channels, 3, 5, 4)).contiguous(memory_format=rl.channels_last_3d)
    assert rl.equal(
        F.pad(volume, (*pad, 1, 1), mode=mode), F.pad(volume.contiguous(), (*pad, 1, 1), mode=mode)
    )


# Products that the first cache holds, any of the operands turned; the last columns and the last of the sum are few.
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(5, 7, 5), (17, 33, 17), (13, 1, 18), (32, 32, 32), (12, 128, 49), (64, 70, 66)]
)
def test_batches_of_small_products(m, k, n, dtype):
    a, b = array(6, m, k, dtype=dtype), array(6, k, n, seed=1, dtype=dtype)
    start = array(6, m, n, seed=2, dtype=dtype)
    exact, tolerance = a.astype(np.float64) @ b.astype(np.float64), 1e-4 if dtype == np.float32 else 1e-12
    turned = [x.swapaxes(1, 2).copy() for x in (a, b)]
    for x, y in itertools.product(
        (rl.tensor(a), rl.tensor(turned[0]).mT), (rl.tensor(b), rl.tensor(turned[1]).mT)
    ):
        np.testing.assert_allclose((x @ y).numpy(), exact, rtol=tolerance, atol=tolerance)
        both = rl.baddbmm(rl.tensor(start), x, y, beta=0.5, alpha=-2)
        np.testing.assert_allclose(both.numpy(), 0.5 * start - 2 * exact, rtol=tolerance, atol=2 * tolerance)
        np.testing.assert_allclose((x[0] @ y[0]).numpy(), exact[0], rtol=tolerance, atol=tolerance)
        into = rl.zeros(6, n, m, dtype=x.dtype).mT
        assert rl.equal(rl.bmm(x, y, out=into), into)
        np.testing.assert_allclose(into.numpy(), exact, rtol=tolerance, atol=tolerance)


# A few long rows go along the rows, others side by side; gradients come from the rows, or from their differences where
# they are recorded.
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize(
    ("rows", "others", "m"), [(5, 7, 64), (70, 12, 17), (3, 90, 16), (4, 5, 3), (0, 3, 20)]
)
def test_distances_and_their_gradients(p, rows, others, m):
    a, b = array(2, rows, m, dtype=np.float64), array(2, others, m, seed=1, dtype=np.float64)
    if rows:
        b[0, 1] = a[0, 2]  # no distance: the gradient is 0
    differences = np.abs(a[:, :, None] - b[:, None])
    x, y = rl.tensor(a, requires_grad=True), rl.tensor(b, requires_grad=True)
    d = rl.cdist(x, y, p, "donot_use_mm_for_euclid_dist")
    if rows:
        np.testing.assert_allclose(
            d.detach().numpy(), np.linalg.norm(differences, p, -1), rtol=1e-10, atol=1e-10
        )
    g = rl.tensor(array(2, others, rows, seed=2, dtype=np.float64)).mT
    for here, there in zip(
        rl.autograd.grad(d, (x, y), g, retain_graph=True),
        rl.autograd.grad(d, (x, y), g, create_graph=True),
        strict=True,
    ):
        np.testing.assert_allclose(here.numpy(), there.detach().numpy(), rtol=1e-10, atol=1e-12)
    if rows:
        pairs = F.pdist(x[0], p)
        g = rl.tensor(array(rows * (rows - 1) // 2, seed=3, dtype=np.float64))
        (here,) = rl.autograd.grad(pairs, x, g, retain_graph=True)
        (there,) = rl.autograd.grad(pairs, x, g, create_graph=True)
        np.testing.assert_allclose(here.numpy(), there.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("place", [0, 33])
def test_distances_hand_nan_on(p, place):
    a = array(2, 3, 34)
    a[1, 1, place] = math.nan
    d = rl.cdist(rl.tensor(a), rl.zeros(2, 4, 34), p)
    assert d.isnan().nonzero().tolist() == [[1, 1, j] for j in range(4)]


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


# A handful of elements is ranked, short rows and long ones are sorted: at the sizes where the ways part.
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 17, 32, 33, 48, 49, 64, 65])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_order_of_short_rows(n, dtype):
    a = np.round(2 * array(90, n)).astype(dtype)
    if dtype != np.int64:
        a[1::7, n // 2] = math.nan
    x, places = rl.tensor(a), np.argsort(a, 1, kind="stable")
    values, indices = x.sort(dim=1, stable=True)
    np.testing.assert_array_equal(indices.numpy(), places)
    np.testing.assert_array_equal(values.numpy(), np.sort(a, 1))
    for k in {1, (n + 1) // 2, n}:
        np.testing.assert_array_equal(x.kthvalue(k, 1).values.numpy(), np.sort(a, 1)[:, k - 1])
        top = x.topk(k, 1)
        np.testing.assert_array_equal(top.values.numpy(), np.sort(a, 1)[:, ::-1][:, :k])
        np.testing.assert_array_equal(x.gather(1, top.indices).numpy(), top.values.numpy())
    running, where = x.cummax(1)
    np.testing.assert_array_equal(running.numpy(), np.maximum.accumulate(a, 1))
    np.testing.assert_array_equal(x.gather(1, where).numpy(), running.numpy())
    whole = np.nan_to_num(a, nan=5)
    most = rl.tensor(whole).mode(1).values.numpy()
    for row, value in zip(whole, most, strict=True):
        numbers, counts = np.unique(row, return_counts=True)
        assert value == numbers[counts.argmax()]
