"""Convolutions: every algorithm for them against float64, the same bits for every number of threads."""

import pytest

import rushlight as rl
import rushlight.nn.functional as F

# (op, input, weight, arguments): shapes that take different code paths
SHAPES = {
    "winograd, many tiles": ("conv2d", (8, 32, 30, 29), (40, 32, 3, 3), {"padding": 1}),
    "winograd, few tiles": ("conv2d", (16, 48, 4, 4), (64, 48, 3, 3), {"padding": 1}),
    "winograd, uneven": ("conv2d", (5, 13, 30, 31), (19, 13, 3, 3), {}),
    "winograd, wide padding": ("conv2d", (2, 16, 9, 70), (17, 16, 3, 3), {"padding": 2}),
    "dilated parts": ("conv2d", (2, 32, 28, 32), (40, 32, 3, 3), {"padding": 2, "dilation": 2}),
    "dilated parts, uneven": ("conv2d", (3, 17, 31, 22), (20, 17, 3, 3), {"padding": (3, 0), "dilation": (3, 2)}),
    "dilated parts, along one side": ("conv2d", (4, 16, 15, 30), (24, 16, 3, 3), {"padding": (1, 8), "dilation": (1, 4)}),
    "dilated parts, transposed": ("conv_transpose2d", (4, 24, 15, 16), (24, 16, 3, 3), {"padding": 2, "dilation": 2}),
    "depthwise 7x7, small planes": ("conv2d", (3, 40, 7, 9), (40, 1, 7, 7), {"padding": 3, "groups": 40}),
    "depthwise 3x3, rows in parts": ("conv2d", (2, 16, 6, 31), (16, 1, 3, 3), {"padding": (1, 0), "groups": 16}),
    "depthwise 5x5, strided": ("conv2d", (2, 33, 15, 33), (33, 1, 5, 5), {"padding": 2, "stride": 2, "groups": 33}),
    "depthwise 3x3, wide padding": ("conv2d", (2, 13, 5, 2), (13, 1, 3, 3), {"padding": 5, "groups": 13}),
    "depthwise 3x7, uneven strides": ("conv2d", (2, 31, 11, 12), (31, 1, 3, 7), {"padding": (0, 5), "stride": (3, 2), "groups": 31}),
    "depthwise 9x11, runs of taps": ("conv2d", (2, 16, 10, 12), (16, 1, 9, 11), {"padding": (4, 5), "groups": 16}),
    "depthwise 8x6, strided, runs of taps": ("conv2d", (2, 30, 19, 17), (30, 1, 6, 8), {"padding": 2, "stride": 2, "groups": 30}),
    "depthwise 1d, runs of taps": ("conv1d", (2, 32, 45), (32, 1, 31), {"padding": 15, "groups": 32}),
    "depthwise 1d, small": ("conv1d", (2, 32, 60), (32, 1, 5), {"padding": 2, "groups": 32}),
    "depthwise 3d, small": ("conv3d", (2, 16, 4, 6, 5), (16, 1, 3, 3, 3), {"padding": 1, "groups": 16}),
    "depthwise, transposed": ("conv_transpose2d", (2, 31, 6, 7), (31, 1, 4, 4), {"stride": 2, "padding": 1, "groups": 31}),
    "groups of 8 in lanes": ("conv2d", (3, 48, 9, 17), (48, 8, 3, 3), {"padding": 1, "groups": 6}),
    "groups of 4 in lanes, strided": ("conv2d", (2, 16, 12, 31), (16, 4, 3, 3), {"padding": 1, "stride": 2, "groups": 4}),
    "groups of 2 in lanes, wide padding": ("conv2d", (2, 32, 4, 3), (32, 2, 3, 3), {"padding": 4, "stride": (1, 2), "groups": 16}),
    "groups of 16 in lanes, no padding": ("conv2d", (2, 32, 8, 16), (32, 16, 3, 3), {"stride": (2, 1), "groups": 2}),
    "groups of 32 in lanes": ("conv2d", (2, 96, 7, 8), (96, 32, 3, 3), {"padding": 1, "groups": 3}),
    "groups of 32 in lanes, strided": ("conv2d", (2, 64, 15, 14), (64, 32, 3, 3), {"padding": 1, "stride": 2, "groups": 2}),
    "groups in lanes, transposed": ("conv_transpose2d", (2, 16, 5, 6), (16, 8, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
    "strided 7x7": ("conv2d", (2, 3, 63, 65), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
    "strided 4x4, tiny planes": ("conv2d", (6, 20, 8, 8), (33, 20, 4, 4), {"stride": 2, "padding": 1}),
    "stride 3, dilation 2": ("conv2d", (2, 4, 40, 37), (5, 4, 3, 2), {"stride": 3, "padding": 2, "dilation": 2}),
    "strided, several blocks of channels": ("conv2d", (9, 20, 9, 11), (90, 20, 5, 5), {"stride": 2, "padding": 2}),
    "taps that see only padding": ("conv2d", (1, 32, 8, 1), (64, 16, 3, 3), {"stride": 2, "padding": 2, "groups": 2}),
    "one output pixel": ("conv2d", (3, 16, 4, 4), (1, 16, 4, 4), {}),
    "one channel": ("conv2d", (4, 1, 28, 28), (32, 1, 3, 3), {}),
    "one image, many channels": ("conv2d", (1, 130, 7, 7), (136, 130, 3, 3), {"padding": 1}),
    "1x1": ("conv2d", (2, 37, 14, 14), (21, 37, 1, 1), {}),
    "1x1, strided": ("conv2d", (2, 37, 14, 14), (21, 37, 1, 1), {"stride": 2}),
    "groups": ("conv2d", (2, 12, 20, 20), (18, 4, 3, 3), {"groups": 3, "padding": 1}),
    "groups, one register of channels": ("conv2d", (2, 48, 15, 31), (48, 16, 3, 3), {"groups": 3, "padding": 1}),
    "groups, two registers of channels": ("conv2d", (2, 64, 13, 27), (64, 32, 3, 3), {"groups": 2, "padding": 1}),
    "windows that tile the image": ("conv2d", (3, 5, 38, 37), (40, 5, 7, 6), {"stride": (7, 6)}),
    "windows that tile all of the image": ("conv2d", (2, 3, 36, 60), (50, 3, 4, 20), {"stride": (4, 20)}),
    "windows that tile, one image": ("conv2d", (1, 4, 32, 47), (33, 4, 8, 8), {"stride": 8}),
    "windows that tile, many images": ("conv2d", (23, 3, 256, 256), (32, 3, 16, 16), {"stride": 16}),
    "windows that tile, 1d": ("conv1d", (2, 9, 103), (48, 9, 10), {"stride": 10}),
    "windows that tile, 3d": ("conv3d", (2, 3, 9, 14, 17), (33, 3, 2, 4, 4), {"stride": (2, 4, 4)}),
    "windows that tile, transposed": ("conv_transpose2d", (2, 40, 5, 6), (40, 7, 4, 4), {"stride": 4}),
    "many filters": ("conv2d", (1, 64, 7, 7), (200, 64, 3, 3), {"padding": 1}),
    "many filters, strided": ("conv2d", (3, 40, 15, 13), (200, 40, 3, 3), {"stride": 2, "padding": 1}),
    "many filters, uneven": ("conv2d", (2, 70, 20, 67), (195, 70, 2, 3), {"stride": (2, 3), "padding": (1, 4), "dilation": 2}),
    "many filters, taps that see nothing": ("conv2d", (5, 64, 2, 3), (200, 64, 7, 7), {"stride": 2, "padding": 6}),
    "many filters, long rows": ("conv1d", (2, 100, 190), (200, 100, 3), {"stride": 2}),
    "many filters, large stride": ("conv1d", (2, 130, 900), (200, 130, 3), {"stride": 20, "padding": 1}),
    "many filters, 3d": ("conv3d", (2, 20, 5, 7, 6), (192, 20, 3, 3, 3), {"stride": 2, "padding": 1}),
    "many filters, transposed": ("conv_transpose2d", (2, 200, 6, 7), (200, 64, 4, 4), {"stride": 2, "padding": 1}),
    "many filters, 1x1": ("conv2d", (4, 260, 7, 6), (194, 260, 1, 1), {}),
    "many filters, 1x1 of one image": ("conv2d", (1, 260, 13, 11), (194, 260, 1, 1), {}),
    "many filters, 1x1 of wide planes": ("conv2d", (2, 260, 23, 24), (194, 260, 1, 1), {}),
    "many filters, 1x1, strided": ("conv2d", (3, 260, 13, 15), (194, 260, 1, 1), {"stride": 2}),
    "filters that see little": ("conv1d", (1, 1, 5003), (50, 1, 10), {"stride": 5}),
    "filters that see little, one channel": ("conv2d", (9, 1, 29, 33), (21, 1, 3, 3), {"padding": (1, 2)}),
    "small receptive field, large stride": ("conv2d", (2, 3, 70, 150), (31, 3, 4, 5), {"stride": 3, "padding": (3, 4), "dilation": (1, 2)}),
    "far steps": ("conv2d", (2, 3, 70, 150), (20, 3, 11, 9), {"stride": (4, 5), "padding": 2}),
    "taps in the frame": ("conv2d", (2, 18, 14, 15), (30, 18, 3, 3), {"padding": 8, "dilation": 8}),
    "taps in the frame, some rows alone": ("conv2d", (9, 20, 9, 8), (50, 20, 3, 3), {"padding": (11, 2), "dilation": (5, 2)}),
    "taps in the frame, short rows": ("conv2d", (20, 3, 7, 6), (33, 3, 7, 5), {"padding": 4}),
    "taps in the frame, 3-d": ("conv3d", (5, 20, 2, 7, 6), (40, 20, 3, 3, 3), {"padding": (2, 1, 1)}),
    "taps in the frame, 3-d, few channels": ("conv3d", (3, 4, 3, 9, 9), (6, 2, 5, 3, 3), {"padding": 2, "stride": (1, 2, 1), "groups": 2}),
    "taps in the frame, transposed": ("conv_transpose3d", (4, 24, 3, 8, 7), (24, 20, 3, 4, 3), {"stride": 2, "padding": 1}),
    "windows as wide as the image": ("conv2d", (9, 1, 20, 37), (24, 1, 3, 37), {}),
    "windows as wide as the image, 3-d": ("conv3d", (3, 4, 9, 5, 6), (16, 2, 2, 5, 6), {"groups": 2, "padding": (1, 0, 0)}),
    "windows nearly as large as the image": ("conv2d", (3, 6, 14, 15), (20, 6, 11, 12), {"padding": (1, 0)}),
    "windows nearly as large, one image": ("conv2d", (1, 5, 40, 31), (20, 5, 7, 29), {"stride": (2, 1), "dilation": (3, 1)}),
    "windows nearly as large, 1-d": ("conv1d", (19, 3, 70), (18, 3, 64), {"padding": 2}),
    "windows nearly as large, one filter each": ("conv2d", (3, 6, 9, 9), (6, 1, 7, 7), {"groups": 6}),
    "windows nearly as large, transposed": ("conv_transpose2d", (5, 20, 2, 3), (20, 9, 9, 7), {"stride": (1, 2), "padding": 1}),
    "far taps without a frame": ("conv2d", (3, 20, 30, 33), (40, 20, 3, 3), {"dilation": 13}),
    "depthwise": ("conv2d", (2, 9, 30, 30), (9, 1, 5, 5), {"groups": 9, "padding": 2}),
    "depthwise, strided, two each": ("conv2d", (2, 9, 31, 30), (18, 1, 3, 3), {"groups": 9, "stride": 2}),
    "padding beyond the image": ("conv2d", (2, 4, 3, 3), (4, 4, 3, 3), {"padding": 5}),
    "very wide": ("conv2d", (1, 4, 3, 1500), (5, 4, 3, 3), {"padding": 1}),
    "1-d": ("conv1d", (2, 5, 900), (7, 5, 10), {"stride": 5}),
    "3-d": ("conv3d", (2, 3, 6, 9, 8), (7, 3, 3, 3, 3), {"padding": 1}),
    "3-d, strided": ("conv3d", (1, 4, 9, 8, 9), (8, 2, 2, 3, 1), {"stride": (2, 1, 2), "padding": (1, 1, 0), "groups": 2}),
    "transposed": ("conv_transpose2d", (3, 20, 4, 4), (20, 12, 4, 4), {"stride": 2, "padding": 1}),
    "transposed, many channels": ("conv_transpose2d", (3, 40, 5, 5), (40, 70, 3, 3), {"stride": 2, "padding": 1}),
    "transposed, from one pixel": ("conv_transpose2d", (5, 8, 1, 1), (8, 12, 4, 4), {}),
    "transposed, gaps": ("conv_transpose2d", (2, 6, 9, 9), (6, 4, 2, 2), {"stride": 3, "output_padding": 2, "groups": 2}),
    "transposed, depthwise": ("conv_transpose2d", (2, 6, 9, 9), (6, 1, 4, 4), {"stride": 2, "padding": 1, "groups": 6}),
    "transposed 1-d": ("conv_transpose1d", (2, 6, 50), (6, 4, 8), {"stride": 4, "padding": 2}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def threads():
    before = rl.get_num_threads()
    yield
    rl.set_num_threads(before)


def run(op, x, w, b, g, arguments):
    x, w, b = (t.detach().clone().requires_grad_() for t in (x, w, b))
    y = getattr(F, op)(x, w, b, **arguments)
    y.backward(g)
    return y.detach(), x.grad, w.grad, b.grad


def tensors(op, xs, ws, arguments):
    rl.manual_seed(0)
    x, w = rl.randn(*xs), rl.randn(*ws)
    b = rl.randn(ws[1] * arguments.get("groups", 1) if "transpose" in op else ws[0])
    return x, w, b, rl.randn(*getattr(F, op)(x, w, b, **arguments).shape)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_against_float64(name, dtype):
    op, xs, ws, arguments = SHAPES[name]
    given = [t.to(getattr(rl, dtype)) for t in tensors(op, xs, ws, arguments)]
    results = run(op, *given, arguments)
    exact = run(op, *(t.double() for t in given), arguments)
    # A sum of n products errs by some units in the last place of its largest parts; Winograd's transforms add a digit.
    tolerance = 5e-5 if dtype == "float32" else 1e-2
    for got, expected in zip(results, exact, strict=True):
        assert got.dtype == getattr(rl, dtype)
        assert (got.double() - expected).abs().max().item() <= tolerance * expected.abs().max().item()


@pytest.mark.parametrize("name", SHAPES)
def test_same_bits_for_every_number_of_threads(name):
    op, xs, ws, arguments = SHAPES[name]
    given = tensors(op, xs, ws, arguments)
    rl.set_num_threads(1)
    expected = run(op, *given, arguments)
    for n in (2, 5):
        rl.set_num_threads(n)
        for got, one in zip(run(op, *given, arguments), expected, strict=True):
            assert rl.equal(got, one)


CHANNELS_LAST = {
    "dilated parts": ("conv2d", (2, 32, 28, 32), (40, 32, 3, 3), {"padding": 2, "dilation": 2}),
    "filters that leave lanes over, strided": ("conv2d", (2, 21, 17, 19), (20, 21, 3, 3), {"stride": 2, "padding": 1}),
    "transposed, long strides": ("conv_transpose2d", (2, 21, 5, 6), (21, 18, 8, 8), {"stride": 4, "padding": 2}),
    **{n: SHAPES[n] for n in SHAPES if SHAPES[n][0] in ("conv2d", "conv3d", "conv_transpose2d")},
    "wide dilation": ("conv2d", (2, 20, 26, 27), (33, 20, 3, 3), {"padding": 12, "dilation": 12}),
    "wide dilation, groups": ("conv2d", (2, 32, 26, 27), (32, 16, 3, 3), {"padding": 7, "dilation": 7, "groups": 2}),
    "groups, strided": ("conv2d", (3, 64, 15, 14), (64, 16, 3, 3), {"padding": 1, "stride": 2, "groups": 4}),
    "a long row": ("conv2d", (1, 16, 1, 700), (24, 16, 1, 5), {"padding": (0, 2)}),
    "small images": ("conv2d", (9, 24, 4, 5), (40, 24, 5, 5), {"padding": 2}),
    "depthwise, many channels": ("conv2d", (2, 75, 9, 13), (75, 1, 5, 3), {"padding": (2, 1), "groups": 75}),
    "depthwise, strided": ("conv2d", (3, 40, 12, 11), (40, 1, 7, 7), {"padding": 3, "stride": 2, "groups": 40}),
    "depthwise, dilated": ("conv2d", (1, 33, 20, 19), (33, 1, 3, 3), {"padding": 4, "dilation": 4, "groups": 33}),
    "transposed 2x2": ("conv_transpose2d", (2, 48, 6, 9), (48, 40, 2, 2), {"stride": 2}),
    "transposed, taps that see only padding": ("conv_transpose2d", (2, 40, 3, 2), (40, 17, 3, 3), {"stride": (3, 2), "padding": 1}),
    "transposed, depthwise, many channels": ("conv_transpose2d", (2, 40, 6, 5), (40, 1, 4, 4), {"stride": 2, "padding": 1, "groups": 40}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANNELS_LAST)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("filters", ["row-major", "channels last"])
def test_channels_last(name, dtype, filters):
    """Results in the order of the input, within the error of their type; the same bits for every number of threads."""
    op, xs, ws, arguments = CHANNELS_LAST[name]
    given = [t.to(getattr(rl, dtype)) for t in tensors(op, xs, ws, arguments)]
    exact = run(op, *(t.double() for t in given), arguments)
    last = rl.channels_last if len(xs) == 4 else rl.channels_last_3d
    x, w, b, g = given
    converted = (x.to(memory_format=last), w.to(memory_format=last) if filters != "row-major" else w, b)
    rl.set_num_threads(1)
    results = run(op, *converted, g.to(memory_format=last), arguments)
    assert results[0].is_contiguous(memory_format=last)
    tolerance = {"float32": 5e-5, "float64": 1e-13, "bfloat16": 1e-2}[dtype]
    for got, expected in zip(results, exact, strict=True):
        assert (got.double() - expected).abs().max().item() <= tolerance * expected.abs().max().item()
    rl.set_num_threads(3)
    for got, one in zip(run(op, *converted, g.to(memory_format=last), arguments), results, strict=True):
        assert rl.equal(got, one)


@pytest.mark.parametrize("name", [n for n in CHANNELS_LAST if CHANNELS_LAST[n][0] == "conv2d"])
def test_doubles_against_columns(name):
    """Every sum of products written out."""
    op, xs, ws, arguments = CHANNELS_LAST[name]
    x, w, b, _ = (t.double() for t in tensors(op, xs, ws, arguments))
    groups = arguments.get("groups", 1)
    seen = F.unfold(
        x, ws[2:], **{k: v for k, v in arguments.items() if k != "groups"}
    )  # (N, C * taps, positions)
    seen = seen.unflatten(1, (groups, -1))
    expected = (
        rl.einsum("gok,ngkp->ngop", w.reshape(groups, ws[0] // groups, -1), seen).flatten(1, 2) + b[:, None]
    )
    got = getattr(F, op)(x, w, b, **arguments)
    rl.testing.assert_close(got.flatten(2), expected, rtol=1e-12, atol=1e-12 * expected.abs().max().item())


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e30, -3e38])
def test_a_large_value_stays_where_it_is(value):
    """Winograd's transforms would spread it over a tile and its neighbours' sums."""
    x, w, b, g = tensors("conv2d", (4, 16, 24, 24), (16, 16, 3, 3), {"padding": 1})
    clean = run("conv2d", x, w, b, g, {"padding": 1})[0]
    x[1, 3, 10, 10] = value
    y = run("conv2d", x, w, b, g, {"padding": 1})[0]
    near = rl.zeros(4, 16, 24, 24, dtype=rl.bool)
    near[1, :, 9:12, 9:12] = True
    assert rl.allclose(y[~near], clean[~near], rtol=1e-4, atol=1e-3)
    assert (y[near].isnan() | (y[near].abs() > 1e20)).all()


def test_large_filters_and_gradients_stay_where_they_are():
    x, w, b, g = tensors("conv2d", (4, 16, 24, 24), (16, 16, 3, 3), {"padding": 1})
    w[2, 3, 1, 1] = float("inf")
    y = run("conv2d", x, w, b, g, {"padding": 1})[0]
    assert not y[:, [i for i in range(16) if i != 2]].isnan().any()
    x, w, b, g = tensors("conv2d", (4, 16, 24, 24), (16, 16, 3, 3), {"padding": 1})
    g[0, 5] = float("inf")
    dw = run("conv2d", x, w, b, g, {"padding": 1})[2]
    others = [i for i in range(16) if i != 5]
    assert dw[others].isfinite().all()
    assert not dw[5].isfinite().all()


@pytest.mark.parametrize("shape", [(2, 64, 32), (2, 128, 16), (1, 256, 14), (4, 16, 24), (2, 40, 30)])
def test_the_error_of_3x3_convolutions_is_that_of_plain_sums(shape):
    n, channels, size = shape
    rl.manual_seed(0)
    x = rl.randn(n, channels, size, size).relu()
    w, g = rl.randn(channels, channels, 3, 3), rl.randn(n, channels, size, size)

    def results(dtype):
        image, filters = (t.to(dtype).detach().requires_grad_() for t in (x, w))
        y = F.conv2d(image, filters, padding=1)
        y.backward(g.to(dtype))
        return [t.detach().double() for t in (y, image.grad, filters.grad)]

    exact = results(rl.float64)
    for precision, bounds in (("none", (6e-7, 7e-7, 1e-6)), ("ieee", (3e-7, 5e-7, 4e-7))):
        try:
            rl.backends.mkldnn.conv.fp32_precision = precision
            found = results(rl.float32)
        finally:
            rl.backends.mkldnn.conv.fp32_precision = "none"
        for got, right, bound in zip(found, exact, bounds, strict=True):
            assert ((got - right).norm() / right.norm()).item() < bound
            assert ((got - right).abs().max() / right.abs().max()).item() < 2e-6


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("biased", [False, True])
def test_inputs_without_channels_give_none(rank, biased):
    torch = pytest.importorskip("torch")

    def results(lib):
        x = lib.zeros(2, 0, *[5] * rank, requires_grad=True)
        w = lib.ones(4, 0, *[3] * rank, requires_grad=True)
        b = lib.ones(4, requires_grad=True) if biased else None
        y = getattr(lib.nn.functional, f"conv{rank}d")(x, w, b, stride=2, padding=1)
        y.sum().backward()
        gradients = [t.grad for t in (x, w, b) if t is not None]
        return [(tuple(t.shape), t.detach().tolist()) for t in [y, *gradients]]

    assert results(rl) == results(torch)


def test_gradients_of_inputs_without_channels_go_through_vmap():
    x, w = rl.zeros(2, 0, 5), rl.ones(4, 0, 3)
    b = rl.ones(4, requires_grad=True)
    y = F.conv1d(x, w, b)
    (grads,) = rl.autograd.grad(y, b, rl.ones(3, *y.shape), is_grads_batched=True)
    assert grads.shape == (3, 4) and not grads.any()
