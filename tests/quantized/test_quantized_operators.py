"""torch.ops.quantized and torch.ops.quantized_decomposed."""

import warnings

import pytest

import rushlight as rl

torch = pytest.importorskip("torch")


def _both(shape, kind="quint8", scale=0.1, zero_point=90, seed=0, factor=2.0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * factor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = torch.quantize_per_tensor(x, scale, zero_point, getattr(torch, kind))
    return rl.quantize_per_tensor(rl.from_numpy(x.numpy()), scale, zero_point, getattr(rl, kind)), want


def _near(got, want, differing=0.05):
    """The same integers but where two orders of float arithmetic meet a half: then off by one, and rarely."""
    assert (got.q_scale(), got.q_zero_point()) == (want.q_scale(), want.q_zero_point())
    a, b = torch.tensor(got.int_repr().tolist()).long(), want.int_repr().long()
    assert a.shape == b.shape and (a - b).abs().max() <= 1 and (a != b).float().mean() <= differing


OPERATIONS = {
    "add": lambda ops, a, b: ops.add(a, b, 0.2, 100),
    "add_relu": lambda ops, a, b: ops.add_relu(a, b, 0.2, 10),
    "mul": lambda ops, a, b: ops.mul(a, b, 0.3, 100),
    "mul_relu": lambda ops, a, b: ops.mul_relu(a, b, 0.3, 100),
    "add a number": lambda ops, a, b: ops.add(a, 1.5),
    "add a large number": lambda ops, a, b: ops.add(a, -30.0),
    "add a large negative number": lambda ops, a, b: ops.add(a, 12.0),
    "mul a number": lambda ops, a, b: ops.mul(a, 2.5),
    "mul a negative number": lambda ops, a, b: ops.mul(a, -2.5),
    "mul zero": lambda ops, a, b: ops.mul(a, 0.0),
    "cat": lambda ops, a, b: ops.cat([a, b], 1, 0.15, 80),
    "sigmoid": lambda ops, a, b: ops.sigmoid(a, 0.01, 3),
    "elu": lambda ops, a, b: ops.elu(a, 0.1, 30, 0.7),
    "celu": lambda ops, a, b: ops.celu(a, 0.1, 30, 0.7),
    "leaky_relu": lambda ops, a, b: ops.leaky_relu(a, 0.2, False, 0.1, 30),
    "hardswish": lambda ops, a, b: ops.hardswish(a, 0.1, 30),
    "relu6": lambda ops, a, b: ops.relu6(a),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("kind", ["quint8", "qint8"])
def test_arithmetic(name, kind):
    zero_point = 90 if kind == "quint8" else 5
    a, b = (_both((4, 9), kind, 0.1 + 0.03 * i, zero_point + i, i) for i in range(2))
    _near(OPERATIONS[name](rl.ops.quantized, a[0], b[0]), OPERATIONS[name](torch.ops.quantized, a[1], b[1]))


def _weights(shape, channels):
    w = torch.randn(shape, generator=torch.Generator().manual_seed(7))
    ours = rl.from_numpy(w.numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not channels:
            return rl.quantize_per_tensor(ours, 0.02, 0, rl.qint8), torch.quantize_per_tensor(
                w, 0.02, 0, torch.qint8
            )
        scales, zeros = [0.02 + 0.001 * i for i in range(shape[0])], [0] * shape[0]
        return (
            rl.quantize_per_channel(ours, rl.tensor(scales), rl.tensor(zeros), 0, rl.qint8),
            torch.quantize_per_channel(w, torch.tensor(scales), torch.tensor(zeros), 0, torch.qint8),
        )


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("relu", ["", "_relu"])
def test_layers(channels, relu):
    bias = torch.linspace(-1, 1, 4)
    ours = rl.from_numpy(bias.numpy())
    x, w = _both((5, 6)), _weights((4, 6), channels)
    packed = [t.ops.quantized.linear_prepack(v, b) for t, v, b in ((rl, w[0], ours), (torch, w[1], bias))]
    apply = "linear" + relu
    got = getattr(rl.ops.quantized, apply)(x[0], packed[0], 0.2, 60)
    _near(got, getattr(torch.ops.quantized, apply)(x[1], packed[1], 0.2, 60), 0.05)
    assert rl.equal(rl.ops.quantized.linear_unpack(packed[0])[0], w[0])
    floats = x[1].dequantize()
    dynamic = "linear" + relu + "_dynamic"
    got = getattr(rl.ops.quantized, dynamic)(rl.from_numpy(floats.numpy()), packed[0])
    want = getattr(torch.ops.quantized, dynamic)(floats, packed[1])
    rl.testing.assert_close(got, rl.from_numpy(want.numpy()), rtol=1e-4, atol=1e-4)
    x, w = _both((2, 6, 7, 8)), _weights((4, 3, 3, 3), channels)
    windows = ([1, 2], [1, 0], [1, 1], 2)
    packed = [
        t.ops.quantized.conv2d_prepack(v, b, *windows) for t, v, b in ((rl, w[0], ours), (torch, w[1], bias))
    ]
    apply = "conv2d" + relu
    got = getattr(rl.ops.quantized, apply)(x[0], packed[0], 0.2, 60)
    _near(got, getattr(torch.ops.quantized, apply)(x[1], packed[1], 0.2, 60), 0.02)


def test_refusals():
    q, _ = _both((2, 3))
    for call in (
        lambda: rl.ops.quantized.add(rl.ones(2), q, 1.0, 0),
        lambda: rl.ops.quantized.linear_prepack(rl.ones(2, 3)),
        lambda: rl.ops.quantized.conv2d_prepack(q, None, [1], [0, 0], [1, 1], 1),
    ):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(AttributeError, match="quantized::no_such"):
        _ = rl.ops.quantized.no_such


def test_decomposed():
    ops = rl.ops.quantized_decomposed
    x = rl.tensor([[-1.0, 0.0, 0.26], [1.0, 2.0, 200.0]])
    q = ops.quantize_per_tensor(x, 0.5, 3, 0, 255, rl.uint8)
    assert q.dtype is rl.uint8 and q.tolist() == [[1, 3, 4], [5, 7, 255]]
    assert (
        ops.quantize_per_tensor.tensor(x, rl.tensor(0.5), rl.tensor(3), 0, 255, rl.uint8).tolist()
        == q.tolist()
    )
    assert ops.dequantize_per_tensor(q, 0.5, 3, 0, 255, rl.uint8).tolist() == [
        [-1.0, 0.0, 0.5],
        [1.0, 2.0, 126.0],
    ]
    scale, zero_point = ops.choose_qparams.tensor(rl.tensor([-1.0, 2.0]), 0, 255, 1e-9, rl.uint8)
    assert scale.item() == pytest.approx(3 / 255) and zero_point.item() == 85
    scales, zeros = rl.tensor([0.5, 0.25]), rl.tensor([0, 3])
    c = ops.quantize_per_channel(rl.arange(6.0).view(2, 3), scales, zeros, 0, -128, 127, rl.int8)
    assert c.tolist() == [[0, 2, 4], [15, 19, 23]]
    back = ops.dequantize_per_channel(c, scales, zeros, 0, -128, 127, rl.int8)
    assert back.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    y = rl.randn(3, 8)
    scales, zeros = ops.choose_qparams_per_token_asymmetric(y, rl.int8)
    rows = ops.quantize_per_token(y, scales, zeros, -128, 127, rl.int8)
    near = ops.dequantize_per_token(rows, scales, zeros, -128, 127, rl.int8, rl.float32)
    assert (near - y).abs().max() <= scales.max()
    scales, zeros = rl.full((3, 2), 0.05), rl.zeros(3, 2, dtype=rl.int32)
    groups = ops.quantize_per_channel_group(y, scales, zeros, -128, 127, rl.int8, 4)
    near = ops.dequantize_per_channel_group(groups, scales, zeros, -128, 127, rl.int8, 4, rl.float32)
    assert (near - y).abs().max() <= 0.0251
    for call in (
        lambda: ops.quantize_per_tensor(x, 0.5, 3, 0, 256, rl.uint8),
        lambda: ops.quantize_per_tensor(x.long(), 0.5, 3, 0, 255, rl.uint8),
        lambda: ops.dequantize_per_tensor(q, 0.5, 3, 0, 255, rl.int8),
        lambda: ops.quantize_per_channel_group(y, scales, zeros, -128, 127, rl.int8, 3),
    ):
        with pytest.raises(AssertionError):
            call()
