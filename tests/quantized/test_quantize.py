"""Floats become integers of a quantized type, and integers floats."""

import pytest

import rushlight as rl

ROUND_TYPES = [rl.quint8, rl.qint8, rl.qint32]


def test_integers_scale_and_scheme():
    q = rl.quantize_per_tensor(rl.tensor([[-1.0, 0.0, 0.26], [1.0, 2.0, 200.0]]), 0.5, 3, rl.quint8)
    assert q.is_quantized and not q.dequantize().is_quantized
    assert q.dtype is rl.quint8 and q.layout is rl.strided and q.element_size() == 1
    assert q.int_repr().dtype is rl.uint8
    assert q.int_repr().tolist() == [[1, 3, 4], [5, 7, 255]]
    assert (q.q_scale(), q.q_zero_point(), q.qscheme()) == (0.5, 3, rl.per_tensor_affine)
    assert q.dequantize().tolist() == [[-1.0, 0.0, 0.5], [1.0, 2.0, 126.0]]
    assert rl.int_repr(q).tolist() == q.int_repr().tolist() and rl.q_scale(q) == 0.5


@pytest.mark.parametrize("dtype", ROUND_TYPES)
def test_halves_go_to_the_even_integer_after_the_zero_point_is_added(dtype):
    q = rl.quantize_per_tensor(rl.tensor([0.5, 1.5, 2.5]), 1.0, 1, dtype)
    assert q.int_repr().tolist() == [2, 2, 4]


def test_numbers_that_are_none():
    x = rl.tensor([float("nan"), float("inf"), -float("inf"), 1e20])
    assert rl.quantize_per_tensor(x, 1.0, 3, rl.quint8).int_repr().tolist() == [255, 255, 0, 255]
    assert rl.quantize_per_tensor(x, 1.0, 3, rl.qint8).int_repr().tolist() == [127, 127, -128, 127]
    low, high = -(2**31), 2**31 - 1
    assert rl.quantize_per_tensor(x, 1.0, 3, rl.qint32).int_repr().tolist() == [low, high, low, high]


def test_scales_as_tensors_and_lists_of_tensors():
    x = rl.ones(2)
    q = rl.quantize_per_tensor(x, rl.tensor(1.5), rl.tensor(2), rl.quint8)
    assert q.dequantize().tolist() == [1.5, 1.5]
    first, second = rl.quantize_per_tensor([x, x], rl.tensor([1.0, 2.0]), rl.tensor([0, 1]), rl.quint8)
    assert first.dequantize().tolist() == [1.0, 1.0] and second.dequantize().tolist() == [2.0, 2.0]
    assert [t.tolist() for t in rl.dequantize([first, second])] == [[1.0, 1.0], [2.0, 2.0]]


def test_scale_chosen_by_the_data():
    q = rl.quantize_per_tensor_dynamic(rl.tensor([-1.0, 2.0]), rl.quint8, False)
    assert q.q_zero_point() == 85 and q.q_scale() == pytest.approx(3 / 255)
    q = rl.quantize_per_tensor_dynamic(rl.tensor([-1.0, 2.0]), rl.qint8, True)
    assert q.q_zero_point() == -22 and q.q_scale() == pytest.approx(3 / 127)
    assert rl.quantize_per_tensor_dynamic(rl.ones(2), rl.float16, False).dtype is rl.float16
    assert rl._choose_qparams_per_tensor(rl.zeros(3)) == (0.1, 0)


def test_a_scale_for_each_channel():
    x = rl.arange(6.0).view(2, 3)
    q = rl.quantize_per_channel(x, rl.tensor([0.5, 0.25]), rl.tensor([0, 3]), 0, rl.qint8)
    assert q.int_repr().tolist() == [[0, 2, 4], [15, 19, 23]]
    assert q.qscheme() is rl.per_channel_affine and q.q_per_channel_axis() == 0
    assert q.q_per_channel_scales().dtype is rl.float64 and q.q_per_channel_zero_points().tolist() == [0, 3]
    assert q.dequantize().tolist() == x.tolist()
    f = rl.quantize_per_channel(x, rl.tensor([0.5, 0.25]), rl.tensor([0.0, 3.5]), 0, rl.quint8)
    assert f.qscheme() is rl.per_channel_affine_float_qparams
    assert f.q_per_channel_scales().dtype is rl.float32
    assert f.int_repr().tolist() == [[0, 2, 4], [16, 20, 24]]


@pytest.mark.parametrize(
    ("dtype", "packed"), [(rl.quint4x2, [0x53, 0x97, 0x0B]), (rl.quint2x4, [0xFF, 0x03])]
)
def test_types_of_less_than_a_byte_are_packed(dtype, packed):
    x = rl.arange(5.0)
    q = rl.quantize_per_tensor(x, 0.5, 3, dtype)
    assert q.int_repr().tolist() == packed
    assert q.storage_type() is not None
    expected = x.tolist() if dtype is rl.quint4x2 else [0.0] * 5
    assert q.dequantize().tolist() == expected


def test_made_of_integers_that_are_there():
    ints = rl.tensor([1, 2, 3], dtype=rl.uint8)
    q = rl._make_per_tensor_quantized_tensor(ints, 0.5, 1)
    assert q.dtype is rl.quint8 and q.dequantize().tolist() == [0.0, 0.5, 1.0]
    ints[0] = 9
    assert q.int_repr().tolist() == [1, 2, 3]
    c = rl._make_per_channel_quantized_tensor(ints, rl.tensor([1.0, 2.0, 3.0]), rl.tensor([0, 0, 0]), 0)
    assert c.dequantize().tolist() == [9.0, 4.0, 9.0]
    e = rl._empty_affine_quantized([2, 3], scale=2.0, zero_point=1, dtype=rl.qint32)
    assert e.shape == (2, 3) and e.q_scale() == 2.0 and e.int_repr().dtype is rl.int32
    assert rl.empty_quantized([4], q).q_scale() == 0.5


@pytest.mark.parametrize(
    ("call", "kind", "phrase"),
    [
        (
            lambda x: rl.quantize_per_tensor(x.double(), 1.0, 0, rl.quint8),
            RuntimeError,
            "only works on Float Tensor",
        ),
        (lambda x: rl.quantize_per_tensor(x, 1.0, 300, rl.quint8), RuntimeError, "above upper bound"),
        (lambda x: rl.quantize_per_tensor(x, 1.0, -1, rl.quint8), RuntimeError, "below lower bound"),
        (lambda x: rl.quantize_per_tensor(x, 1.0, 0, rl.uint8), RuntimeError, "not supported in new_qtensor"),
        (lambda x: rl.quantize_per_tensor(x, None, 0, rl.quint8), TypeError, "'scale'"),
        (lambda x: rl.quantize_per_tensor(x, rl.ones(2), 0, rl.quint8), RuntimeError, "one element"),
        (lambda x: rl.quantize_per_tensor(1.0, 1.0, 0, rl.quint8), TypeError, "must be Tensor"),
        (lambda x: rl.quantize_per_tensor_dynamic(x, rl.qint32, False), RuntimeError, "QInt32"),
        (
            lambda x: rl.quantize_per_channel(x, rl.ones(3), rl.zeros(3).long(), 0, rl.quint8),
            RuntimeError,
            "length of scales must equal to channel",
        ),
        (
            lambda x: rl.quantize_per_channel(x, rl.ones(2), rl.zeros(2).long(), 5, rl.quint8),
            RuntimeError,
            "Channel axis out of range",
        ),
        (
            lambda x: rl.quantize_per_channel(x, rl.ones(2), rl.zeros(3).long(), 0, rl.quint8),
            RuntimeError,
            "must match",
        ),
        (lambda x: rl._make_per_tensor_quantized_tensor(x, 1.0, 0), RuntimeError, "requires quantized dtype"),
        (
            lambda x: rl._empty_affine_quantized([2], dtype=rl.float32),
            RuntimeError,
            "requires quantized dtype",
        ),
        (lambda x: x.q_scale(), NotImplementedError, "aten::q_scale"),
        (lambda x: x.int_repr(), NotImplementedError, "'CPU' backend"),
        (lambda x: rl.zeros(2, dtype=rl.quint8), NotImplementedError, "quantize_per_tensor"),
        (lambda x: rl.quint8.is_signed, RuntimeError, "isSignedType not supported"),
    ],
)
def test_what_is_refused(call, kind, phrase):
    with pytest.raises(kind, match=phrase):
        call(rl.ones(2, 3))


def test_as_pytorch_to_the_last_bit():
    torch = pytest.importorskip("torch")
    import warnings

    x = torch.randn(40, 50, generator=torch.Generator().manual_seed(3)) * 30
    # Near halves, where the order of operations shows.
    x[::2] = ((x[::2] / 0.37).round() + 0.5) * 0.37
    ours = rl.from_numpy(x.numpy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, zero_point in (("quint8", 11), ("qint8", -7), ("qint32", 5)):
            want = torch.quantize_per_tensor(x, 0.37, zero_point, getattr(torch, name))
            got = rl.quantize_per_tensor(ours, 0.37, zero_point, getattr(rl, name))
            assert got.int_repr().tolist() == want.int_repr().tolist(), name
            assert got.dequantize().tolist() == want.dequantize().tolist(), name
            scales = torch.rand(40, generator=torch.Generator().manual_seed(4)) + 0.1
            zeros = torch.full((40,), zero_point)
            want = torch.quantize_per_channel(x, scales, zeros, 0, getattr(torch, name))
            parts = (rl.from_numpy(scales.numpy()), rl.from_numpy(zeros.numpy()), 0)
            got = rl.quantize_per_channel(ours, *parts, getattr(rl, name))
            assert got.int_repr().tolist() == want.int_repr().tolist(), name


def test_ranges_followed_and_searched_as_in_pytorch():
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(64, generator=generator)
    for bits in (4, 2):
        want = torch.choose_qparams_optimized(x, 64, 200, 0.16, bits)
        got = rl.choose_qparams_optimized(rl.from_numpy(x.numpy()), 64, 200, 0.16, bits)
        assert [t.tolist() for t in got] == [t.tolist() for t in want]
    for rows in (False, True):
        for symmetric in (False, True):
            size = 4 if rows else 1
            state = [torch.full((size,), float("inf")), torch.full((size,), -float("inf"))]
            state += [torch.ones(size), torch.zeros(size, dtype=torch.int32)]
            ours = [
                rl.tensor(t.tolist(), dtype=rl.int32 if t.dtype == torch.int32 else rl.float32) for t in state
            ]
            for step in range(3):
                y = torch.randn(4, 5, generator=generator) * (1 + step)
                options = (0.1, 0, 255, 0, rows, symmetric)
                on = torch.tensor([1])
                want = torch.fused_moving_avg_obs_fake_quant(y, on, on, *state, *options)
                got = rl.fused_moving_avg_obs_fake_quant(
                    rl.from_numpy(y.numpy()), rl.tensor([1]), rl.tensor([1]), *ours, *options
                )
                for a, b in zip((got, *ours), (want, *state), strict=True):
                    rl.testing.assert_close(a, rl.from_numpy(b.numpy()), rtol=1e-6, atol=1e-6)
