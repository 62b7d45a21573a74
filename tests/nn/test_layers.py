"""Every layer beside torch's: same repr, same state_dict keys, same weights from one seed, same results and
gradients."""

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

# (class, constructor arguments, keyword arguments, input shapes)
LAYERS = [
    ("Linear", (5, 3), {}, [(4, 5)]),
    ("Linear", (5, 3), {"bias": False}, [(2, 4, 5)]),
    ("Bilinear", (4, 5, 3), {}, [(6, 4), (6, 5)]),
    ("Identity", (), {}, [(2, 3)]),
    ("Conv1d", (3, 4, 3), {"stride": 2, "padding": 1}, [(2, 3, 9)]),
    ("Conv1d", (3, 4, 4), {"padding": "same", "dilation": 2}, [(2, 3, 9)]),
    ("Conv2d", (4, 6, (3, 2)), {"groups": 2, "dilation": (1, 2)}, [(2, 4, 7, 8)]),
    ("Conv2d", (3, 4, 3), {"padding": 2, "padding_mode": "reflect"}, [(2, 3, 6, 5)]),
    ("Conv2d", (16, 24, 3), {"padding": 1}, [(4, 16, 13, 14)]),
    ("Conv3d", (2, 3, 2), {"bias": False}, [(2, 2, 4, 5, 4)]),
    ("ConvTranspose1d", (3, 2, 3), {"stride": 2, "output_padding": 1}, [(2, 3, 5)]),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, [(2, 4, 5, 4)]),
    ("ConvTranspose3d", (2, 3, 2), {"dilation": 2}, [(1, 2, 3, 3, 3)]),
    ("BatchNorm1d", (4,), {}, [(5, 4)]),
    ("BatchNorm1d", (4,), {"affine": False, "momentum": None}, [(5, 4, 9)]),
    ("BatchNorm2d", (4,), {"eps": 1e-3}, [(3, 4, 5, 6)]),
    ("BatchNorm3d", (2,), {"track_running_stats": False}, [(3, 2, 3, 4, 2)]),
    ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}, [(2, 3, 5, 4)]),
    ("GroupNorm", (2, 6), {}, [(3, 6, 5)]),
    ("LayerNorm", ((4, 5),), {}, [(3, 4, 5)]),
    ("RMSNorm", (6,), {}, [(3, 6)]),
    ("LocalResponseNorm", (3,), {}, [(2, 5, 4, 4)]),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, [(2, 3, 9)]),
    ("MaxPool2d", (3, 2), {"padding": 1, "dilation": 1, "ceil_mode": True}, [(2, 3, 8, 7)]),
    ("MaxPool3d", (2,), {}, [(1, 2, 4, 5, 6)]),
    ("AvgPool1d", (3,), {"stride": 2}, [(2, 3, 9)]),
    ("AvgPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}, [(2, 3,
    8, 7)]),
    ("AvgPool2d", (2,), {"divisor_override": 3}, [(2, 3, 8, 7)]),
    ("AvgPool3d", (2,), {"padding": 1}, [(1, 2, 4, 5, 6)]),
    ("LPPool2d", (2, 3), {}, [(2, 3, 8, 7)]),
    ("AdaptiveAvgPool2d", ((3, None),), {}, [(2, 3, 8, 7)]),
    ("AdaptiveMaxPool2d", (3,), {}, [(2, 3, 8, 7)]),
    ("ReLU", (), {}, [(3, 4)]),
    ("ReLU6", (), {}, [(3, 4)]),
    ("LeakyReLU", (0.2,), {}, [(3, 4)]),
    ("PReLU", (3,), {}, [(2, 3, 4)]),
    ("ELU", (), {}, [(3, 4)]),
    ("SELU", (), {}, [(3, 4)]),
    ("CELU", (0.5,), {}, [(3, 4)]),
    ("GELU", (), {"approximate": "tanh"}, [(3, 4)]),
    ("SiLU", (), {}, [(3, 4)]),
    ("Mish", (), {}, [(3, 4)]),
    ("Hardswish", (), {}, [(3, 4)]),
    ("Hardsigmoid", (), {}, [(3, 4)]),
    ("Hardtanh", (-0.5, 0.7), {}, [(3, 4)]),
    ("Softplus", (2.0, 5.0), {}, [(3, 4)]),
    ("Softshrink", (), {}, [(3, 4)]),
    ("Hardshrink", (), {}, [(3, 4)]),
    ("Softsign", (), {}, [(3, 4)]),
    ("Tanhshrink", (), {}, [(3, 4)]),
    ("LogSigmoid", (), {}, [(3, 4)]),
    ("Threshold", (0.1, -2.0), {}, [(3, 4)]),
    ("GLU", (1,), {}, [(3, 4)]),
    ("Softmax", (1,), {}, [(3, 4)]),
    ("LogSoftmax", (0,), {}, [(3, 4)]),
    ("Softmax2d", (), {}, [(2, 3, 4, 4)]),
    ("Dropout", (0.0,), {}, [(3, 4)]),
    ("Flatten", (), {}, [(2, 3, 4)]),
    ("Unflatten", (1, (2, 3)), {}, [(2, 6, 4)]),
    ("Upsample", (), {"scale_factor": 2.5, "mode": "nearest"}, [(1, 2, 3, 4)]),
    ("Upsample", (), {"size": (5, 7), "mode": "bilinear"}, [(1, 2, 3, 4)]),
    ("Upsample", (), {"scale_factor": 2, "mode": "bicubic", "align_corners": True}, [(1, 2, 3, 4)]),
    ("Upsample", (), {"scale_factor": 2, "mode": "trilinear"}, [(1, 2, 3, 4, 3)]),
    ("PixelShuffle", (2,), {}, [(2, 8, 3, 4)]),
    ("PixelUnshuffle", (2,), {}, [(2, 2, 6, 4)]),
    ("ChannelShuffle", (2,), {}, [(2, 6, 3, 4)]),
    ("ZeroPad2d", ((1, 2, 0, 3),), {}, [(2, 3, 4, 5)]),
    ("ReflectionPad1d", (2,), {}, [(2, 3, 5)]),
    ("ReplicationPad3d", (1,), {}, [(1, 2, 3, 4, 3)]),
    ("CircularPad2d", ((1, 2, 3, 0),), {}, [(2, 3, 4, 5)]),
    ("Unfold", ((2, 3),), {"padding": 1, "stride": 2}, [(2, 3, 6, 7)]),
    ("Fold", ((5, 6), (2, 3)), {"padding": 1}, [(2, 12, 36)]),
    ("CosineSimilarity", (), {"dim": -1}, [(4, 5), (4, 5)]),
    ("PairwiseDistance", (), {"p": 3.0}, [(4, 5), (4, 5)]),
    ("MultiheadAttention", (8, 2), {}, [(5, 3, 8), (4, 3, 8), (4, 3, 8)]),
    ("MultiheadAttention", (8, 2), {"kdim": 6, "vdim": 4, "batch_first": True, "add_bias_kv": True},
     [(3, 5, 8), (3, 4, 6), (3, 4, 4)]),
    ("TransformerEncoderLayer", (8, 2, 16, 0.0), {"batch_first": True}, [(3, 5, 8)]),
    ("TransformerDecoderLayer", (8, 2, 16, 0.0), {"norm_first": True, "activation": "gelu"}, [(5, 3, 8), (4,
    3, 8)]),
    ("Transformer", (8, 2, 2, 1, 16, 0.0), {}, [(5, 3, 8), (4, 3, 8)]),
    ("RNN", (4, 5, 2), {"nonlinearity": "relu", "bidirectional": True}, [(6, 3, 4)]),
    ("RNN", (4, 5), {"bias": False, "batch_first": True}, [(3, 6, 4)]),
    ("LSTM", (4, 5, 2), {"bidirectional": True}, [(6, 3, 4)]),
    ("LSTM", (4, 5), {"proj_size": 3}, [(6, 3, 4)]),
    ("LSTM", (4, 5), {}, [(6, 4)]),
    ("GRU", (4, 5, 2), {"batch_first": True}, [(3, 6, 4)]),
    ("RNNCell", (4, 5), {}, [(3, 4)]),
    ("LSTMCell", (4, 5), {}, [(3, 4)]),
    ("GRUCell", (4, 5), {"bias": False}, [(3, 4)]),
]  # fmt: skip


def flat(result):
    return [result] if hasattr(result, "shape") else [t for r in result for t in flat(r)]


def close(mine, theirs, scale=1.0):
    theirs = theirs.detach().numpy()
    np.testing.assert_allclose(
        mine.detach().numpy(),
        theirs,
        rtol=2e-5 * scale,
        atol=2e-5 * scale * max(1, np.abs(theirs).max(initial=0)),
    )


def name_of(case):
    return f"{case[0]}{case[1]}{case[2] or ''}"


@pytest.mark.parametrize("case", LAYERS, ids=name_of)
@pytest.mark.parametrize("training", [True, False])
def test_layer(case, training):
    name, args, kwargs, shapes = case
    rl.manual_seed(3)
    mine = getattr(rl.nn, name)(*args, **kwargs).train(training)
    torch.manual_seed(3)
    theirs = getattr(torch.nn, name)(*args, **kwargs).train(training)
    assert repr(mine) == repr(theirs)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in mine.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    for (key, a), b in zip(mine.state_dict().items(), theirs.state_dict().values()):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=key)
    arrays = [np.random.default_rng(i).standard_normal(s).astype("f") for i, s in enumerate(shapes)]
    xs, ys = (
        [rl.tensor(a).requires_grad_() for a in arrays],
        [torch.tensor(a).requires_grad_() for a in arrays],
    )
    got, wanted = flat(mine(*xs)), flat(theirs(*ys))
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        assert tuple(a.shape) == tuple(b.shape)
        close(a, b)
    sum((a * a).sum() for a in got if a.is_floating_point()).backward()
    sum((b * b).sum() for b in wanted if b.is_floating_point()).backward()
    for a, b in zip([*xs, *mine.parameters()], [*ys, *theirs.parameters()]):
        assert (a.grad is None) == (b.grad is None)
        if b.grad is not None:
            close(a.grad, b.grad, 5)
    for (key, a), b in zip(mine.named_buffers(), theirs.buffers()):
        if a is not None:
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6, err_msg=key)


LOSSES = [
    ("MSELoss", {}), ("L1Loss", {}), ("SmoothL1Loss", {"beta": 0.5}), ("HuberLoss", {"delta": 0.7}),
    ("KLDivLoss", {"log_target": True}),
    ("BCEWithLogitsLoss", {}), ("SoftMarginLoss", {}), ("MultiLabelSoftMarginLoss", {}), ("PoissonNLLLoss",
    {"full": True}),
]  # fmt: skip


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "kwargs"), LOSSES, ids=[n for n, _ in LOSSES])
def test_elementwise_loss(name, kwargs, reduction):
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal((4, 3)).astype("f"), rng.random((4, 3)).astype("f")
    a, b = rl.tensor(x).requires_grad_(), torch.tensor(x).requires_grad_()
    mine = getattr(rl.nn, name)(reduction=reduction, **kwargs)(a, rl.tensor(t))
    theirs = getattr(torch.nn, name)(reduction=reduction, **kwargs)(b, torch.tensor(t))
    close(mine, theirs)
    mine.sum().backward()
    theirs.sum().backward()
    close(a.grad, b.grad)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3), (2, 4, 3, 2)])
def test_cross_entropy(shape, smoothing, weighted, reduction):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(shape).astype("f"), rng.random(4).astype("f")
    target = rng.integers(0, 4, (shape[0], *shape[2:]))
    target.flat[1] = 2
    a, b = rl.tensor(x).requires_grad_(), torch.tensor(x).requires_grad_()
    options = {"reduction": reduction, "label_smoothing": smoothing, "ignore_index": 2}
    mine = rl.nn.functional.cross_entropy(a, rl.tensor(target), rl.tensor(w) if weighted else None, **options)
    theirs = torch.nn.functional.cross_entropy(
        b, torch.tensor(target), torch.tensor(w) if weighted else None, **options
    )
    close(mine, theirs)
    mine.sum().backward()
    theirs.sum().backward()
    close(a.grad, b.grad)


def test_packed_lstm():
    rl.manual_seed(1)
    torch.manual_seed(1)
    mine, theirs = rl.nn.LSTM(3, 4, 2, bidirectional=True), torch.nn.LSTM(3, 4, 2, bidirectional=True)
    x = np.random.default_rng(0).standard_normal((6, 3, 3)).astype("f")
    results = []
    for m, lib in ((mine, rl), (theirs, torch)):
        pack = lib.nn.utils.rnn.pack_padded_sequence(lib.tensor(x), [3, 6, 2], enforce_sorted=False)
        out, (h, c) = m(pack)
        padded, lengths = lib.nn.utils.rnn.pad_packed_sequence(out, padding_value=-1.0)
        results.append((padded, h, c, lengths))
    for a, b in zip(*results):
        close(a, b)


def test_second_derivatives_of_a_network():
    rl.manual_seed(0)
    net = rl.nn.Sequential(
        rl.nn.Conv2d(2, 4, 3, padding=1),
        rl.nn.BatchNorm2d(4),
        rl.nn.Tanh(),
        rl.nn.AvgPool2d(2),
        rl.nn.Flatten(),
        rl.nn.Linear(16, 3),
    ).double()
    x = rl.randn(3, 2, 4, 4, dtype=rl.float64)
    target = rl.tensor([0, 2, 1])

    def penalty(x):
        x = x.detach().requires_grad_()
        (grad,) = rl.autograd.grad(rl.nn.functional.cross_entropy(net(x), target), x, create_graph=True)
        return (grad * grad).sum()

    weight = net[0].weight
    penalty(x).backward()
    eps = 1e-6
    for at in [(0, 0, 0, 0), (3, 1, 2, 1), (1, 0, 1, 2)]:
        with rl.no_grad():
            keep = weight[at].item()
            weight[at] = keep + eps
        high = penalty(x).item()
        with rl.no_grad():
            weight[at] = keep - eps
        low = penalty(x).item()
        with rl.no_grad():
            weight[at] = keep
        np.testing.assert_allclose(weight.grad[at].item(), (high - low) / (2 * eps), rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("shape, out", [((2, 0), 3), ((2, 3, 0), 5), ((3, 2), 0), ((0,), 2), ((0, 4), 3)])
@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_linear_of_empty_vectors_has_gradients(shape, out):
    layer, x = rl.nn.Linear(shape[-1], out), rl.ones(*shape, requires_grad=True)
    layer(x).sum().backward()
    rows = x[..., :1].numel() if shape[-1] else rl.ones(*shape[:-1], 1).numel()
    assert x.grad.shape == shape and layer.weight.grad.shape == (out, shape[-1])
    assert layer.bias.grad.tolist() == [rows] * out
    batch = rl.ones(2, *shape[-1:], 3, requires_grad=True)
    shared = rl.ones(3, 0, requires_grad=True)
    (batch @ shared).sum().backward()
    assert shared.grad.shape == (3, 0)


def test_affine_grid_rounds_twice():
    """Of one rounding more or less, some of the 28 points would be another side of their pixel's middle."""
    import numpy as np

    identity = rl.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    row = rl.nn.functional.affine_grid(identity, (1, 1, 28, 28), align_corners=False)[0, 0, :, 0].numpy()
    expected = rl.linspace(-1, 1, 28).numpy() * np.float32(27) / np.float32(28)
    assert (row == expected).all()


def test_backward_of_rrelu_in_place_with_a_negative_slope():
    x = rl.tensor([-1.0, 1.0], requires_grad=True)
    y = rl.nn.functional.rrelu_(x.clone(), -5.0, 1.0)
    assert y.tolist() == [2, 1]
    with pytest.raises(RuntimeError, match="call out-of-place version"):
        y.sum().backward()
