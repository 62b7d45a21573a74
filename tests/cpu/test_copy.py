"""Copies and repetitions: lengths and alignments around registers, pages and pieces, against NumPy."""

import numpy as np
import pytest

import rushlight as rl

LENGTHS = [0, 1, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 256, 257, 300, 1023, 4097, 70001]


def array(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
def test_copies_between_any_alignments(n, dtype):
    source = rl.from_numpy((array(n + 40) * 50).astype(dtype))
    for start, to in ((0, 0), (1, 0), (0, 1), (3, 7), (33, 2)):
        target = rl.zeros(n + 40, dtype=getattr(rl, dtype))
        target[to : to + n].copy_(source[start : start + n])
        expected = np.zeros(n + 40, dtype=dtype)
        expected[to : to + n] = source.numpy()[start : start + n]
        assert (target.numpy() == expected).all()


@pytest.mark.parametrize("shape", [(5000,), (3, 1100), (1100, 3), (17, 33, 65)])
def test_rolled_and_cut_rows(shape):
    x = array(*shape)
    t = rl.from_numpy(x)
    for shift in (0, 1, 3, -5):
        assert (t.roll(shift).numpy() == np.roll(x, shift)).all()
        assert (t.roll(shift, -1).numpy() == np.roll(x, shift, -1)).all()
        assert (t.roll(shift, 0).numpy() == np.roll(x, shift, 0)).all()
    assert (t[..., 1:].contiguous().numpy() == x[..., 1:]).all()
    assert (rl.cat([t, t[..., 1:]], -1).numpy() == np.concatenate([x, x[..., 1:]], -1)).all()


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "int64", "complex128"])
def test_one_value_for_a_row(n, dtype):
    column = array(3, 1).astype(dtype)
    wide = rl.from_numpy(column).expand(3, n)
    assert (wide.contiguous().numpy() == np.broadcast_to(column, (3, n))).all()
    buffer = rl.zeros(3, n + 5, dtype=getattr(rl, dtype))
    buffer[:, 1 : n + 1].copy_(wide)
    buffer[:, n + 2 :].fill_(1)
    expected = np.zeros((3, n + 5), dtype)
    expected[:, 1 : n + 1] = column
    expected[:, n + 2 :] = 1
    assert (buffer.numpy() == expected).all()


@pytest.mark.parametrize("n", [1, 15, 16, 17, 100, 40001])
def test_functions_of_repeated_elements(n):
    column, row = array(3, 1), array(5, 1, 1)
    x = rl.from_numpy(column).expand(3, n)
    assert (x.abs().numpy() == np.abs(np.broadcast_to(column, (3, n)))).all()
    assert rl.equal(x.sigmoid(), x.contiguous().sigmoid())
    assert rl.equal(x > 0, x.contiguous() > 0)
    both = x + rl.from_numpy(row)
    assert (both.numpy() == np.broadcast_to(column, (3, n)) + row).all()
    assert rl.equal(x.double().exp(), x.contiguous().double().exp())
    assert rl.equal((x * 1j).exp(), (x.contiguous() * 1j).exp())
    assert rl.equal(
        rl.where(x > 0, x, rl.tensor(0.5)), rl.where(x.contiguous() > 0, x.contiguous(), rl.tensor(0.5))
    )


@pytest.mark.parametrize("shape", [(64, 64), (65, 17), (130, 100), (3, 70, 40)])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex64"])
def test_one_operand_transposed(shape, dtype):
    x, y = (
        (array(*shape) * 9).astype(dtype),
        (array(*shape[:-2], shape[-1], shape[-2], seed=1) * 9).astype(dtype),
    )
    a, b = rl.from_numpy(x), rl.from_numpy(y)
    assert ((a + b.mT).numpy() == x + np.swapaxes(y, -1, -2)).all()
    assert ((a.mT * b)[..., 1:, 1:] == (b * a.mT)[..., 1:, 1:]).all()


@pytest.mark.parametrize("n", [1, 2, 9, 32767, 32768, 32769, 140001])
def test_ranges(n):
    for start, step in ((0.0, 1.0), (-3.5, 0.25), (1e6, -1e-3)):
        expected = start + np.arange(n, dtype=np.float64) * step
        x = rl.arange(start, start + n * step - step / 2, step, dtype=rl.float64)[:n]
        # The last bit of fractions depends on where they are counted from; see test_factories.py.
        assert np.allclose(x.numpy(), expected[: len(x)], rtol=5e-16, atol=0)
        strided = rl.zeros(2 * n, dtype=rl.float32)[::2]
        rl.arange(0, n, out=strided)
        assert (strided.numpy() == np.arange(n)).all()
    ends = rl.linspace(-1, 2, n, dtype=rl.float64)
    assert np.allclose(ends.numpy(), np.linspace(-1, 2, n), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("to", ["float32", "float64"])
def test_floats_of_long_integers(n, to):
    rng = np.random.default_rng(n)
    for x in (
        rng.integers(-100, 100, n),
        rng.integers(-(2**31), 2**31, n),
        rng.integers(-(2**63), 2**63 - 1, n),
    ):
        assert (rl.tensor(x).to(getattr(rl, to)).numpy() == x.astype(to)).all()
        assert (rl.tensor(x)[::2].to(getattr(rl, to)).numpy() == x[::2].astype(to)).all()


@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 2, 40, 90), (3, 4, 300)])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding(shape, mode):
    x = array(*shape)
    sides = ((0, 0), (0, 0), *((2, 1),) * (len(shape) - 2))
    padded = rl.nn.functional.pad(rl.tensor(x), (2, 1) * (len(shape) - 2), mode=mode)
    name = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    assert (padded.numpy() == np.pad(x, sides, name)).all()


@pytest.mark.parametrize("width", [1, 5, 40, 129])
def test_rows_filled_with_one_value(width):
    x = array(50, width)
    positions = np.array([3, 7, 7, 49])
    expected = x.copy()
    expected[positions] = 2.5
    assert (rl.tensor(x).index_fill(0, rl.tensor(positions), 2.5).numpy() == expected).all()
    y = rl.tensor(x)
    y[rl.tensor(positions)] = 2.5
    assert (y.numpy() == expected).all()


@pytest.mark.parametrize("times", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int16, np.float32, np.float64, np.complex128])
def test_each_element_several_times(times, dtype):
    """Fewer and more elements than a register holds, several rows, and rows that are no neighbours."""
    for rows, width in ((1, 33), (1, 3001), (5, 37), (7, 1024)):
        x = np.random.default_rng(0).integers(0, 100, (rows, width + 2)).astype(dtype)
        for part in (x, x[:, 1:-1]):
            got = rl.tensor(x)[:, 1:-1] if part is not x else rl.tensor(x)
            want = np.repeat(part, times, axis=1)
            np.testing.assert_array_equal(got.repeat_interleave(times, 1), want)
            wide = got.unsqueeze(2).expand(-1, -1, times)
            np.testing.assert_array_equal(wide.contiguous().flatten(1), want)
            target = rl.zeros(rows, got.shape[1], times + 1, dtype=got.dtype)
            target[:, :, :times] = wide
            np.testing.assert_array_equal(target[:, :, :times].flatten(1), want)
            assert not target[:, :, times:].any()
