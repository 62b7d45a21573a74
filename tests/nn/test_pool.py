"""Pooling over windows of any size, step and spacing, against loops over NumPy arrays."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as torch
import rushlight.nn.functional as F


def windows(sizes, kernel, stride, padding, dilation=None):
    """Of each output pixel the list of its input pixels, all as flat indices."""
    dilation = dilation or [1] * len(sizes)
    along = []
    for size, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        count = (size + 2 * p - d * (k - 1) - 1) // s + 1
        starts = [i * s - p for i in range(count)]
        along.append([[at for at in range(b, b + d * k, d) if 0 <= at < size] for b in starts])
    shape = [len(a) for a in along]
    flat = [
        [int(np.ravel_multi_index(index, sizes)) for index in itertools.product(*taps)]
        for taps in itertools.product(*along)
    ]
    return shape, flat


@st.composite
def pools(draw):
    n = draw(st.integers(1, 3))
    numbers = st.sampled_from([1, 2, 5, 9, 18, 41]) if n < 3 else st.sampled_from([1, 2, 5, 10])
    sizes = [draw(numbers) for _ in range(n)]
    kernel = [draw(st.integers(1, min(size, 12))) for size in sizes]
    dilation = [
        draw(st.integers(1, 3)) if (k - 1) * 3 + 1 <= s else 1 for k, s in zip(kernel, sizes, strict=True)
    ]
    stride = [draw(st.integers(1, 11)) for _ in sizes]
    padding = [draw(st.integers(0, k // 2)) for k in kernel]
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    return sizes, kernel, stride, padding, dilation, dtype, draw(st.integers(0, 2**31))


@settings(max_examples=150, deadline=None)
@given(pools())
def test_maxima_and_their_indices(case):
    sizes, kernel, stride, padding, dilation, dtype, seed = case
    shape, flat = windows(sizes, kernel, stride, padding, dilation)
    values = np.random.default_rng(seed).integers(-5, 6, [2, *sizes]).astype(float)  # with many equal ones
    x = torch.tensor(values, dtype=dtype, requires_grad=True)
    pool = getattr(F, f"max_pool{len(sizes)}d")
    y, at = pool(x, kernel, stride, padding, dilation, return_indices=True)
    planes = values.reshape(2, -1)
    first = np.array([[w[int(np.argmax(plane[w]))] for w in flat] for plane in planes]).reshape(2, *shape)
    np.testing.assert_array_equal(at.numpy(), first)
    expected = np.take_along_axis(planes, first.reshape(2, -1), 1).reshape(2, *shape)
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    with torch.no_grad():  # where nobody asks for the indices
        assert torch.equal(pool(x, kernel, stride, padding, dilation), y)
    weights = torch.arange(y.numel(), dtype=dtype).reshape(y.shape) + 1
    (y * weights).sum().backward()
    grad = np.zeros_like(planes)
    for plane in range(2):
        np.add.at(grad[plane], first[plane].ravel(), weights[plane].numpy().ravel())
    np.testing.assert_array_equal(x.grad.numpy().reshape(2, -1), grad)


@settings(max_examples=150, deadline=None)
@given(pools(), st.booleans())
def test_means_and_their_gradient(case, count_padding):
    sizes, kernel, stride, padding, _, dtype, seed = case
    shape, flat = windows(sizes, kernel, stride, padding)
    values = np.random.default_rng(seed).standard_normal([2, *sizes])
    x = torch.tensor(values, dtype=dtype, requires_grad=True)
    pool = getattr(F, f"avg_pool{len(sizes)}d")
    y = pool(x, kernel, stride, padding, count_include_pad=count_padding)
    by = [np.prod(kernel) if count_padding else len(w) for w in flat]
    close = dict(rtol=1e-5, atol=1e-5) if dtype == torch.float32 else dict(rtol=1e-12, atol=1e-12)
    planes = values.reshape(2, -1)
    expected = np.array([[plane[w].sum() / n for w, n in zip(flat, by, strict=True)] for plane in planes])
    np.testing.assert_allclose(y.detach().numpy().reshape(2, -1), expected, **close)
    g = np.random.default_rng(seed + 1).standard_normal(expected.shape)
    y.backward(torch.tensor(g.reshape(2, *shape), dtype=dtype))
    grad = np.zeros_like(planes)
    for i, (w, n) in enumerate(zip(flat, by, strict=True)):
        grad[:, w] += g[:, i : i + 1] / n
    np.testing.assert_allclose(x.grad.numpy().reshape(2, -1), grad, **close)


@pytest.mark.parametrize("channels", [2, 3, 5, 8, 11, 16, 33, 70])
@pytest.mark.parametrize("sizes", [(9, 12), (3, 2), (13, 31)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_few_and_many_channels_that_lie_last(channels, sizes, dtype):
    x = torch.randn(3, channels, *sizes, dtype=dtype)
    x[1, 0, 1, 1] = float("nan")
    pools = [
        lambda t: F.max_pool2d(t, 2),
        lambda t: F.max_pool2d(t, 3, 2, 1),
        lambda t: F.avg_pool2d(t, 2),
        lambda t: F.avg_pool2d(t, 3, 1, 1, count_include_pad=False),
        lambda t: F.avg_pool2d(t, 2, 3, 1),
        lambda t: F.adaptive_avg_pool2d(t, (2, 5)),
        lambda t: F.adaptive_avg_pool2d(t, 1),
        lambda t: F.avg_pool2d(t, sizes, divisor_override=5),
    ]
    if sizes == (13, 31):
        pools.append(lambda t: F.avg_pool2d(t, (12, 30), 1))  # windows whose rows add up as doubles
    for pool in pools:
        plain = x.clone().requires_grad_()
        last = x.contiguous(memory_format=torch.channels_last).requires_grad_()
        expected, y = pool(plain), pool(last)
        assert y.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(y, expected, equal_nan=True, check_stride=False)
        dy = torch.randn(y.shape, dtype=dtype)
        expected.backward(dy)
        y.backward(dy)
        torch.testing.assert_close(last.grad, plain.grad, check_stride=False)


@pytest.mark.parametrize("out", [1, 3, 7, 50])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nan_wins_in_windows_of_any_length(out, dtype):
    x = torch.randn(2, 50, dtype=dtype)
    x[0, 17] = float("nan")
    y, at = F.adaptive_max_pool1d(x, out, return_indices=True)
    hit = 17 * out // 50
    assert y[0].isnan().nonzero().flatten().tolist() == [hit]
    assert at[0, hit] == 17
    assert not y[1].isnan().any()


def test_windows_drawn_at_random_do_not_depend_on_threads():
    x, samples = torch.randn(6, 40, 33, 31), torch.rand(6, 40, 2)
    threads = torch.get_num_threads()
    results = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            results.append(
                F.fractional_max_pool2d(
                    x, 3, output_size=(9, 8), return_indices=True, _random_samples=samples
                )
            )
    finally:
        torch.set_num_threads(threads)
    (y, at), (y3, at3) = results
    assert torch.equal(y, y3) and torch.equal(at, at3)
    assert torch.equal(x.flatten(2).gather(2, at.flatten(2)), y.flatten(2))


def test_windows_of_padding_alone():
    x = torch.tensor([[1.0]], requires_grad=True)
    out, where = F.max_pool1d(x, 2, None, 1, 2, return_indices=True)
    assert out.tolist() == [[float("-inf")]] and where.tolist() == [[0]]
    out.backward(torch.ones(1, 1))
    assert x.grad.tolist() == [[0.0]]
    assert F.max_pool1d(torch.arange(4.0).view(1, 4), 2, 1, 2, 5).tolist() == [[3.0, float("-inf"), 0.0]]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: F.adaptive_max_pool2d(torch.ones(1, 4, 4).int(), 2),
            NotImplementedError,
            "not implemented for 'Int'",
        ),
        (
            lambda: F.adaptive_avg_pool3d(torch.ones(1, 4, 4, 4).long(), 2),
            NotImplementedError,
            "not implemented",
        ),
        (
            lambda: F.adaptive_max_pool1d(torch.ones(1, 0, 4), 2),
            RuntimeError,
            "Expected input to have non-zero size",
        ),
        (lambda: F.fractional_max_pool2d(torch.rand(1, 0, 8, 8), 2, 3), RuntimeError, "Expected input"),
        (
            lambda: F.fractional_max_pool2d(torch.rand(1, 1, 7, 7), 2, (7, 3)),
            RuntimeError,
            "relative to input height 7",
        ),
        (
            lambda: F.fractional_max_pool3d(torch.rand(1, 7, 7, 7), 2, (3, 3, 7)),
            RuntimeError,
            "to input width 7",
        ),
        (
            lambda: F.fractional_max_pool2d(torch.rand(1, 8, 8), 2, output_ratio=[0.5] * 3),
            ValueError,
            "output_ratio",
        ),
        (
            lambda: F.max_unpool3d(torch.ones(1, 1, 1, 1, 1), torch.zeros(1, 1, 1, 1, 1).long(), [1, 1]),
            RuntimeError,
            "3",
        ),
    ],
)
def test_shapes_that_pooling_refuses(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_results_without_elements():
    assert F.fractional_max_pool2d(torch.rand(2, 1, 8, 8), 2, (0, 1)).shape == (2, 1, 0, 1)
    assert F.adaptive_avg_pool2d(torch.rand(1, 0, 4, 4), 2).shape == (1, 0, 2, 2)
    for pool in (F.adaptive_avg_pool2d, F.adaptive_max_pool2d):
        with pytest.raises(RuntimeError, match="Expected grad_output to have non-zero size"):
            pool(torch.rand(1, 2, 4, 4, requires_grad=True), 0).sum().backward()


def test_unpooling_keeps_channels_last():
    x = torch.rand(1, 2, 4, 4).contiguous(memory_format=torch.channels_last)
    y, where = F.max_pool2d(x, 2, return_indices=True)
    assert F.max_unpool2d(y, where, 2).is_contiguous(memory_format=torch.channels_last)
