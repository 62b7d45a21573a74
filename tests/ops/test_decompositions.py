"""Decompositions along each of their paths, against NumPy in double precision, and with the same bits for every number
of threads."""

import numpy as np
import pytest

import rushlight as rl

real = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def array(*shape, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def for_all_threads(f):
    """The results of f as arrays of double precision."""
    before = rl.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            rl.set_num_threads(threads)
            results = f()
            results = results if isinstance(results, tuple) else (results,)
            found.append([t.numpy() for t in results])
    finally:
        rl.set_num_threads(before)
    for other in found[1:]:
        for x, y in zip(found[0], other, strict=True):
            assert np.array_equal(x, y, equal_nan=True)
    return [x.astype(np.float64) if x.dtype == np.float32 else x for x in found[0]]


def symmetric_matrices(n):
    a = array(n, n)
    q = np.linalg.qr(a)[0]
    off = np.diag(np.ones(n - 1), 1)
    yield "gauss", a + a.T
    yield "unit", np.eye(n)
    yield "ones", np.ones((n, n))
    yield "diagonal", np.diag(np.arange(n) + 1.0)
    yield "one vector", np.outer(a[0], a[0])
    yield "cluster", (q * np.r_[np.ones(n // 2), 2 + 1e-6 * np.arange(n - n // 2)]) @ q.T
    yield "graded", (q * 10.0 ** (-8 * np.arange(n) / n)) @ q.T
    yield "pairs", np.diag(np.abs(np.arange(n) - n // 2) + 0.0) + off + off.T
    yield "two blocks", np.kron(np.eye(2), (a + a.T)[: n // 2, : n // 2])
    yield "small", (a + a.T) * 1e-9
    yield "tiny", (a + a.T) * 1e-30


@real
@pytest.mark.parametrize("n", [33, 48, 65, 130, 200])
def test_eigenvectors(n, dtype):
    eps = np.finfo(dtype).eps
    for name, a in symmetric_matrices(n):
        a = a.astype(dtype)
        a = np.tril(a) + np.tril(a, -1).T
        exact = a.astype(np.float64)
        expected = np.linalg.eigvalsh(exact)
        close = {"atol": (n + 50) * eps * np.abs(expected).max(), "rtol": 0, "err_msg": name}
        junk = rl.tensor(np.tril(a) + np.triu(np.full_like(a, np.nan), 1))  # only one half is read
        values, vectors = for_all_threads(lambda junk=junk: tuple(rl.linalg.eigh(junk)))
        assert (np.diff(values) >= 0).all(), name
        np.testing.assert_allclose(values, expected, **close)
        np.testing.assert_allclose(exact @ vectors, vectors * values, **close)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(a)), atol=(n + 50) * eps, err_msg=name)
        (alone,) = for_all_threads(lambda junk=junk: rl.linalg.eigvalsh(junk))
        np.testing.assert_allclose(alone, expected, **close)
        upper = rl.linalg.eigvalsh(rl.tensor(np.triu(a)), UPLO="U").numpy()
        np.testing.assert_allclose(upper, expected, **close)


@real
@pytest.mark.parametrize("m, n", [(48, 48), (65, 60), (60, 65), (200, 200), (150, 60), (60, 150), (900, 50)])
def test_singular_vectors(m, n, dtype):
    eps = np.finfo(dtype).eps
    whole = array(m, n)
    low = array(m, 9, seed=1) @ array(9, n, seed=2)
    for a in (whole, low, np.ones((m, n)), np.eye(m, n), whole * 1e30, whole * 1e-30):
        a = a.astype(dtype)
        exact = a.astype(np.float64)
        expected = np.linalg.svd(exact, compute_uv=False)
        close = {"atol": (max(m, n) + 50) * eps * expected[0], "rtol": 0}
        for full in (False, True):
            u, s, vh = for_all_threads(lambda a=a, full=full: tuple(rl.linalg.svd(rl.tensor(a), full)))
            k = min(m, n)
            np.testing.assert_allclose(s, expected, **close)
            np.testing.assert_allclose((u[:, :k] * s) @ vh[:k], exact, **close)
            np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=(m + 50) * eps)
            np.testing.assert_allclose(vh @ vh.T, np.eye(vh.shape[0]), atol=(n + 50) * eps)
        (values,) = for_all_threads(lambda a=a: rl.linalg.svdvals(rl.tensor(a)))
        np.testing.assert_allclose(values, expected, **close)


@real
@pytest.mark.parametrize("m, n", [(200, 200), (260, 200), (200, 260), (193, 700), (320, 320)])
def test_elimination_in_blocks(m, n, dtype):
    eps = np.finfo(dtype).eps
    a = array(m, n, dtype=dtype)
    p, low, up = for_all_threads(lambda: tuple(rl.linalg.lu(rl.tensor(a))))
    np.testing.assert_allclose(p @ low @ up, a, atol=m * n * eps)
    assert np.abs(low).max() <= 1
    # Columns of zeros and of equal elements: info tells the first one that is left without a pivot.
    b = a.copy()
    b[:, 130] = b[:, 3]
    b[:, 150] = 0
    info = rl.linalg.lu_factor_ex(rl.tensor(np.round(b * 4) * (np.arange(n) != 70))).info
    assert info == 71
    b = np.full((m, n), np.nan, dtype)
    assert np.isnan(rl.linalg.lu_factor_ex(rl.tensor(b)).LU.numpy()).all()


@real
@pytest.mark.parametrize("n", [200, 333])
def test_positive_matrices_in_blocks(n, dtype):
    a = array(n, n, dtype=dtype)
    s = a @ a.T / n + np.eye(n, dtype=dtype)
    for upper, transposed in ((False, False), (False, True), (True, False), (True, True)):
        t = rl.tensor(s)
        t = t.mT.contiguous().mT if transposed else t
        (c,) = for_all_threads(lambda t=t, upper=upper: rl.linalg.cholesky(t, upper=upper))
        c = c.T if upper else c
        assert not np.triu(c, 1).any()
        np.testing.assert_allclose(c @ c.T, s, atol=n * np.finfo(dtype).eps * 10)
    for bad in (0, 63, 64, 130, n - 1):
        t = rl.tensor(s)
        t[bad, bad] = -1
        assert rl.linalg.cholesky_ex(t).info == bad + 1


@real
@pytest.mark.parametrize("m, n", [(60, 60), (220, 200), (150, 400), (400, 150)])
def test_least_squares_of_every_rank(m, n, dtype):
    for rank in (1, 17, min(m, n) // 2, min(m, n)):
        a = (array(m, rank) @ array(rank, n, seed=1)).astype(dtype)
        if rank == min(m, n):
            a = (array(m, n) + 9 * np.eye(m, n)).astype(dtype)
        b = array(m, 3, seed=2, dtype=dtype)
        got = rl.linalg.lstsq(rl.tensor(a), rl.tensor(b))
        u, s, vh = np.linalg.svd(a.astype(np.float64), full_matrices=False)
        expected = vh[:rank].T @ (u[:, :rank].T @ b / s[:rank, None])
        assert got.rank == rank
        limit = 300 * np.finfo(dtype).eps * s[0] / s[rank - 1] * np.abs(expected).max()
        np.testing.assert_allclose(got.solution.numpy(), expected, atol=limit)
        (same,) = for_all_threads(lambda a=a, b=b: rl.linalg.lstsq(rl.tensor(a), rl.tensor(b)).solution)
        assert np.array_equal(same, got.solution.numpy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("n", range(1, 10))
def test_batches_of_small_matrices(n, dtype):
    a = array(50, n, n).astype(dtype)
    if np.iscomplexobj(a):
        a = a + 1j * array(50, n, n, seed=1).astype(dtype)
    s = a @ a.conj().swapaxes(1, 2) + np.eye(n, dtype=dtype)
    eps = np.finfo(dtype).eps
    for upper in (False, True):
        c = rl.linalg.cholesky(rl.tensor(s), upper=upper).numpy()
        expected = np.linalg.cholesky(s)
        expected = expected.conj().swapaxes(1, 2) if upper else expected
        np.testing.assert_allclose(c, expected, atol=200 * eps)
    s[7, n - 1, n - 1] = -1
    info = rl.linalg.cholesky_ex(rl.tensor(s)).info.numpy()
    assert info[7] == n
    assert np.count_nonzero(info) == 1
    inverse = rl.linalg.inv(rl.tensor(a)).numpy()
    limit = 100 * eps * np.linalg.cond(a).max()
    np.testing.assert_allclose(inverse @ a, np.broadcast_to(np.eye(n), a.shape), atol=limit)
    for x in (a, a[:, :, : (n + 1) // 2], a[:, : (n + 1) // 2], a * 0, a * 1e-30):
        for mode in ("reduced", "complete"):
            q, r = (t.numpy() for t in rl.linalg.qr(rl.tensor(x), mode=mode))
            np.testing.assert_allclose(q @ r, x, atol=50 * eps * max(1e-35, np.abs(x).max()))
            unit = np.broadcast_to(np.eye(q.shape[-1]), (50, q.shape[-1], q.shape[-1]))
            np.testing.assert_allclose(q.conj().swapaxes(1, 2) @ q, unit, atol=50 * eps)


@real
def test_nothing_finite_in_large_matrices(dtype):
    """Values that no algorithm converges with end in an error or in NaN, not in a hang."""
    a = array(60, 60, dtype=dtype)
    a[3, 5] = a[5, 3] = np.nan
    t = rl.tensor(a + a.T)
    assert np.isnan(rl.linalg.inv(t).numpy()).any()
    for f in (rl.linalg.svdvals, rl.linalg.eigvalsh, rl.linalg.eigh, rl.linalg.svd):
        try:
            result = f(t)
        except rl.linalg.LinAlgError:
            continue
        result = result if isinstance(result, tuple) else (result,)
        assert any(np.isnan(x.numpy()).any() for x in result)
