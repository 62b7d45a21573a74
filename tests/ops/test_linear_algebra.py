"""Systems, decompositions and least squares of the shapes and values that send them along code paths of their own."""

import contextlib
import itertools
import math

import numpy as np
import pytest

import rushlight as rl

DTYPES = [np.float32, np.float64]


def array(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def tolerance(dtype):
    return 2e-4 if dtype == np.float32 else 1e-10


@pytest.fixture
def threads():
    before = rl.get_num_threads()
    yield rl.set_num_threads
    rl.set_num_threads(before)


SHAPES = [
    (48, 48), (60, 55), (55, 60), (200, 64), (64, 200), (70, 1), (1, 70), (3, 4), (20, 2000), (2000, 20), (4000, 60),
    (20000, 1), (1, 20000),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, n", SHAPES)
@pytest.mark.parametrize("driver", ["gelsy", "gels", "gelsd", "gelss"])
def test_least_squares_of_every_shape(m, n, driver, dtype):
    a = array(m, n, dtype=dtype) + 9 * np.eye(m, n, dtype=dtype)
    for k in (1, 3, 20):
        b = array(m, k, seed=1, dtype=dtype)
        expected, residuals = np.linalg.lstsq(a.astype(float), b.astype(float), rcond=None)[:2]
        got = rl.linalg.lstsq(rl.tensor(a), rl.tensor(b), driver=driver)
        np.testing.assert_allclose(got.solution, expected, atol=tolerance(dtype))
        if driver != "gels":
            assert got.rank == min(m, n)
        if driver != "gelsy" and m > n:
            np.testing.assert_allclose(got.residuals, residuals, rtol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "m, n", [(60, 60), (60, 90), (90, 60), (300, 280), (300, 300), (2000, 20), (20, 2000), (4000, 60)]
)
@pytest.mark.parametrize("rank", [0, 1, 7])
def test_least_squares_find_the_rank_and_the_shortest_solution(m, n, rank, dtype):
    a = (array(m, rank, dtype=np.float64) @ array(rank, n, seed=1, dtype=np.float64)).astype(dtype)
    b = array(m, 3, seed=2, dtype=dtype)
    got = rl.linalg.lstsq(rl.tensor(a), rl.tensor(b))
    assert got.rank == rank
    expected = np.linalg.lstsq(a.astype(float), b.astype(float), rcond=1e-5)[0]
    np.testing.assert_allclose(got.solution, expected, atol=tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_rank_follows_rcond(dtype):
    """Values far on either side of the bound, which the condition's estimate alone must not decide."""
    m, n = 120, 80
    u, _ = np.linalg.qr(array(m, n, dtype=np.float64))
    v, _ = np.linalg.qr(array(n, n, seed=1, dtype=np.float64))
    for small in (1, 5, 79):
        s = np.ones(n)
        s[n - small :] = 1e-4
        for a in ((u * s) @ v.T, ((u * s) @ v.T).T):
            x, b = rl.tensor(a.astype(dtype)), rl.ones(len(a), 1, dtype=getattr(rl, np.dtype(dtype).name))
            assert rl.linalg.lstsq(x, b, rcond=1e-6 if dtype == np.float64 else 1e-5).rank == n
            assert rl.linalg.lstsq(x, b, rcond=1e-2).rank == n - small


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("m, n", [(60, 60), (200, 60), (60, 200), (4000, 12)])
def test_least_squares_of_huge_and_tiny_numbers(m, n, scale):
    a, b = array(m, n) + 9 * np.eye(m, n, dtype=np.float32), array(m, 2, seed=1)
    got = rl.linalg.lstsq(rl.tensor(a * np.float32(scale)), rl.tensor(b))
    expected = np.linalg.lstsq(a.astype(float), b.astype(float), rcond=None)[0]
    assert got.rank == min(m, n)
    np.testing.assert_allclose(got.solution.numpy() * scale, expected, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, n", [(512, 32), (3000, 7), (9000, 50), (20000, 1)])
def test_qr_of_tall_matrices(m, n, dtype, threads):
    """By pieces of rows; signs are those that reflections of whole columns give."""
    a = array(m, n, dtype=dtype)
    q, r = (t.numpy() for t in rl.linalg.qr(rl.tensor(a)))
    close = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(q.T.astype(float) @ q, np.eye(n), atol=close)
    np.testing.assert_allclose(q @ r, a, atol=20 * close)
    assert np.array_equal(r, np.triu(r))
    np.testing.assert_allclose(
        r, np.linalg.qr(a.astype(float))[1], atol=2e-3 if dtype == np.float32 else 1e-11
    )
    assert np.array_equal(rl.linalg.qr(rl.tensor(a), mode="r").R, r)
    strided = rl.tensor(np.ascontiguousarray(a.T)).mT
    assert np.array_equal(rl.linalg.qr(strided).Q, q)
    batch = rl.linalg.qr(rl.stack([rl.tensor(a), rl.tensor(-a)]))
    assert np.array_equal(batch.Q[0], q)
    values = np.linalg.svd(a.astype(float), compute_uv=False)
    u, s, vh = (t.numpy() for t in rl.linalg.svd(rl.tensor(a), full_matrices=False))
    for found in (s, rl.linalg.svdvals(rl.tensor(a)).numpy()):
        np.testing.assert_allclose(found, values, rtol=1e-4 if dtype == np.float32 else 1e-11)
    np.testing.assert_allclose(u * s @ vh, a, atol=1e-3 if dtype == np.float32 else 1e-11)
    threads(1)
    assert np.array_equal(rl.linalg.qr(rl.tensor(a)).Q, q)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 7, 17, 97, 200, 530])
def test_triangular_systems_of_every_width(n, dtype):
    for k, upper, unit in itertools.product((1, 2, 17, 70), (False, True), (False, True)):
        t = array(n, n, seed=n, dtype=dtype) / n + (0 if unit else 2) * np.eye(n, dtype=dtype)
        b = array(n, k, seed=k, dtype=dtype)
        whole = np.triu(t) if upper else np.tril(t)
        if unit:
            np.fill_diagonal(whole, 1)
        expected = np.linalg.solve(whole.astype(float), b.astype(float))
        for a in (rl.tensor(t), rl.tensor(np.ascontiguousarray(t.T)).mT):
            for right in (rl.tensor(b), rl.tensor(np.ascontiguousarray(b.T)).mT):
                x = rl.linalg.solve_triangular(a, right, upper=upper, unitriangular=unit)
                np.testing.assert_allclose(x, expected, atol=tolerance(dtype))
        x = rl.linalg.solve_triangular(
            rl.tensor(t), rl.tensor(b.T.copy()), upper=upper, left=False, unitriangular=unit
        )
        np.testing.assert_allclose(x.numpy() @ whole, b.T, atol=tolerance(dtype))


@pytest.mark.skipif(
    rl.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2"), reason="BLAS multiplies by inf instead"
)
def test_triangular_systems_divide_by_tiny_and_huge_numbers():
    a = rl.diag(rl.tensor([1e-41, 1e38, 0.0, math.inf, 2.0]))
    b = rl.tensor([[1e-41], [1e38], [1.0], [1.0], [3.0]]).expand(5, 3).contiguous()
    for right in (b, b[:, :1]):
        x = rl.linalg.solve_triangular(a, right, upper=False)[:, 0].tolist()
        assert x[:2] == [1, 1] and x[2] == math.inf


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [4, 9, 16, 33])
def test_batches_of_small_systems(n, dtype):
    a = array(30, n, n, dtype=dtype) + 3 * np.eye(n, dtype=dtype)
    spd = a @ a.swapaxes(-1, -2) + n * np.eye(n, dtype=dtype)
    t, p = rl.tensor(a), rl.tensor(spd)
    for k in (1, 4, 9):
        b = array(30, n, k, seed=1, dtype=dtype)
        expected = np.linalg.solve(a.astype(float), b.astype(float))
        close = {"rtol": 1e-2, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-8, "atol": 1e-10}
        np.testing.assert_allclose(rl.linalg.solve(t, rl.tensor(b)), expected, **close)
        lu, pivots = rl.linalg.lu_factor(t)
        np.testing.assert_allclose(rl.linalg.lu_solve(lu, pivots, rl.tensor(b)), expected, **close)
        adjoint = np.linalg.solve(a.swapaxes(-1, -2).astype(float), b.astype(float))
        np.testing.assert_allclose(
            rl.linalg.lu_solve(lu, pivots, rl.tensor(b), adjoint=True), adjoint, **close
        )
        for upper in (False, True):
            c = rl.linalg.cholesky(p, upper=upper)
            x = rl.cholesky_solve(rl.tensor(b), c, upper=upper)
            np.testing.assert_allclose(p @ x, b, atol=1e-3)
    np.testing.assert_allclose(rl.linalg.det(t), np.linalg.det(a.astype(float)), rtol=1e-3)
    np.testing.assert_allclose(t @ rl.linalg.inv(t), np.broadcast_to(np.eye(n), a.shape), atol=1e-3)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("m, n", [(4, 4), (20, 20), (60, 60), (200, 60), (60, 200), (3000, 12), (12, 3000)])
def test_numbers_that_are_none_end(m, n, bad):
    """Results may be anything, or an error that says so; no crash, and an end."""
    a = rl.tensor(array(m, n))
    a[m // 2, n // 2] = bad
    b = rl.tensor(array(m, 2, seed=1))
    for driver in ("gelsy", "gels"):
        with contextlib.suppress(rl.linalg.LinAlgError):
            got = rl.linalg.lstsq(a, b, driver=driver)
            if bad == math.inf and driver == "gelsy":  # measured by infinity, all elements are zero
                assert got.rank == 0 and not got.solution.any()
            else:
                assert not got.solution.isfinite().all()
    assert not rl.linalg.qr(a).R.isfinite().all()
    if m == n:
        x = rl.linalg.solve_ex(a, b)[0]  # elimination may go round infinity, never round NaN
        assert bad == math.inf or not x.isfinite().all()
        x = rl.linalg.solve_triangular(a.triu(), b, upper=True)  # infinity on the diagonal gives a zero
        assert bool(x.isfinite().all()) == (bad == math.inf)


def test_empty_ones():
    for m, n, k in itertools.product((0, 3, 60), repeat=3):
        got = rl.linalg.lstsq(rl.zeros(m, n), rl.zeros(m, k))
        assert got.solution.shape == (n, k) and got.rank == 0
        assert rl.linalg.lstsq(rl.zeros(0, m, n), rl.zeros(0, m, k)).solution.shape == (0, n, k)
        q, r = rl.linalg.qr(rl.zeros(2, m, n))
        assert q.shape == (2, m, min(m, n)) and r.shape == (2, min(m, n), n)
        assert rl.linalg.solve_triangular(rl.eye(m), rl.zeros(m, k), upper=True).shape == (m, k)
    assert rl.linalg.qr(rl.zeros(0, 5000, 20)).Q.shape == (0, 5000, 20)
    assert rl.linalg.qr(rl.zeros(5000, 0)).Q.shape == (5000, 0)
    assert rl.linalg.solve(rl.zeros(0, 4, 4), rl.zeros(0, 4, 2)).shape == (0, 4, 2)


@pytest.mark.parametrize("m, n", [(300, 300), (300, 100), (100, 300), (5000, 30)])
def test_bits_are_those_of_one_thread(m, n, threads):
    a, b, square = (rl.tensor(array(*s, seed=i)) for i, s in enumerate(((m, n), (m, 70), (300, 300))))
    found = []
    for count in (1, 2, 5):
        threads(count)
        x = rl.linalg.lstsq(a, b).solution
        packed, tau = rl.geqrf(a)
        y = rl.linalg.solve_triangular(square.triu() + 20 * rl.eye(300), rl.ones(300, 130), upper=True)
        found.append((x, packed, y, rl.ormqr(packed, tau, b, transpose=True), rl.linalg.svdvals(a)))
    for other in found[1:]:
        assert all(rl.equal(one, two) for one, two in zip(found[0], other, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m, k", [(60, 60), (200, 50), (40, 30)])
def test_products_with_reflections_on_both_sides(m, k, dtype):
    packed, tau = rl.geqrf(rl.tensor(array(m, k, dtype=dtype)))
    q = rl.linalg.householder_product(
        rl.cat([packed, rl.zeros(m, m - k, dtype=packed.dtype)], 1), tau
    )  # the whole Q
    for columns in (1, 4, 7, 60):
        c = rl.tensor(array(m, columns, seed=1, dtype=dtype))
        close = {"atol": 1e-4 if dtype == np.float32 else 1e-12}
        np.testing.assert_allclose(rl.ormqr(packed, tau, c), q @ c, **close)
        np.testing.assert_allclose(rl.ormqr(packed, tau, c, transpose=True), q.mT @ c, **close)
        np.testing.assert_allclose(rl.ormqr(packed, tau, c.mT, left=False), c.mT @ q, **close)
        np.testing.assert_allclose(
            rl.ormqr(packed, tau, c.mT, left=False, transpose=True), c.mT @ q.mT, **close
        )


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: rl.addmm(rl.ones(1), rl.ones(2, 3), rl.ones(4, 2)), r"\(2x3 and 4x2\)"),
        (
            lambda: rl.baddbmm(rl.ones(1, 2, 2).int(), rl.ones(1, 2, 2), rl.ones(1, 2, 2)),
            "dtypes must be the same",
        ),
        (lambda: rl.linalg.multi_dot([rl.ones(2, 2, 2), rl.ones(2, 2)]), "the first tensor must be 1D or 2D"),
        (
            lambda: rl.linalg.lu_solve(rl.eye(2), rl.tensor([0, 1]).int(), rl.ones(2, 1)),
            "greater or equal to 1",
        ),
        (lambda: rl.solve(rl.ones(2, 1), rl.eye(2)), "deprecated since version 1.9 and is now removed"),
    ],
)
def test_words_of_errors_that_programs_search_for(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()


@pytest.mark.parametrize(
    "vectors",
    [
        lambda a: rl.linalg.eig(a).eigenvectors,
        lambda a: rl.linalg.eigh(a + a.mH).eigenvectors,
        lambda a: rl.linalg.svd(a).U,
    ],
)
def test_functions_of_the_angles_of_vectors_have_no_gradient(vectors):
    values = array(3, 3, dtype=np.float64) + 1j * array(3, 3, seed=1, dtype=np.float64)
    a = rl.tensor(values, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"specified up to multiplication by e\^\{i phi\}.*ill-defined"):
        vectors(a).sum().abs().backward()
    vectors(a).abs().sum().backward()
    assert a.grad.abs().max() > 0


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda a: rl.linalg.lstsq(rl.ones(3, 2), rl.ones(2)),
            r"input.size\(-2\) should match other.size\(-1\)",
        ),
        (lambda a: rl.linalg.matrix_norm(a, 1 + 2j), "Expected a non-complex scalar"),
        (lambda a: rl.linalg.norm(rl.ones(3), "fro"), "A must have at least 2 dimensions"),
        (
            lambda a: rl.linalg.multi_dot([a, a], out=rl.ones(2, 2).double()),
            "expected out tensor to have dtype",
        ),
        (lambda a: rl.einsum("ij,. ..", a, a), r"found '.' for operand 1 that is not part of any ellipsis"),
        (
            lambda a: rl.linalg.lu_solve(a, rl.tensor([3, 1]).int(), rl.ones(2, 1)),
            r"smaller or equal to LU.size\(-2\)",
        ),
        (lambda a: a.eig(), "deprecated since version 1.9 and is now removed"),
        (lambda a: a.solve(a), "deprecated since version 1.9 and is now removed"),
    ],
)
def test_more_words_of_errors(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(rl.eye(2))


def test_products_with_none_for_the_identity():
    from rushlight import _linalg_utils as utils

    a, s = rl.tensor(array(3, 3)), rl.tensor(array(3, 2, seed=1))
    assert utils.matmul(None, s) is s
    assert rl.allclose(utils.qform(a, s), s.T @ a @ s, atol=1e-5)
    assert rl.allclose(utils.matmul(a.to_sparse(), s), a @ s, atol=1e-5)
    values, vectors = utils.symeig(a + a.T, largest=True)
    assert values[0] >= values[-1] and rl.allclose((a + a.T) @ vectors, vectors * values, atol=1e-4)
