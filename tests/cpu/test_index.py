"""Kernels that read and write at indices, and copies between memory orders, against NumPy."""

import itertools
import math

import numpy as np
import pytest

import rushlight as rl
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck


def array(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


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


@pytest.mark.parametrize(
    "rows, width, positions", [(63, 300, 7), (700, 33, 50), (1500, 16, 3), (1200, 40, 1), (600, 5, 600)]
)
def test_rows_added_at_positions(rows, width, positions):
    """In bands of the target: the sums have the same bits for every number of threads, the last of written rows stays."""
    x, index = array(rows, width), np.random.default_rng(1).integers(-positions, positions, rows)
    want = np.zeros((positions, width), dtype=np.float32)
    np.add.at(want, index, x)
    threads, results = rl.get_num_threads(), []
    try:
        for count in (1, 2, 3, 8):
            rl.set_num_threads(count)
            at, given = rl.tensor(index), rl.tensor(x)
            results.append(rl.zeros(positions, width).index_put_((at,), given, accumulate=True).numpy())
            added = rl.zeros(positions, width).index_add_(0, at % positions, given)
            np.testing.assert_array_equal(added, results[-1])
            transposed = rl.zeros(width, positions).t().index_add_(0, at % positions, given)
            np.testing.assert_array_equal(transposed, results[-1])
            most = rl.zeros(positions, width).scatter_reduce(
                0, (at % positions)[:, None].expand(-1, width), given, "amax"
            )
            np.testing.assert_array_equal(
                most, np.maximum.reduceat(*_grouped(x, index % positions, positions))
            )
            last = rl.zeros(positions, width)
            last[at] = given
            for position in range(positions):
                met = np.flatnonzero(index % positions == position)
                np.testing.assert_array_equal(last[position], x[met[-1]] if len(met) else np.zeros(width))
            with pytest.raises(IndexError):
                rl.zeros(positions, width).index_put_((at + positions,), given, accumulate=True)
    finally:
        rl.set_num_threads(threads)
    np.testing.assert_allclose(results[0], want, rtol=1e-6)
    assert all(np.array_equal(r, results[0]) for r in results)


def _grouped(x, index, positions):
    """Rows by position, with a row of zeros before each position's, and where each position begins."""
    parts = [np.concatenate([np.zeros_like(x[:1]), x[index == position]]) for position in range(positions)]
    return np.concatenate(parts), np.cumsum([0, *map(len, parts[:-1])])


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
            for position, column in itertools.product(range(4), range(5)):
                met = [
                    src[i, column].item() for i in range(6) if index[i] == position and column < wide.shape[1]
                ]
                met += [x[position, column].item()] if include or not met else []
                assert math.isclose(y[position, column].item(), sum(met) / len(met))
    assert gradcheck(lambda s: x.scatter_reduce(0, index[:, None].expand(6, 5), s, "mean"), (src,))


@pytest.mark.parametrize("width", [1, 31, 32, 100])
def test_bags(width):
    table, k = array(20, width), np.random.default_rng(1).integers(0, 20, 17)
    starts = [0, 4, 4, 9]
    found = F.embedding_bag(rl.tensor(k), rl.tensor(table), rl.tensor(starts), mode="sum")
    expected = [table[k[a:b]].sum(0) for a, b in zip(starts, [*starts[1:], 17], strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


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


@pytest.mark.parametrize("kernel", [1, 2, (3, 2), (4, 6)])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
def test_windows_and_their_sums(kernel, stride, dilation, padding):
    kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 12))
    wide = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    reach = ((kh - 1) * dilation + 1, (kw - 1) * dilation + 1)
    high, across = ((wide.shape[2 + i] - reach[i]) // stride + 1 for i in (0, 1))
    expected, back = np.zeros((2, 3, kh, kw, high, across)), np.zeros_like(wide)
    for i in range(kh):
        for j in range(kw):
            at = (
                ...,
                slice(i * dilation, i * dilation + stride * high - stride + 1, stride),
                slice(j * dilation, j * dilation + stride * across - stride + 1, stride),
            )
            expected[:, :, i, j] = wide[at]
            back[at] += wide[at]
    t = rl.tensor(x)
    columns = F.unfold(t, kernel, dilation, padding, stride)
    np.testing.assert_array_equal(columns.numpy(), expected.reshape(2, 3 * kh * kw, high * across))
    columns.zero_()
    np.testing.assert_array_equal(t.numpy(), x)  # never a view
    columns = rl.tensor(expected.reshape(2, 3 * kh * kw, high * across))
    images = F.fold(columns, (8, 12), kernel, dilation, padding, stride)
    inside = back[:, :, padding : padding + 8, padding : padding + 12]
    np.testing.assert_allclose(images.numpy(), inside, atol=1e-12)
    images.zero_()
    np.testing.assert_array_equal(columns.numpy(), expected.reshape(columns.shape))


@pytest.mark.parametrize("right", [False, True])
def test_searches_of_rows_that_are_not_sorted(right):
    # What a search of an unsorted row finds depends on the elements it looks at: PyTorch's are looked at.
    torch = pytest.importorskip("torch")
    draw = np.random.default_rng(3)
    for n in range(41):
        row, values = draw.integers(0, 50, n), draw.integers(-1, 52, 30)
        expected = torch.searchsorted(torch.from_numpy(row), torch.from_numpy(values), right=right)
        assert (
            rl.searchsorted(rl.from_numpy(row), rl.from_numpy(values), right=right).tolist()
            == expected.tolist()
        )


@pytest.mark.parametrize("reduce", ["prod", "mean"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_index_reduce_rounds_after_every_slice(reduce, dtype):
    torch = pytest.importorskip("torch")
    draw = np.random.default_rng(4)
    x, source, index = draw.uniform(0.5, 2, (4, 5)), draw.uniform(0.5, 2, (60, 5)), draw.integers(0, 4, 60)
    y, expected = (
        lib.tensor(x, dtype=getattr(lib, dtype)).index_reduce(
            0, lib.tensor(index), lib.tensor(source, dtype=getattr(lib, dtype)), reduce
        )
        for lib in (rl, torch)
    )
    assert y.tolist() == expected.tolist()


def test_histogram_wants_weights_of_its_type():
    with pytest.raises(RuntimeError, match="weight tensor should have the same dtype"):
        rl.histogram(rl.rand(3), 2, weight=rl.ones(3, dtype=rl.float64))
