"""Pooling, resizing, sampling and padding kernels: sizes and memory orders of images, against NumPy."""

import math

import numpy as np
import pytest

import rushlight as rl
import rushlight.nn.functional as F
from rushlight.autograd import gradcheck, gradgradcheck


def array(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("shape", [(6, 7, 7), (3, 1, 1), (2, 40, 41)])
def test_global_average_pool(shape):
    x = array(2, *shape, dtype=np.float64)
    t = rl.tensor(x, requires_grad=True)
    y = F.adaptive_avg_pool2d(t, 1)
    np.testing.assert_allclose(y.detach(), x.mean((2, 3), keepdims=True), atol=1e-14)
    y.sum().backward()
    np.testing.assert_allclose(t.grad, np.full_like(x, 1 / (shape[1] * shape[2])))


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


@pytest.mark.parametrize("n_out", [700, 531, 100, 257])
@pytest.mark.parametrize("rows", [17, 8, 3])
def test_long_rows_are_resized_in_bands(rows, n_out):
    x = array(1, rows, 531)
    t = rl.tensor(x, requires_grad=True)
    y = F.interpolate(t, n_out, mode="linear")
    at = np.maximum((np.arange(n_out) + 0.5) * (531 / n_out) - 0.5, 0)
    low = np.minimum(at.astype(int), 530)
    upper = at - low
    weights = np.zeros((n_out, 531))
    np.add.at(weights, (np.arange(n_out), low), 1 - upper)
    np.add.at(weights, (np.arange(n_out), np.minimum(low + 1, 530)), upper)
    np.testing.assert_allclose(y.detach(), x @ weights.T, atol=2e-4)
    dy = array(*y.shape, seed=1)
    y.backward(rl.tensor(dy))
    np.testing.assert_allclose(t.grad, dy @ weights, atol=5e-4)


@pytest.mark.parametrize("order", ["contiguous", "channels last"])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("size", [(5, 17), (21, 4), (3, 3), (19, 23)])
def test_nearest_elements_and_their_gradient(size, exact, order):
    x = array(2, 5, 13, 11)
    x[0, 0, 0, 0], x[0, 1, 2, 3] = np.inf, -0.0
    t = rl.tensor(x)
    if order == "channels last":
        t = t.contiguous(memory_format=rl.channels_last)
    t.requires_grad_()
    y = F.interpolate(t, size, mode="nearest-exact" if exact else "nearest")
    shift = 0.5 if exact else 0
    rows, columns = (
        ((np.arange(n, dtype=np.float32) + np.float32(shift)) * np.float32(full / n)).astype(int)
        for n, full in zip(size, x.shape[2:], strict=True)
    )
    np.testing.assert_array_equal(y.detach(), x[:, :, rows][..., columns])
    np.testing.assert_array_equal(np.signbit(y.detach().numpy()), np.signbit(x[:, :, rows][..., columns]))
    dy, dx = array(*y.shape, seed=1), np.zeros_like(x)
    np.add.at(dx, (slice(None), slice(None), rows[:, None], columns[None]), dy)
    y.backward(rl.tensor(dy))
    np.testing.assert_allclose(t.grad, dx, atol=1e-6)


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
    # Coordinates are computed in the type of the elements.
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


def test_points_outside_an_image_count_nothing():
    x = rl.zeros(1, 1, 3, 3)
    x[0, 0, 0, 0] = math.inf
    outside = rl.full((1, 1, 1, 2), 1.2)
    assert F.grid_sample(x, outside, align_corners=False).tolist() == [[[[0.0]]]]
    empty = rl.zeros(2, 0, 4, 5, requires_grad=True), rl.zeros(2, 3, 4, 2, requires_grad=True)
    F.grid_sample(*empty, align_corners=False).sum().backward()
    assert empty[0].grad.shape == (2, 0, 4, 5) and empty[1].grad.abs().sum() == 0


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("channels", [1, 3, 17])
@pytest.mark.parametrize("pad", [(1, 2, 3, 0), (0, 0, 1, 2), (2, 1, 0, 0), (0, 0, 0, 0)])
def test_padding_of_channels_last(mode, channels, pad):
    a = array(2, channels, 5, 4)
    padding = ((0, 0), (0, 0), pad[2:], pad[:2])
    expected = np.pad(a, padding, mode="edge" if mode == "replicate" else "reflect")
    x = rl.tensor(a).contiguous(memory_format=rl.channels_last)
    y = F.pad(x, pad, mode=mode)
    np.testing.assert_array_equal(y.numpy(), expected)
    assert y.is_contiguous(memory_format=rl.channels_last)
    part = F.pad(x[:, :, 1:], pad[:2] + (0, 0), mode=mode)  # not dense
    same = F.pad(rl.tensor(a[:, :, 1:].copy()), pad[:2] + (0, 0), mode=mode)
    assert rl.equal(part, same)
    wide = rl.tensor(array(2, channels, 3, 20)).contiguous(
        memory_format=rl.channels_last
    )  # little padding, much inside
    assert rl.equal(
        F.pad(wide, (*pad[:2], 1, 2), mode=mode), F.pad(wide.contiguous(), (*pad[:2], 1, 2), mode=mode)
    )
    volume = rl.tensor(array(2, channels, 3, 5, 4)).contiguous(memory_format=rl.channels_last_3d)
    assert rl.equal(
        F.pad(volume, (*pad, 1, 1), mode=mode), F.pad(volume.contiguous(), (*pad, 1, 1), mode=mode)
    )


@pytest.mark.parametrize("shape, groups", [((5, 12, 7, 6), 3), ((2, 33, 9, 10), 11), ((1, 8, 40, 50), 8), ((3, 6, 2, 5, 4), 2),
                                           ((0, 4, 3, 3), 2)])  # fmt: skip
@pytest.mark.parametrize("dtype", [rl.float32, rl.float64])
def test_groups_of_channels_that_lie_last(shape, groups, dtype):
    x = rl.tensor(array(*shape) * 3 + 50).to(dtype)
    last = x.contiguous(memory_format=rl.channels_last if x.dim() == 4 else rl.channels_last_3d)
    w, b = rl.tensor(array(shape[1])).to(dtype), rl.tensor(array(shape[1], seed=1)).to(dtype)
    results = []
    for t in (x, last):
        t = t.detach().requires_grad_()
        y = F.group_norm(t, groups, w, b)
        y.square().sum().backward()
        results.append((y.detach(), t.grad))
    assert x.numel() == 0 or results[1][0].stride() == last.stride()
    for plain, other in zip(*results, strict=True):
        np.testing.assert_allclose(other, plain, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("size", [(8, 6), (16, 12), (32, 12), (4, 3), (2, 6), (4, 12), (9, 5)])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_images_in_both_orders(size, mode):
    x = array(2, 3, 8, 6)
    offset = 0.5 if mode == "nearest-exact" else 0.0
    rows, columns = (
        np.floor((np.arange(n) + offset) * (m / n)).astype(int) for n, m in zip(size, (8, 6), strict=True)
    )
    t = rl.tensor(x)
    for given in (
        t,
        t.contiguous(memory_format=rl.channels_last),
        t[:, :, ::1].transpose(2, 3).transpose(2, 3),
    ):
        given = given.detach().requires_grad_()
        y = F.interpolate(given, size, mode=mode)
        np.testing.assert_array_equal(y.detach(), x[:, :, rows][:, :, :, columns])
        up = array(*y.shape, seed=1)
        y.backward(rl.tensor(up))
        wanted = np.zeros_like(x)
        np.add.at(wanted, (slice(None), slice(None), rows[:, None], columns[None]), up)
        np.testing.assert_allclose(given.grad, wanted, atol=1e-5)


@pytest.mark.parametrize("order", [rl.contiguous_format, rl.channels_last])
def test_windows_of_one_pixel_are_the_image(order):
    t = rl.tensor(array(3, 5, 7, 6)).contiguous(memory_format=order).requires_grad_()
    y = F.adaptive_avg_pool2d(t, (7, 6))
    assert y.equal(t) and y.data_ptr() != t.data_ptr()
    up = rl.tensor(array(3, 5, 7, 6, seed=1))
    y.backward(up)
    assert t.grad.equal(up)


@pytest.mark.parametrize("shape, factor", [((2, 12, 3, 5), 2), ((1, 18, 4, 2), 3), ((2, 4, 3, 3), 1)])
def test_pixels_shuffled_with_channels_last(shape, factor):
    x = rl.tensor(array(*shape), requires_grad=True)
    last = x.detach().contiguous(memory_format=rl.channels_last).requires_grad_()
    y, z = F.pixel_shuffle(x, factor), F.pixel_shuffle(last, factor)
    assert z.equal(y) and z.is_contiguous(memory_format=rl.channels_last)
    back = F.pixel_unshuffle(z.detach(), factor)
    assert back.equal(x) and back.is_contiguous(memory_format=rl.channels_last)
    for result in (y, z):
        result.backward(rl.arange(float(y.numel())).view(y.shape))
    assert last.grad.equal(x.grad)


@pytest.mark.skipif(rl.backends.cpu.get_cpu_capability() == "DEFAULT", reason="needs fused products")
@pytest.mark.parametrize("n", [7, 28, 33])
def test_points_of_a_grid_are_rounded_once(n):
    """At the middles of pixels the last bit decides whose derivative the gradient is."""
    from fractions import Fraction

    positions = rl.linspace(-1, 1, n, dtype=rl.float64) * (n - 1) / n
    grid = rl.stack([positions, rl.zeros_like(positions)], -1).view(1, 1, n, 2).requires_grad_()
    derivatives = np.arange(1, n)
    row = rl.tensor(np.concatenate([[0], np.cumsum(derivatives)]), dtype=rl.float64)
    F.grid_sample(row.expand(1, 1, 2, n), grid, padding_mode="border", align_corners=False).sum().backward()
    for g, derivative in zip(positions.tolist(), grid.grad[0, 0, :, 0].tolist(), strict=True):
        at = float(Fraction(g + 1) * n - 1) / 2
        assert derivative == (derivatives[math.floor(at)] * n / 2 if 0 < at < n - 1 else 0)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("sizes", [(4, 6), (37, 50)])
@pytest.mark.parametrize("size", [(8, 12), (3, 5), (74, 33), (1, 1)])
def test_bytes_are_resized_to_the_nearest_as_floats_are(mode, sizes, size):
    x = rl.randint(0, 256, (2, 3, *sizes), dtype=rl.uint8)
    resized = rl.nn.functional.interpolate(x, size=size, mode=mode)
    assert resized.dtype == rl.uint8
    assert rl.equal(resized, rl.nn.functional.interpolate(x.float(), size=size, mode=mode).to(rl.uint8))
