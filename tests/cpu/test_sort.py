"""Sorting, selecting and counting kernels: lengths and types at which their algorithms change, against NumPy."""

import itertools
import math

import numpy as np
import pytest

import rushlight as rl


def array(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


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
    values, positions = rl.tensor(x).topk(k, 1, largest=largest)
    order = np.sort(x, 1)  # NaN last
    expected = order[:, ::-1][:, :k] if largest else order[:, :k]
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(rl.tensor(x).gather(1, positions), expected)


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
            values, positions = t.topk(k, dim, largest=largest)
            expected, first = t.sort(dim=dim, descending=largest, stable=True)
            assert np.array_equal(
                values.double().numpy(), expected.narrow(dim, 0, k).double().numpy(), equal_nan=True
            )
            assert k > 32 or rl.equal(positions, first.narrow(dim, 0, k))


@pytest.mark.parametrize("n", [511, 512, 5000, 70_000])
def test_sorting_elements_of_64_bits(n):
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
        values, positions = rl.sort(rl.tensor(x), stable=True)
        order = np.argsort(x, kind="stable")
        np.testing.assert_array_equal(positions, order)
        assert values.numpy().tobytes() == x[order].tobytes()
        values, positions = rl.sort(rl.tensor(x), stable=True, descending=True)
        backwards = n - 1 - np.argsort(x[::-1], kind="stable")[::-1]
        np.testing.assert_array_equal(positions, backwards)
        assert values.numpy().tobytes() == x[backwards].tobytes()
        np.testing.assert_array_equal(rl.tensor(np.stack([x, x], 1)).sort(0).indices[:, 1], order)


# A handful of elements is ranked, short rows and long ones are sorted: at the sizes where the algorithm changes.
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 17, 32, 33, 48, 49, 64, 65])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_order_of_short_rows(n, dtype):
    a = np.round(2 * array(90, n)).astype(dtype)
    if dtype != np.int64:
        a[1::7, n // 2] = math.nan
    x, positions = rl.tensor(a), np.argsort(a, 1, kind="stable")
    values, indices = x.sort(dim=1, stable=True)
    np.testing.assert_array_equal(indices.numpy(), positions)
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
        values_found, counts = np.unique(row, return_counts=True)
        assert value == values_found[counts.argmax()]


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
            value, position = rl.kthvalue(rl.tensor(x), k)
            assert position.item() == order[k - 1]
            np.testing.assert_equal(value.numpy(), x[order[k - 1]])
        columns = rl.kthvalue(rl.tensor(np.stack([x, x], 1)), n // 3, dim=0).indices
        assert columns.tolist() == [order[n // 3 - 1]] * 2
        np.testing.assert_equal(
            rl.nanmedian(rl.tensor(x)).numpy(), np.sort(x[x == x])[(np.sum(x == x) - 1) // 2]
        )


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


@pytest.mark.parametrize("n", [1, 31, 49, 64, 65, 1000, 5001])
@pytest.mark.parametrize("kind", ["random", "rising", "falling", "ties", "nan"])
def test_running_extremes_of_long_rows(n, kind):
    x = np.random.default_rng(n).standard_normal((3, n)).astype(np.float32)
    x = {"rising": np.sort(x), "falling": -np.sort(x), "ties": np.round(x)}.get(kind, x)
    if kind == "nan" and n > 40:
        x[1, 40], x[1, -1], x[2, 0] = np.nan, np.nan, np.nan
    for name, better in (("cummax", np.greater_equal), ("cummin", np.less_equal)):
        best, position = x[:, 0].copy(), np.zeros(3, np.int64)
        values, positions = np.empty_like(x), np.empty(x.shape, np.int64)
        for i in range(n):
            take = (better(x[:, i], best) & ~np.isnan(best)) | np.isnan(x[:, i])
            best, position = np.where(take, x[:, i], best), np.where(take, i, position)
            values[:, i], positions[:, i] = best, position
        got = getattr(rl.tensor(x), name)(1)
        np.testing.assert_array_equal(got.values.numpy(), values)
        np.testing.assert_array_equal(got.indices.numpy(), positions)
        got = getattr(rl.tensor(x.T.copy()).T, name)(1)
        np.testing.assert_array_equal(got.indices.numpy(), positions)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize(
    ("n", "low", "high"), [(600, 0, 3), (70000, -100, 100), (140000, -30000, 30000), (9, 5, 6)]
)
def test_sorting_integers_that_lie_close_together(dtype, n, low, high):
    low, high = (0, min(high, 255)) if dtype == "uint8" else (low, high)
    x = np.random.default_rng(n).integers(low, high, n).astype(dtype)
    for descending in (False, True):
        order = np.argsort(-x.astype(np.int64) if descending else x, kind="stable")
        values, indices = rl.tensor(x).sort(stable=True, descending=descending)
        np.testing.assert_array_equal(values.numpy(), x[order])
        np.testing.assert_array_equal(indices.numpy(), order)
    in_place = rl.tensor(x)
    rl.sort(in_place, out=(in_place, rl.empty(n, dtype=rl.int64)))
    np.testing.assert_array_equal(in_place.numpy(), np.sort(x))


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
@pytest.mark.parametrize(
    ("n", "low", "high"), [(0, 0, 1), (1, 7, 8), (5, -3, 9), (40000, 0, 100), (40000, -(2**15), 2**15)]
)
def test_different_labels(dtype, n, low, high):
    x = np.random.default_rng(n).integers(low, high, n).astype(dtype)
    if dtype == "int64" and n > 1:
        x = np.concatenate([x, x + np.int64(2**62)]) if n == 5 else x
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    got = rl.unique(rl.tensor(x), return_inverse=True, return_counts=True)
    for mine, theirs in zip(got, (values, inverse, counts), strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs)


@pytest.mark.parametrize("n", [2049, 10000, 70001])
@pytest.mark.parametrize("kind", ["random", "half zeros", "few values", "nan"])
def test_medians_of_long_rows_with_ties(n, kind):
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    x = {"half zeros": np.maximum(x, 0), "few values": np.round(x)}.get(kind, x)
    if kind == "nan":
        x[::7] = np.nan
        assert rl.tensor(x).median().isnan()
        kept = np.sort(x[~np.isnan(x)])
        assert rl.tensor(x).nanmedian().item() == kept[(len(kept) - 1) // 2]
        return
    ordered = np.sort(x)
    assert rl.tensor(x).median().item() == ordered[(n - 1) // 2]
    assert rl.tensor(np.stack([x, x], 1)).median(0).values.tolist() == [ordered[(n - 1) // 2]] * 2
    assert rl.tensor(x).kthvalue(n // 3).values.item() == ordered[n // 3 - 1]


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_histograms(n, dtype):
    x = np.random.default_rng(n).standard_normal(n).astype(dtype)
    inside = x[(x >= -1) & (x <= 1)]
    assert rl.histc(rl.tensor(x), 8, -1, 1).tolist() == np.histogram(inside, 8, (-1, 1))[0].tolist()
    if n > 1:
        x[0], x[1] = np.nan, 1.0
        counts = rl.histc(rl.tensor(x), 8, -1, 1)
        assert counts.sum().item() == ((x >= -1) & (x <= 1)).sum()
        assert counts[-1].item() == ((x >= 0.75) & (x <= 1)).sum()


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.float16])
def test_mode_among_nans(dtype):
    """What PyTorch finds: a NaN equals nothing, and what stands on both sides of one is not compared."""
    nan = float("nan")
    rows = {
        (nan, 1, 1, 2): (1, 2),
        (1, nan, nan, nan, 2): (1, 0),
        (5, 5, nan, 4, 4): (5, 1),
        (nan, 5, 4): (nan, 0),
        (nan, nan, 1): (nan, 0),
        (3, 3, nan, nan, 1): (3, 1),
    }
    for row, (value, position) in rows.items():
        values, indices = rl.tensor(row, dtype=dtype).mode()
        assert indices.item() == position and repr(values.item()) == repr(float(value))
