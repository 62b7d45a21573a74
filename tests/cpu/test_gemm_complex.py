"""GEMMs of complex matrices, chains of them and reflections of small matrices, against NumPy."""

import itertools

import numpy as np
import pytest

import rushlight as rl


def values(*shape, seed=0, dtype=np.complex64):
    parts = np.random.default_rng(seed).standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1]).astype(dtype)


def near(got, want, dtype):
    tolerance = 1e-5 if dtype in (np.complex64, np.float32) else 1e-13
    np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=tolerance * (1 + np.abs(want).max(initial=0)))


SIZES = [
    *itertools.product([1, 6, 13, 33], [3, 5, 17, 40], [4, 9, 130]),
    (100, 41, 67),
    (64, 64, 2500),
    (70, 1100, 300),
    (0, 5, 5),
    (8, 0, 8),
    (8, 8, 0),
]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_products_of_complex_matrices(m, n, k, dtype):
    """Both operands as they are and transposed, with strides, with scalars and addends of every kind."""
    a, b, c = (
        values(m, k, dtype=dtype),
        values(k, n, seed=1, dtype=dtype),
        values(m, n, seed=2, dtype=dtype),
    )
    want = a.astype(np.complex128) @ b.astype(np.complex128)
    add, transposed_add = rl.tensor(c), rl.tensor(c.T.copy()).t()
    for left, right in itertools.product((0, 1, 2), (0, 1, 2)):
        x, y = (_laid_out(z, layout) for z, layout in ((a, left), (b, right)))
        near(x @ y, want, dtype)
        near(rl.addmm(add, x, y, beta=0.5, alpha=2 - 1j), 0.5 * c + (2 - 1j) * want, dtype)
        near(rl.addmm(transposed_add, x, y, beta=0.5 + 2j), (0.5 + 2j) * c + want, dtype)
    if m and n:
        near(rl.addmm(add[0], rl.tensor(a), rl.tensor(b)), c[0] + want, dtype)
        out = rl.empty(n, m, dtype=add.dtype).t()
        near(rl.mm(rl.tensor(a), rl.tensor(b), out=out), want, dtype)


def _laid_out(x, layout):
    if layout == 0:
        return rl.tensor(x)
    if layout == 1:
        return rl.tensor(x.T.copy()).t()
    return rl.tensor(np.repeat(x, 2, axis=1))[:, ::2]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("size", [4, 7, 12, 16, 33])
def test_batches_of_complex_matmuls(size, dtype):
    a, b = values(5, size, 9, dtype=dtype), values(5, 9, size, seed=1, dtype=dtype)
    add = values(5, size, size, seed=2, dtype=dtype)
    near(rl.tensor(a) @ rl.tensor(b), a @ b, dtype)
    near(rl.tensor(a).conj() @ rl.tensor(b), a.conj() @ b, dtype)
    near(rl.tensor(b.swapaxes(1, 2).copy()) @ rl.tensor(b), b.swapaxes(1, 2) @ b, dtype)
    near(rl.baddbmm(rl.tensor(add), rl.tensor(a), rl.tensor(b), beta=1j), 1j * add + a @ b, dtype)
    near(rl.tensor(a) @ rl.tensor(b[0]), a @ b[0], dtype)


def test_complex_products_keep_what_is_not_finite_in_its_row():
    a, b = values(12, 12), values(12, 12, seed=1)
    a[3, 4] = np.nan
    got = (rl.tensor(a) @ rl.tensor(b)).numpy()
    assert np.isnan(got[3]).all() and np.isfinite(np.delete(got, 3, 0)).all()


@pytest.mark.parametrize(
    "sizes", [(3, 4, 5), (7, 2, 9, 4), (4, 30, 2, 11, 6), (1, 8, 1, 8, 3, 2), (2, 0, 3, 4)]
)
def test_chains_of_matmuls(sizes):
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal(s) for s in itertools.pairwise(sizes)]
    want = parts[0]
    for p in parts[1:]:
        want = want @ p
    near(rl.linalg.multi_dot([rl.tensor(p) for p in parts]), want, np.float64)
    near(rl.chain_matmul(*[rl.tensor(p) for p in parts]), want, np.float64)
    ends = [parts[0][0], *parts[1:-1], parts[-1][:, 0]] if len(parts) > 1 else parts
    got = rl.linalg.multi_dot([rl.tensor(p) for p in ends])
    assert got.shape == ()
    near(got, want[0, 0], np.float64)


def test_chains_that_do_not_fit():
    one = rl.ones(2, 3)
    for wrong, message in (
        ([one], "at least 2 tensors"),
        ([one, one], "cannot be multiplied"),
        ([one, rl.ones(3), rl.ones(3, 2)], "tensor 1 must be 2D"),
        ([one, rl.ones(3, 2, dtype=rl.float64)], "same dtype"),
    ):
        with pytest.raises(RuntimeError, match=message):
            rl.linalg.multi_dot(wrong)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(4, 15, 15), (9, 9), (12, 3), (3, 12), (31, 32), (33, 20), (100, 30), (20, 120), (2, 40, 9)]
)
def test_reflections_one_by_one(shape, dtype):
    """QR in every mode, and the products of its reflections, of matrices that are too small for blocks."""
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    x = rl.tensor(a)
    m, n = shape[-2:]
    k = min(m, n)
    for mode in ("reduced", "complete"):
        q, r = rl.linalg.qr(x, mode=mode)
        near(q @ r, a, dtype)
        width = q.shape[-1]
        assert width == (m if mode == "complete" else k)
        near(q.mT @ q, np.broadcast_to(np.eye(width), (*shape[:-2], width, width)), dtype)
        near(r, np.triu(r.numpy()), dtype)
        near(rl.linalg.qr(x, mode="r")[1], r.numpy()[..., :k, :], dtype)
    packed, tau = rl.geqrf(x)
    near(packed.triu()[..., :k, :], r.numpy()[..., :k, :], dtype)
    near(rl.linalg.householder_product(packed[..., :k], tau), q.numpy()[..., :k], dtype)
    near(rl.ormqr(packed[..., :k], tau, x, transpose=True), r.numpy(), dtype)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 17, 31, 32, 33, 67, 1000, 40000])
def test_sums_and_products_of_rows_of_complex_numbers(n, dtype):
    rows = 13 if n < 1000 else 2
    x = values(rows, n, dtype=dtype)
    ones = np.exp(1j * np.angle(x)).astype(dtype)  # whose products stay near the unit circle
    for got, want in (
        (rl.tensor(x).sum(1), x.astype(np.complex128).sum(1)),
        (rl.tensor(x).mean(1), x.astype(np.complex128).mean(1)),
        (rl.tensor(ones).prod(1), ones.astype(np.complex128).prod(1)),
        (rl.tensor(ones).t().contiguous().t().prod(1), ones.astype(np.complex128).prod(1)),
    ):
        tolerance = 3e-7 if dtype is np.complex64 else 3e-15
        np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=tolerance * (4 + n / 4))
    for r in range(rows):  # a row gives the same bits alone
        assert rl.equal(rl.tensor(x).sum(1)[r], rl.tensor(x[r]).sum())
    assert (
        rl.tensor(x[:, :0]).prod(1).tolist() == [1] * rows
        and rl.tensor(x[:, :0]).sum(1).tolist() == [0] * rows
    )
