"""Convolutions: every way of computing them against float64, the same bits for every number of threads."""

import pytest

import rushlight as rl
import rushlight.nn.functional as F

# (op, input, weight, arguments): shapes that take different ways through the kernels
SHAPES = {
    "winograd, many tiles": ("conv2d", (8, 32, 30, 29), (40, 32, 3, 3), {"padding": 1}),
    "winograd, few tiles": ("conv2d", (16, 48, 4, 4), (64, 48, 3, 3), {"padding": 1}),
    "winograd, uneven": ("conv2d", (5, 13, 30, 31), (19, 13, 3, 3), {}),
    "winograd, wide padding": ("conv2d", (2, 16, 9, 70), (17, 16, 3, 3), {"padding": 2}),
    "strided 7x7": ("conv2d", (2, 3, 63, 65), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
    "strided 4x4, tiny planes": ("conv2d", (6, 20, 8, 8), (33, 20, 4, 4), {"stride": 2, "padding": 1}),
    "stride 3, dilation 2": ("conv2d", (2, 4, 40, 37), (5, 4, 3, 2), {"stride": 3, "padding": 2, "dilation": 2}),
    "strided, several blocks of channels": ("conv2d", (9, 20, 9, 11), (90, 20, 5, 5), {"stride": 2, "padding": 2}),
    "taps that meet no place": ("conv2d", (1, 32, 8, 1), (64, 16, 3, 3), {"stride": 2, "padding": 2, "groups": 2}),
    "one place": ("conv2d", (3, 16, 4, 4), (1, 16, 4, 4), {}),
    "one channel": ("conv2d", (4, 1, 28, 28), (32, 1, 3, 3), {}),
    "one image, many channels": ("conv2d", (1, 130, 7, 7), (136, 130, 3, 3), {"padding": 1}),
    "1x1": ("conv2d", (2, 37, 14, 14), (21, 37, 1, 1), {}),
    "1x1, strided": ("conv2d", (2, 37, 14, 14), (21, 37, 1, 1), {"stride": 2}),
    "groups": ("conv2d", (2, 12, 20, 20), (18, 4, 3, 3), {"groups": 3, "padding": 1}),
    "depthwise": ("conv2d", (2, 9, 30, 30), (9, 1, 5, 5), {"groups": 9, "padding": 2}),
    "depthwise, strided, two each": ("conv2d", (2, 9, 31, 30), (18, 1, 3, 3), {"groups": 9, "stride": 2}),
    "padding beyond the picture": ("conv2d", (2, 4, 3, 3), (4, 4, 3, 3), {"padding": 5}),
    "very wide": ("conv2d", (1, 4, 3, 1500), (5, 4, 3, 3), {"padding": 1}),
    "1-d": ("conv1d", (2, 5, 900), (7, 5, 10), {"stride": 5}),
    "3-d": ("conv3d", (2, 3, 6, 9, 8), (7, 3, 3, 3, 3), {"padding": 1}),
    "3-d, strided": ("conv3d", (1, 4, 9, 8, 9), (8, 2, 2, 3, 1), {"stride": (2, 1, 2), "padding": (1, 1, 0), "groups": 2}),
    "transposed": ("conv_transpose2d", (3, 20, 4, 4), (20, 12, 4, 4), {"stride": 2, "padding": 1}),
    "transposed, many channels": ("conv_transpose2d", (3, 40, 5, 5), (40, 70, 3, 3), {"stride": 2, "padding": 1}),
    "transposed, from one place": ("conv_transpose2d", (5, 8, 1, 1), (8, 12, 4, 4), {}),
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


@pytest.mark.parametrize("name", [n for n in SHAPES if SHAPES[n][0] == "conv2d"])
def test_channels_last_inputs(name):
    op, xs, ws, arguments = SHAPES[name]
    x, w, b, g = tensors(op, xs, ws, arguments)
    turned = [t.to(memory_format=rl.channels_last) for t in (x, w)]
    for got, one in zip(run(op, *turned, b, g, arguments), run(op, x, w, b, g, arguments), strict=True):
        if name == "1x1":  # a product of rows, which adds in another order
            rl.testing.assert_close(got.contiguous(), one, rtol=1e-5, atol=1e-5)
        else:
            assert rl.equal(got.contiguous(), one)


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
