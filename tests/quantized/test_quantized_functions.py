"""What functions do with quantized tensors, beside PyTorch's integers."""

import warnings

import pytest

import rushlight as rl

torch = pytest.importorskip("torch")

IMAGE = (2, 3, 7, 6)
PER_TENSOR = [("quint8", 0.1, 90), ("qint8", 0.07, -5), ("qint32", 0.01, 3)]
BYTES = PER_TENSOR[:2]


def _both(shape, kind, scale, zero_point, seed=0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = torch.quantize_per_tensor(x, scale, zero_point, getattr(torch, kind))
    return rl.quantize_per_tensor(rl.from_numpy(x.numpy()), scale, zero_point, getattr(rl, kind)), want


def _same(got, want):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            _same(g, w)
    elif isinstance(want, torch.Tensor) and want.is_quantized:
        assert got.is_quantized and (got.q_scale(), got.q_zero_point()) == (
            want.q_scale(),
            want.q_zero_point(),
        )
        assert str(got.dtype) == str(want.dtype) and got.int_repr().tolist() == want.int_repr().tolist()
    elif isinstance(want, torch.Tensor):
        assert got.tolist() == want.tolist()
    else:
        assert got == want


FUNCTIONS = {
    "relu": lambda t, q: t.relu(q),
    "relu6": lambda t, q: t.nn.functional.relu6(q),
    "clamp": lambda t, q: q.clamp(-0.7, 1.3),
    "clamp from below": lambda t, q: t.clamp(q, min=-0.7),
    "hardtanh": lambda t, q: t.nn.functional.hardtanh(q, -0.5, 2.0),
    "leaky_relu": lambda t, q: t.nn.functional.leaky_relu(q, 0.2),
    "threshold": lambda t, q: t.nn.functional.threshold(q, 0.52, 1.0),
    "flip": lambda t, q: q.flip(1),
    "sort": lambda t, q: q.sort(-1).values,
    "topk": lambda t, q: q.topk(3).values,
    "max": lambda t, q: q.max(),
    "min along": lambda t, q: tuple(q.min(2)),
    "repeat": lambda t, q: q.repeat(1, 2, 1, 1),
    "permute": lambda t, q: q.permute(3, 0, 1, 2).contiguous(),
    "cat": lambda t, q: t.cat([q, q[:1]]),
    "eq": lambda t, q: q == q.flip(0),
    "lt a number": lambda t, q: q < 0.5,
    "masked_fill": lambda t, q: q.masked_fill(q > 1.0, -0.5),
    "reshape": lambda t, q: q.reshape(2, -1)[:, 3:],
    "index": lambda t, q: q[t.tensor([1, 0]), :, t.tensor([2, 5])],
    "nearest": lambda t, q: t.nn.functional.interpolate(q, scale_factor=2),
    "unbind": lambda t, q: q.unbind(1),
}


@pytest.mark.parametrize("kind", PER_TENSOR, ids=lambda k: k[0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_all_types(name, kind):
    got, want = _both(IMAGE, *kind)
    _same(FUNCTIONS[name](rl, got), FUNCTIONS[name](torch, want))


OF_BYTES = {
    "sigmoid": lambda t, q: t.sigmoid(q),
    "tanh": lambda t, q: t.tanh(q),
    "hardsigmoid": lambda t, q: t.nn.functional.hardsigmoid(q),
    "gelu": lambda t, q: t.nn.functional.gelu(q),
    "mean": lambda t, q: q.mean((2, 3)),
    "std": lambda t, q: t.std(q, 3),
    "max_pool2d": lambda t, q: t.nn.functional.max_pool2d(q, 3, 2, 1),
    "max_pool2d, dilated": lambda t, q: t.nn.functional.max_pool2d(q, 2, 1, 1, 2, True),
    "quantized_max_pool2d": lambda t, q: t.quantized_max_pool2d(q, [2, 3], [1, 2], [1, 0]),
    "quantized_max_pool1d": lambda t, q: t.quantized_max_pool1d(q[0], 3, 2),
    "quantized_max_pool3d": lambda t, q: t.quantized_max_pool3d(q[None], [2, 2, 2], [1, 2, 2]),
    "avg_pool2d": lambda t, q: t.nn.functional.avg_pool2d(q, 3, 2, 1),
    "avg_pool2d without margins": lambda t, q: t.nn.functional.avg_pool2d(q, 3, 2, 1, True, False),
    "avg_pool2d with a divisor": lambda t, q: t.nn.functional.avg_pool2d(q, 2, divisor_override=3),
    "adaptive_avg_pool2d": lambda t, q: t.nn.functional.adaptive_avg_pool2d(q, (3, 2)),
    "bilinear": lambda t, q: t.nn.functional.interpolate(q, size=(11, 9), mode="bilinear", align_corners=False),
    "bilinear to the corners": lambda t, q: t.nn.functional.interpolate(
        q, size=(4, 13), mode="bilinear", align_corners=True
    ),
    "batch_norm": lambda t, q: t.quantized_batch_norm(
        q, t.tensor([1.0, 2.0, 0.5]), t.tensor([0.1, 0.2, 0.3]), t.tensor([0.0, 0.1, 0.2]), t.tensor([1.0, 4.0, 2.0]),
        1e-5, 0.2, 30,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BYTES, ids=lambda k: k[0])
@pytest.mark.parametrize("name", OF_BYTES)
def test_functions_of_bytes(name, kind):
    got, want = _both(IMAGE, *kind)
    _same(OF_BYTES[name](rl, got), OF_BYTES[name](torch, want))


def test_shuffled_channels():
    got, want = _both(IMAGE, *PER_TENSOR[0])
    _same(rl.channel_shuffle(got, 3), torch.channel_shuffle(want, 3))


def test_in_place():
    for write in (
        lambda t, q: q.fill_(1.3),
        lambda t, q: t.relu_(q),
        lambda t, q: q.copy_(t.full(q.shape, 0.7)),
        lambda t, q: q.masked_fill_(q > 0.0, 2.0),
        lambda t, q: q.index_put_((t.tensor([0, 1]),), t.tensor(1.5)),
        lambda t, q: q[1].fill_(0.2),
        lambda t, q: q.__setitem__((0, slice(1, None)), 4.0),
    ):
        got, want = _both((2, 3, 4), *PER_TENSOR[0])
        write(rl, got), write(torch, want)
        _same(got, want)


def test_refusals_name_what_is_wrong():
    q, _ = _both((1, 1, 4, 4), *PER_TENSOR[0])
    for call, phrase in (
        (lambda: rl.quantized_max_pool2d(q, 2, dilation=[-1, 1]), "Expected dilation >= 1"),
        (lambda: rl.quantized_max_pool2d(q, 2, stride=[0, 1]), "strides should be greater than zero"),
        (lambda: rl.quantized_max_pool2d(q, 2, padding=3), "smaller than half of kernel_size"),
        (lambda: rl.quantized_max_pool2d(q, []), "kernel size, got 0"),
        (lambda: rl.quantized_max_pool3d(q, [1, 1, 1]), "rank 5"),
        (lambda: rl.quantized_max_pool1d(q[0], []), "of size 1 but got size 0"),
        (
            lambda: rl.quantized_batch_norm(q, None, None, rl.zeros(2), rl.ones(2), 1e-5, 1.0, 0),
            "one mean for each",
        ),
    ):
        with pytest.raises(RuntimeError, match=phrase):
            call()
    for call in (
        lambda: rl.quantized_max_pool2d(rl.ones(1, 1, 2, 2), 2),
        lambda: rl.nn.functional.interpolate(q, scale_factor=2, mode="bicubic"),
        lambda: rl.nn.functional.linear(q[0, 0], q[0, 0]),
        lambda: rl.nn.functional.max_pool2d(q, 2, return_indices=True),
    ):
        with pytest.raises(NotImplementedError, match="Could not run 'aten::"):
            call()
