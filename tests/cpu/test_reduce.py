"""Kernels along a dimension (reductions, softmax, normalisation, distances): shapes at which their algorithms change, against NumPy."""

import ctypes
import math
import mmap

import numpy as np
import pytest

import rushlight as rl
import rushlight.nn.functional as F


def array(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


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
        values, positions = getattr(x, name)(0)
        assert np.array_equal(values.to(rl.int64).numpy(), getattr(a, name)(0))
        assert np.array_equal(positions.numpy(), getattr(a, "arg" + name)(0))


@pytest.mark.parametrize("rows", [320, 323])
def test_first_nan_of_narrow_rows(rows):
    a = array(rows, 3)
    a[200, 1] = a[77, 1] = a[rows - 1, 2] = math.nan
    x = rl.tensor(a)
    for name in ("max", "min"):
        values, positions = getattr(x, name)(0)
        assert positions.tolist()[1:] == [77, rows - 1] and values.isnan().tolist() == [False, True, True]
    assert x.amax(0).isnan().tolist() == x.sum(0).isnan().tolist() == [False, True, True]


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
    values, positions = x.max(1)
    np.testing.assert_array_equal(values.numpy(), a.max(1))
    np.testing.assert_array_equal(positions.numpy(), a.argmax(1))
    np.testing.assert_array_equal(x.argmin(1).numpy(), a.argmin(1))


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


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.float16, rl.bfloat16])
@pytest.mark.parametrize(
    "shape", [(3, 5, 1), (700, 65), (2, 9, 24, 24), (2, 1100, 33), (40, 16), (2, 6, 130)]
)
def test_softmax_and_its_slope_along_columns_and_rows(shape, dtype):
    a, up = array(*shape, dtype=np.float64) * 3, rl.tensor(array(*shape, seed=1)).to(dtype)
    atol = {rl.float32: 3e-6, rl.float64: 1e-13, rl.float16: 4e-3, rl.bfloat16: 4e-2}[dtype]
    for dim in range(len(shape)):
        x = rl.tensor(a).to(dtype).requires_grad_()
        e = np.exp(x.detach().double().numpy())
        p, d = e / e.sum(dim, keepdims=True), up.double().numpy()
        by_hand = {
            rl.softmax: (p, p * (d - (p * d).sum(dim, keepdims=True))),
            rl.log_softmax: (np.log(p), d - p * d.sum(dim, keepdims=True)),
        }
        for f, (value, derivative) in by_hand.items():
            y = f(x, dim)
            np.testing.assert_allclose(y.detach().double().numpy(), value, atol=atol, rtol=atol)
            size = 1 + np.abs(d).sum(dim, keepdims=True)  # y was rounded before its derivative was taken
            got = rl.autograd.grad(y, x, up)[0].double().numpy()
            np.testing.assert_array_less(np.abs(got - derivative), np.broadcast_to(atol * size, shape))


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 64, 300), (1, 5000, 40), (2, 3, 1030)])
def test_softmax_of_half_columns_rounds_once(shape, dtype):
    x = (rl.tensor(array(*shape)) * 4).to(dtype)
    x[0, 1, 1] = -math.inf
    for f in (rl.softmax, rl.log_softmax):
        # As float, then rounded: at most one unit in the last place off, where the float itself is on the edge.
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
        # Rows of a few close values have large derivatives.
        np.testing.assert_allclose(
            x.grad.double(), exact.grad, atol=2 * atol * max(1, exact.grad.abs().max().item())
        )


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
@pytest.mark.parametrize("position", [0, 33])
def test_distances_hand_nan_on(p, position):
    a = array(2, 3, 34)
    a[1, 1, position] = math.nan
    d = rl.cdist(rl.tensor(a), rl.zeros(2, 4, 34), p)
    assert d.isnan().nonzero().tolist() == [[1, 1, j] for j in range(4)]


@pytest.mark.parametrize("n", [1, 1025, 16384, 16385, 50001])
def test_extremes_and_products_of_long_rows(n):
    x = array(2, n)
    np.testing.assert_array_equal(rl.tensor(x).amax(1).numpy(), x.max(1))
    np.testing.assert_array_equal(rl.tensor(x).amin().numpy(), x.min())
    near_one = np.exp(x * 1e-3).astype(np.float32)
    np.testing.assert_allclose(
        rl.tensor(near_one).prod(1).numpy(), near_one.astype(np.float64).prod(1), rtol=1e-4
    )
    x[1, n // 2] = np.nan
    assert rl.tensor(x).amax(1).isnan().tolist() == [False, True]


@pytest.mark.parametrize("width", [1, 3, 8, 17, 32, 63, 64, 65, 255, 256, 257])
@pytest.mark.parametrize(
    "dtype", ["uint8", "bool", "int16", "int32", "int64", "float16", "float32", "complex64"]
)
def test_short_rows_of_every_type(width, dtype):
    x = (array(301, width) * 20).astype(dtype)
    t = rl.from_numpy(x)
    sums = x.astype({"float16": np.float64}.get(dtype, x.dtype)).sum(1)
    np.testing.assert_allclose(
        t.sum(1).numpy(), sums, rtol=1e-2 if dtype == "float16" else 1e-4, atol=1e-3 * width
    )
    np.testing.assert_array_equal(t[1:, :].any(1).numpy(), x[1:].any(1))
    if dtype == "complex64":
        turns = np.exp(1j * array(301, width)).astype(np.complex64)
        np.testing.assert_allclose(
            rl.tensor(turns).prod(1).numpy(), turns.astype(np.complex128).prod(1), atol=1e-4
        )
        return
    np.testing.assert_array_equal(t.amax(1).numpy(), x.max(1))
    if dtype != "bool":
        np.testing.assert_array_equal(t.argmax(1).numpy(), x.argmax(1))
        np.testing.assert_array_equal(
            t[:, : width // 2 + 1].min(1).values.numpy(), x[:, : width // 2 + 1].min(1)
        )


def test_extremes_of_short_rows_with_nan():
    x = array(33, 32)
    x[5, 0], x[6, 31], x[7, 13] = np.nan, np.nan, np.inf
    np.testing.assert_array_equal(rl.tensor(x).amax(1).numpy(), x.max(1))
    np.testing.assert_array_equal(rl.tensor(x).amin(1).numpy(), x.min(1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("others", [1, 3, 4, 5, 8, 9])
def test_distances_of_many_small_matrices(others, p, dtype):
    """A few rows are one vector, which is written as a whole over what the next row begins with."""
    a, b = array(700, 3, 4, dtype=dtype), array(700, others, 4, seed=1, dtype=dtype)
    a[699, 2, 1] = math.nan if p else 0
    want = np.linalg.norm(a[:, :, None].astype(np.float64) - b[:, None], p, -1)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    got = rl.cdist(rl.tensor(a), rl.tensor(b), p).numpy()
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(rl.cdist(rl.tensor(a[5]), rl.tensor(b[5]), p).numpy(), got[5])


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]
)
def test_reductions_of_repeated_elements(dtype):
    x = (array(5, 1, 7) * 3).astype(dtype)
    wide, t = np.broadcast_to(x, (5, 40, 7)), rl.from_numpy(x).expand(5, 40, 7)
    for dims in (1, (0, 1), (1, 2), (0, 1, 2), (0, 2)):
        expected = wide.astype(np.float64).sum(dims) if dtype == "float16" else wide.sum(dims)
        tolerance = 2e-3 if dtype == "float16" else 1e-5
        np.testing.assert_allclose(t.sum(dims).numpy(), expected, rtol=tolerance, atol=1e-3)
        np.testing.assert_array_equal(t.any(dims).numpy(), wide.any(dims))
        if dtype != "complex64":
            np.testing.assert_array_equal(t.amax(dims).numpy(), wide.max(dims))
        if dtype in ("float32", "float64", "complex64"):
            np.testing.assert_allclose(t.mean(dims).numpy(), wide.mean(dims), rtol=1e-4, atol=1e-6)
    whole = rl.from_numpy(x[:1, :1, :1].copy()).expand(3, 4, 5)
    np.testing.assert_allclose(whole.sum().numpy(), x[0, 0, 0] * np.asarray(60, "int64"), rtol=2e-3)
    assert rl.zeros(2, 1).expand(2, 0).sum().item() == 0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16"])
@pytest.mark.parametrize("name", ["min", "max", "sum", "amax"])
@pytest.mark.parametrize("width", [449, 512, 700, 1000])
def test_reductions_stay_inside_their_input(dtype, name, width):
    """Results that do not fit one block are computed in parts; none may read past the end of the memory, which is a page
    that cannot be read here."""
    page, numpy_type = mmap.PAGESIZE, np.dtype(dtype)
    size = 3 * 2 * width * numpy_type.itemsize
    pages = -(-size // page)
    memory = mmap.mmap(-1, (pages + 1) * page)
    guard = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + pages * page
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(guard), page, 0) == 0
    array = np.frombuffer(memory, numpy_type, 3 * 2 * width, pages * page - size).reshape(3, 2, width)
    array[...] = np.random.default_rng(0).integers(0, 2, array.shape)
    found = getattr(rl.from_numpy(array), name)(1)
    values = found if isinstance(found, rl.Tensor) else found[0]
    expected = getattr(array, name.removeprefix("a"))(1)
    np.testing.assert_array_equal(values.numpy(), expected)
