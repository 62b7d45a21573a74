"""GEMM, systems of equations and Fourier transforms: sizes at which their algorithms change, against NumPy."""

import itertools
import math

import numpy as np
import pytest

import rushlight as rl
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck


def array(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [33, 36, 37, 49, 50, 65, 68, 100, 241, 400])
def test_products_with_columns_that_stand_over(columns, dtype):
    """Some columns more than whole vectors: sums in several parts, rows that fill no block, rows, columns and matrices
    that are added, strides."""
    for rows, width in ((12, 64), (40, 1030), (401, 130), (800, 64), (800, 700)):
        x, w, b, c = (
            array(*shape, seed=i, dtype=dtype)
            for i, shape in enumerate([(rows, width), (width, columns), (columns,), (rows, columns)])
        )
        want = x.astype(np.float64) @ w.astype(np.float64)
        atol = (1e-5 if dtype == np.float32 else 1e-13) * np.sqrt(width)
        tx, tw, tb, tc = map(rl.tensor, (x, w, b, c))
        transposed = rl.tensor(w.T.copy())
        np.testing.assert_allclose(tx @ tw, want, atol=atol)
        np.testing.assert_allclose(F.linear(tx, transposed), want, atol=atol)
        np.testing.assert_allclose(F.linear(tx, transposed, tb), want + b, atol=atol)
        np.testing.assert_allclose(rl.addmm(tc, tx, tw, beta=0.5, alpha=2), 0.5 * c + 2 * want, atol=4 * atol)
        np.testing.assert_allclose(rl.tensor(x.T.copy()).t() @ tw, want, atol=atol)
        column = rl.tensor(c[:, :1])  # a number for each row
        for left in (tx, rl.tensor(x.T.copy()).t()):
            got = rl.addmm(column, left, tw, beta=0.5, alpha=2)
            np.testing.assert_allclose(got, 0.5 * c[:, :1] + 2 * want, atol=4 * atol)
        spaced = rl.tensor(np.concatenate([x, x], axis=1))[:, :width]
        np.testing.assert_allclose(spaced @ tw, want, atol=atol)
        out = rl.full((rows, columns + 5), 7.0, dtype=tx.dtype)
        rl.mm(tx, tw, out=out[:, :columns])
        np.testing.assert_allclose(out[:, :columns], want, atol=atol)
        assert (out[:, columns:] == 7).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize(
    "m, k, n", [(1, 5, 7), (5, 300, 1), (2, 600, 3), (33, 257, 65), (100, 100, 100), (9, 513, 530), (3, 0, 4)]
)
def test_products_of_integers_wrap(m, k, n, dtype):
    """Lines, blocks that are no whole registers, sums in several parts; values of few bits, and of all of them."""
    rng, full = np.random.default_rng(0), np.iinfo(dtype)
    for low, high in ((max(full.min, -50), 50), (full.min, full.max)):
        a, b, c = (
            rng.integers(low, high, shape, dtype=dtype, endpoint=True) for shape in ((m, k), (k, n), (m, n))
        )
        want = a @ b
        for x in (rl.tensor(a), rl.tensor(a.T.copy()).t()):
            for y in (rl.tensor(b), rl.tensor(b.T.copy()).t()):
                np.testing.assert_array_equal((x @ y).numpy(), want)
                np.testing.assert_array_equal(
                    rl.addmm(rl.tensor(c), x, y, beta=3, alpha=5).numpy(), c * dtype(3) + want * dtype(5)
                )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "m, n", [(2, 2), (3, 3), (4, 4), (8, 8), (3, 1), (1, 8), (2, 4), (8, 3), (1, 2), (5, 8), (4, 3), (7, 6)]
)
def test_many_tiny_matmuls(m, n, dtype):
    for k in (1, 3, 16, 17):
        a, b, c = (array(6, *shape, seed=i, dtype=dtype) for i, shape in enumerate([(m, k), (k, n), (m, n)]))
        want, atol = a.astype(np.float64) @ b, 1e-5 if dtype == np.float32 else 1e-13
        ta, tb, tc = map(rl.tensor, (a, b, c))
        np.testing.assert_allclose(ta @ tb, want, atol=atol)
        transposed = [rl.tensor(np.ascontiguousarray(x.transpose(0, 2, 1))).transpose(1, 2) for x in (a, b)]
        np.testing.assert_allclose(transposed[0] @ transposed[1], want, atol=atol)
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


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.int8, np.uint8])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (2, 2, 2), (3, 5, 4), (4, 4, 4), (1, 9, 7), (7, 3, 8), (9, 9, 9)]
)
def test_many_tiny_matmuls_of_integers(m, k, n, dtype):
    """Whole, broadcast and transposed operands, with an addend; sums wrap."""
    rng = np.random.default_rng(m * k * n)
    a, b, c = (rng.integers(0, 120, s).astype(dtype) for s in [(9, m, k), (9, k, n), (9, m, n)])
    ta, tb, tc = rl.tensor(a), rl.tensor(b), rl.tensor(c)
    want = (a.astype(np.int64) @ b.astype(np.int64)).astype(dtype)
    np.testing.assert_array_equal(rl.bmm(ta, tb), want)
    np.testing.assert_array_equal(rl.bmm(ta.mT.contiguous().mT, tb.mT.contiguous().mT), want)
    np.testing.assert_array_equal(
        rl.matmul(ta, tb[:1]), (a.astype(np.int64) @ b[:1].astype(np.int64)).astype(dtype)
    )
    scaled = (3 * a.astype(np.int64) @ b.astype(np.int64) + 2 * c.astype(np.int64)).astype(dtype)
    np.testing.assert_array_equal(rl.baddbmm(tc, ta, tb, alpha=3, beta=2), scaled)


# GEMMs that the first cache holds, any of the operands transposed; the last columns and the last of the sum are few.
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(5, 7, 5), (17, 33, 17), (13, 1, 18), (32, 32, 32), (12, 128, 49), (64, 70, 66)]
)
def test_batches_of_small_matmuls(m, k, n, dtype):
    a, b = array(6, m, k, dtype=dtype), array(6, k, n, seed=1, dtype=dtype)
    start = array(6, m, n, seed=2, dtype=dtype)
    exact, tolerance = a.astype(np.float64) @ b.astype(np.float64), 1e-4 if dtype == np.float32 else 1e-12
    transposed = [x.swapaxes(1, 2).copy() for x in (a, b)]
    for x, y in itertools.product(
        (rl.tensor(a), rl.tensor(transposed[0]).mT), (rl.tensor(b), rl.tensor(transposed[1]).mT)
    ):
        np.testing.assert_allclose((x @ y).numpy(), exact, rtol=tolerance, atol=tolerance)
        both = rl.baddbmm(rl.tensor(start), x, y, beta=0.5, alpha=-2)
        np.testing.assert_allclose(both.numpy(), 0.5 * start - 2 * exact, rtol=tolerance, atol=2 * tolerance)
        np.testing.assert_allclose((x[0] @ y[0]).numpy(), exact[0], rtol=tolerance, atol=tolerance)
        into = rl.zeros(6, n, m, dtype=x.dtype).mT
        assert rl.equal(rl.bmm(x, y, out=into), into)
        np.testing.assert_allclose(into.numpy(), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [3, 8, 9, 47, 48, 97, 300])
def test_systems_of_every_size(n, dtype):
    """On the stack, by LAPACK, and recursively on GEMM."""
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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(40, 28, 28), (9, 3, 32, 33), (70, 64, 12), (5, 256, 128), (3, 16, 512)])
def test_fft_of_many_images(shape, dtype):
    # images go part by part, and their lines through registers: neither shows in a result
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    z = x + 1j * rng.standard_normal(shape).astype(dtype)
    tolerance = {"rtol": 0, "atol": (1e-6 if dtype == "float32" else 2e-15) * np.prod(shape[-2:]) ** 0.5 * 8}
    real, pairs = rl.tensor(x), rl.tensor(z)
    full = rl.fft.fft2(pairs)
    np.testing.assert_allclose(full, np.fft.fft2(z), **tolerance)
    np.testing.assert_allclose(rl.fft.ifft2(full), z, **tolerance)
    np.testing.assert_allclose(rl.fft.fft2(real), np.fft.fft2(x), **tolerance)
    half = rl.fft.rfft2(real)
    np.testing.assert_allclose(half, np.fft.rfft2(x), **tolerance)
    np.testing.assert_allclose(rl.fft.irfft2(half, s=shape[-2:]), x, **tolerance)
    threads = rl.get_num_threads()
    try:
        for n in (1, 3):
            rl.set_num_threads(n)
            assert rl.equal(rl.fft.fft2(pairs), full)
            assert rl.equal(rl.fft.rfft2(real), half)
    finally:
        rl.set_num_threads(threads)
    assert rl.equal(rl.fft.fft2(pairs[1:2]), full[1:2])


@pytest.mark.parametrize(
    "n", [1, 2, 3, 5, 8, 12, 15, 16, 24, 32, 48, 64, 100, 128, 256, 512, 1000, 2048, 4096, 37]
)
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


@pytest.mark.parametrize(
    "dims", [(0,), (1,), (0, 1), (1, 0), (1, 2), (2, 1), (0, 1, 2), (1, 3), (0, 1, 2, 3)]
)
def test_dimensions_of_one_number_are_their_own_transforms(dims):
    for shape in ((6, 1, 5, 1), (1, 1, 1, 1)):
        x = array(*shape, dtype=np.float64)
        z = x + 1j * array(*shape, seed=1, dtype=np.float64)
        real, whole = rl.tensor(x), rl.tensor(z)
        sizes = [shape[d] for d in dims]
        for norm in ("backward", "ortho", "forward"):
            for got, want in (
                (rl.fft.fftn(whole, dim=dims, norm=norm), np.fft.fftn(z, axes=dims, norm=norm)),
                (rl.fft.ifftn(real, dim=dims, norm=norm), np.fft.ifftn(x, axes=dims, norm=norm)),
                (rl.fft.rfftn(real, dim=dims, norm=norm), np.fft.rfftn(x, axes=dims, norm=norm)),
            ):
                np.testing.assert_allclose(got, want, atol=1e-13)
        half = rl.fft.rfftn(real, dim=dims)
        np.testing.assert_allclose(rl.fft.irfftn(half, s=sizes, dim=dims), x, atol=1e-13)


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (2, 0), (1, 2), (0, 1, 2)])
def test_real_inputs_have_mirrored_spectra(dims):
    x = array(4, 5, 6, dtype=np.float64)
    np.testing.assert_allclose(rl.fft.fftn(rl.tensor(x), dim=dims), np.fft.fftn(x, axes=dims), atol=1e-13)
    np.testing.assert_allclose(rl.fft.ifftn(rl.tensor(x), dim=dims), np.fft.ifftn(x, axes=dims), atol=1e-13)
    assert gradcheck(lambda t: rl.fft.fftn(t, dim=dims), (rl.tensor(x, requires_grad=True),))


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


@pytest.mark.parametrize("k", [1, 7, 8, 16, 33, 64, 1000, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_dot_products(k, dtype):
    rng = np.random.default_rng(k)
    x, y = rng.standard_normal((2, 40, k)).astype(dtype), rng.standard_normal((2, 40, k)).astype(dtype)
    expected = (x.astype(np.float64) * y).sum(-1)
    tolerance = 1e-5 * k**0.5 if dtype == np.float32 else 1e-12 * k
    a, b = rl.tensor(x), rl.tensor(y)
    np.testing.assert_allclose(rl.einsum("bij,bij->bi", a, b).numpy(), expected, atol=tolerance)
    np.testing.assert_allclose((a[..., None, :] @ b[..., None])[..., 0, 0].numpy(), expected, atol=tolerance)
    start = rl.ones(80, 1, 1, dtype=a.dtype)
    sums = rl.baddbmm(start, a.reshape(80, 1, k), b.reshape(80, k, 1), beta=2, alpha=3)
    np.testing.assert_allclose(sums.numpy().reshape(2, 40), 2 + 3 * expected, atol=4 * tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [16384, 16000, 30030, 65540, 50001])
def test_real_results_of_long_lines(n, dtype):
    """Back to real numbers and, by hfft, forward to them; what is imaginary at the ends does not count."""
    half = (array(2, n // 2 + 1, dtype=dtype) + 1j * array(2, n // 2 + 1, seed=1, dtype=dtype)).astype(
        np.complex64 if dtype == np.float32 else np.complex128
    )
    scale = (2e-6 if dtype == np.float32 else 1e-14) * math.sqrt(n) * 4
    wide = rl.tensor(np.repeat(half, 2, axis=1))[:, ::2]
    for x in (rl.tensor(half), wide):
        np.testing.assert_allclose(rl.fft.irfft(x, n=n) * n, np.fft.irfft(half, n=n) * n, rtol=0, atol=scale)
        np.testing.assert_allclose(rl.fft.hfft(x, n=n), np.fft.hfft(half, n=n), rtol=0, atol=scale)
