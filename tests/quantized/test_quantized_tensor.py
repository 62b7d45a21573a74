"""Quantized tensors as tensors: text, views, copies, files."""

import copy
import io
import pickle

import pytest

import rushlight as rl


@pytest.fixture
def q():
    return rl.quantize_per_tensor(rl.arange(6.0).view(2, 3), 0.5, 3, rl.quint8)


@pytest.fixture
def channels():
    x = rl.arange(6.0).view(2, 3)
    return rl.quantize_per_channel(x, rl.tensor([0.5, 0.25]), rl.tensor([0, 3]), 0, rl.qint8)


def test_text(q, channels):
    assert repr(q) == (
        "tensor([[0., 1., 2.],\n        [3., 4., 5.]], size=(2, 3), dtype=torch.quint8,\n"
        "       quantization_scheme=torch.per_tensor_affine, scale=0.5, zero_point=3)"
    )
    assert str(channels) == (
        "tensor([[0., 1., 2.],\n        [3., 4., 5.]], size=(2, 3), dtype=torch.qint8,\n"
        "       quantization_scheme=torch.per_channel_affine,\n"
        "       scale=tensor([0.5000, 0.2500], dtype=torch.float64),\n       zero_point=tensor([0, 3]), axis=0)"
    )
    assert q.type() == "torch.quantized.QUInt8Tensor"


def test_views_share_memory(q):
    for view in (
        q[1],
        q.t(),
        q.view(3, 2),
        q.transpose(0, 1),
        q.unsqueeze(0),
        q.T,
        q[:, 1:],
        q.narrow(1, 0, 2),
    ):
        assert view.is_quantized and view.q_scale() == 0.5
        assert view.untyped_storage().data_ptr() == q.untyped_storage().data_ptr()
    q[1].fill_(9.0)
    assert q.dequantize().tolist() == [[0.0, 1.0, 2.0], [9.0, 9.0, 9.0]]
    q[0, 1:] = rl.tensor([5.0, 6.0])
    q[rl.tensor([1]), rl.tensor([2])] = 7.0
    assert q.dequantize().tolist() == [[0.0, 5.0, 6.0], [9.0, 9.0, 7.0]]
    assert q[0, 1].item() == 5.0 and float(q[0, 1]) == 5.0 and int(q[0, 1]) == 5
    assert [row.dequantize().tolist() for row in q] == q.dequantize().tolist()
    assert [p.shape for p in q.split(2, 1)] == [(2, 2), (2, 1)]


def test_parts_of_channels(channels):
    assert channels[1].qscheme() is rl.per_tensor_affine and channels[1].q_scale() == 0.25
    assert channels[1:].q_per_channel_scales().tolist() == [0.25]
    assert channels[:, 1].dequantize().tolist() == [1.0, 4.0]
    assert channels.unsqueeze(0).q_per_channel_axis() == 1
    assert channels.index_select(0, rl.tensor([1, 0])).dequantize().tolist() == [
        [3.0, 4.0, 5.0],
        [0.0, 1.0, 2.0],
    ]
    with pytest.raises(RuntimeError, match="only on uniformly quantized tensor"):
        channels.t()
    with pytest.raises(RuntimeError, match="length of scales must equal to channel"):
        channels.view(6)
    with pytest.raises(RuntimeError, match="Squeeze is only possible on non-axis dimension"):
        channels[1:].squeeze(0)
    with pytest.raises(RuntimeError, match="Only per-tensor quantization is supported in 'cat'"):
        rl.cat([channels, channels])


def test_copies(q):
    other = q.clone()
    assert rl.equal(other, q) and other.data_ptr() != q.data_ptr()
    other.copy_(rl.full((2, 3), 2.0))
    assert other.int_repr().tolist() == [[7, 7, 7]] * 2 and not rl.equal(other, q)
    assert rl.equal(copy.deepcopy(q), q) and rl.equal(pickle.loads(pickle.dumps(q)), q)
    assert rl.empty_like(q).q_scale() == 0.5
    assert rl.cat([q, other]).shape == (4, 3) and rl.stack([q, q]).shape == (2, 2, 3)
    scaled = rl.quantize_per_tensor(rl.ones(2, 3), 1.0, 0, rl.quint8)
    assert rl.cat([q, scaled])[2:].dequantize().tolist() == [[1.0] * 3] * 2
    with pytest.raises(RuntimeError, match="Copying from quantized Tensor to non-quantized Tensor"):
        rl.zeros(2, 3).copy_(q)
    with pytest.raises(RuntimeError, match="only works with kFloat as source"):
        q.copy_(rl.zeros(2, 3).double())
    with pytest.raises(RuntimeError, match="contiguous and NHWC"):
        q[:, 0] = rl.zeros(2, 3)[:, 0]


def test_memory_formats(q):
    x = rl.quantize_per_tensor(rl.randn(2, 3, 4, 5), 0.1, 10, rl.quint8)
    last = x.contiguous(memory_format=rl.channels_last)
    assert last.stride() == x.to(memory_format=rl.channels_last).stride() == (60, 1, 15, 3)
    assert rl.equal(last, x) and last.contiguous().is_contiguous() and q.contiguous() is q


def test_resizing(q):
    assert q.resize_(3, 2).shape == (3, 2) and q.q_scale() == 0.5
    rl.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="quantized_resize_cpu_ does not have a deterministic"):
            q.resize_(2, 3)
    finally:
        rl.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", [rl.quint8, rl.qint8, rl.qint32, rl.quint4x2, rl.quint2x4])
def test_files(dtype, tmp_path):
    q = rl.quantize_per_tensor(rl.rand(3, 5), 0.25, 1, dtype)
    channels = None
    if dtype in (rl.quint8, rl.qint8):
        channels = rl.quantize_per_channel(rl.rand(3, 5), rl.rand(5) + 0.1, rl.arange(5), 1, dtype)
    for weights_only in (True, False):
        file = io.BytesIO()
        rl.save({"q": q, "part": q[:, 1], "channels": channels, "scheme": q.qscheme()}, file)
        file.seek(0)
        found = rl.load(file, weights_only=weights_only)
        assert rl.equal(found["q"], q) and rl.equal(found["part"], q[:, 1]) and found["q"].dtype is dtype
        assert found["scheme"] is rl.per_tensor_affine
        if channels is not None:
            assert rl.equal(found["channels"], channels)
            assert found["part"].data_ptr() == found["q"].data_ptr() + 1


def test_files_of_pytorch_and_for_it(tmp_path):
    torch = pytest.importorskip("torch")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = torch.rand(3, 5)
        for name in ("quint8", "qint32", "quint4x2"):
            want = torch.quantize_per_tensor(x, 0.125, 2, getattr(torch, name))
            torch.save(want, tmp_path / "theirs.pt")
            got = rl.load(tmp_path / "theirs.pt")
            assert got.int_repr().tolist() == want.int_repr().tolist() and got.q_zero_point() == 2
            rl.save(got, tmp_path / "ours.pt")
            back = torch.load(tmp_path / "ours.pt", weights_only=True)
            assert torch.equal(back.dequantize(), want.dequantize()) and back.dtype == want.dtype


def test_what_has_no_meaning_is_refused(q):
    for call, kind, phrase in (
        (lambda: q + q, NotImplementedError, "'QuantizedCPU' backend"),
        (lambda: rl.ones(2, 3) + q, NotImplementedError, "aten::add"),
        (lambda: q.sum(), NotImplementedError, "aten::sum"),
        (lambda: q.float(), RuntimeError, "dequantize"),
        (lambda: q.to(rl.float32), RuntimeError, "requires quantized dtype"),
        (lambda: q.to(rl.qint8), RuntimeError, "scalar_type"),
        (lambda: q.numpy(), TypeError, "QUInt8"),
        (lambda: q.tolist(), RuntimeError, "invalid type"),
        (lambda: q.item(), RuntimeError, "6 elements"),
        (lambda: q.new([6]), RuntimeError, "legacy"),
        (lambda: q.is_signed(), RuntimeError, "isSignedType"),
        (lambda: q.q_per_channel_axis(), RuntimeError, "kPerChannelAffine"),
        (lambda: rl.empty_like(q, dtype=rl.qint8), RuntimeError, "not supported to specify a dtype"),
        (lambda: q.allclose(q), RuntimeError, "not supported for quantized"),
        (lambda: q.view(rl.uint8), RuntimeError, "no view of another type"),
    ):
        with pytest.raises(kind, match=phrase):
            call()


def test_damaged_files_say_so():
    from rushlight._utils import _rebuild_qtensor

    storage = rl.quantize_per_tensor(rl.ones(3), 1.0, 0, rl.quint8)._typed_storage()
    scheme = (rl.per_tensor_affine, 1.0, 0)
    for args, kind in (
        ((rl.ones(3)._typed_storage(), 0, (3,), (1,), scheme), TypeError),
        ((storage, 0, (9,), (1,), scheme), ValueError),
        ((storage, 0, (3,), (1,), (rl.per_tensor_affine, "1", 0)), RuntimeError),
        ((storage, 0, (3,), (1,), ()), TypeError),
        ((storage, 0, (3,), (1,), (rl.per_channel_affine, rl.ones(2), rl.zeros(2), 0)), RuntimeError),
    ):
        with pytest.raises(kind):
            _rebuild_qtensor(*args, False, {})
