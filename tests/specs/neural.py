"""Convolution, pooling, normalisation, losses, recurrent steps and padding, each against a plain NumPy
version."""

import numpy as np
from opspec import OpSpec, Sample, ints, rand, randn

import rushlight as rl


def windows(x, kernel, stride, padding, dilation, fill=0.0):
    """(N, C, H, W) to (N, C, OH, OW, KH, KW), by loops."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=fill)
    kh, kw = kernel
    oh = (x.shape[2] - dilation * (kh - 1) - 1) // stride + 1
    ow = (x.shape[3] - dilation * (kw - 1) - 1) // stride + 1
    out = np.empty((*x.shape[:2], oh, ow, kh, kw), x.dtype)
    for i in range(oh):
        for j in range(ow):
            a, b = i * stride, j * stride
            out[:, :, i, j] = x[
                :, :, a : a + dilation * (kh - 1) + 1 : dilation, b : b + dilation * (kw - 1) + 1 : dilation
            ]
    return out


def conv2d(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    seen = windows(x, w.shape[2:], stride, padding, dilation)
    n, c = x.shape[:2]
    seen = seen.reshape(n, groups, c // groups, *seen.shape[2:])
    filters = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    y = np.einsum("ngchwij,gocij->ngohw", seen, filters).reshape(n, w.shape[0], *seen.shape[3:5])
    return y if b is None else y + b[:, None, None]


def conv_transpose2d(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    n, c, h, wd = x.shape
    og, kh, kw = w.shape[1:]
    full = np.zeros((n, groups * og, (h - 1) * stride + dilation * (kh - 1) + 1 + output_padding,
                     (wd - 1) * stride + dilation * (kw - 1) + 1 + output_padding))  # fmt: skip
    for g in range(groups):
        part, filters = (
            x[:, g * c // groups : (g + 1) * c // groups],
            w[g * c // groups : (g + 1) * c // groups],
        )
        for i in range(kh):
            for j in range(kw):
                rows = slice(i * dilation, i * dilation + (h - 1) * stride + 1, stride)
                cols = slice(j * dilation, j * dilation + (wd - 1) * stride + 1, stride)
                full[:, g * og : (g + 1) * og, rows, cols] += np.einsum(
                    "nchw,co->nohw", part, filters[:, :, i, j]
                )
    y = full[:, :, padding : full.shape[2] - padding, padding : full.shape[3] - padding]
    return y if b is None else y + b[:, None, None]


def max_pool2d(x, kernel_size, stride=None, padding=0):
    seen = windows(x, (kernel_size, kernel_size), stride or kernel_size, padding, 1, fill=-np.inf)
    return seen.max((-1, -2))


def avg_pool2d(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    k, s = kernel_size, stride or kernel_size
    sums = windows(x, (k, k), s, padding, 1).sum((-1, -2))
    if count_include_pad:
        return sums / (k * k)
    return sums / windows(np.ones_like(x), (k, k), s, padding, 1).sum((-1, -2))


def adaptive_avg_pool1d(x, output_size):
    n = x.shape[-1]
    cuts = [(i * n // output_size, -(-(i + 1) * n // output_size)) for i in range(output_size)]
    return np.stack([x[..., a:b].mean(-1) for a, b in cuts], -1)


def standardised(x, axes, eps):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    y = standardised(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def channels(p, x):
    return p.reshape(1, -1, *[1] * (x.ndim - 2))


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    split = x.reshape(x.shape[0], groups, -1)
    y = standardised(split, (2,), eps).reshape(x.shape)
    y = y if weight is None else y * channels(weight, x)
    return y if bias is None else y + channels(bias, x)


def batch_norm(x, weight, bias, mean, var, training, momentum, eps, _):
    axes = (0, *range(2, x.ndim))
    y = standardised(x, axes, eps) if training else (x - channels(mean, x)) / np.sqrt(channels(var, x) + eps)
    y = y if weight is None else y * channels(weight, x)
    return y if bias is None else y + channels(bias, x)


def rms_norm(x, shape, weight=None, eps=None):
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    y = x / np.sqrt((x * x).mean(axes, keepdims=True) + (np.finfo(x.dtype).eps if eps is None else eps))
    return y if weight is None else y * weight


def log_softmax(x, axis):
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def nll(log_probs, target, weight, reduction, ignore_index):
    moved = np.moveaxis(log_probs, 1, -1)
    keep = target != ignore_index
    w = np.ones(log_probs.shape[1]) if weight is None else weight
    factor = np.where(keep, w[np.where(keep, target, 0)], 0)
    loss = -np.take_along_axis(moved, np.where(keep, target, 0)[..., None], -1)[..., 0] * factor
    return loss if reduction == 0 else np.asarray(loss.sum() / (factor.sum() if reduction == 1 else 1))


def cross_entropy(x, target, weight=None, reduction=1, ignore_index=-100):
    return nll(log_softmax(x, 1), target, weight, reduction, ignore_index)


def nll_loss(x, target, weight=None, reduction=1, ignore_index=-100):
    return nll(x, target, weight, reduction, ignore_index)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(gates, c0):
    i, f, g, o = np.split(gates, 4, 1)
    c = sigmoid(f) * c0 + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x, y, h):
    (xr, xz, xn), (yr, yz, yn) = np.split(x, 3, 1), np.split(y, 3, 1)
    n = np.tanh(xn + sigmoid(xr + yr) * yn)
    return n + sigmoid(xz + yz) * (h - n)


def rnn_layer(
    x, h, c, w_ih, w_hh, b_ih=None, b_hh=None, mode="LSTM", batch_sizes=None, batch_first=False, reverse=False
):
    h, c = h.copy(), None if c is None else c.copy()
    gates = x @ w_ih.T + (0 if b_ih is None else b_ih)
    if batch_sizes is None:
        gates = gates.swapaxes(0, 1) if batch_first else gates
        batch_sizes = [len(h)] * len(gates)
        gates = gates.reshape(-1, gates.shape[-1])
    steps = np.split(gates, np.cumsum(batch_sizes)[:-1])
    outs = [None] * len(steps)
    for t in reversed(range(len(steps))) if reverse else range(len(steps)):
        n = batch_sizes[t]
        own = h[:n] @ w_hh.T + (0 if b_hh is None else b_hh)
        if mode == "LSTM":
            h[:n], c[:n] = lstm_step(steps[t] + own, c[:n])
        elif mode == "GRU":
            h[:n] = gru_step(steps[t], own, h[:n])
        else:
            h[:n] = np.tanh(steps[t] + own) if mode == "RNN_TANH" else np.maximum(steps[t] + own, 0)
        outs[t] = h[:n].copy()
    out = np.concatenate(outs)
    if x.ndim == 3:
        out = np.stack(outs, 1 if batch_first else 0)
    return (out, h) if c is None else (out, h, c)


def rnn_samples():
    for mode, gates in (("LSTM", 4), ("GRU", 3), ("RNN_TANH", 1), ("RNN_RELU", 1)):
        for k, (i, h) in enumerate([(2, 3), (3, 1)]):
            weights = randn(gates * h, i), randn(gates * h, h)
            biases = (randn(gates * h), randn(gates * h)) if k == 0 else (None, None)

            def cell(n, mode=mode, h=h):
                return randn(n, h), randn(n, h) if mode == "LSTM" else None

            yield Sample(randn(3, 2, i), *cell(2), *weights, *biases, mode)
            yield Sample(randn(2, 3, i), *cell(2), *weights, *biases, mode, None, True, True)
            packed = randn(6, i)
            yield Sample(packed, *cell(3), *weights, *biases, mode, [3, 2, 1], False, k == 1)


def grid_sample(x, grid, mode, padding, align):
    out = np.zeros((*x.shape[:2], grid.shape[1]))

    def kept(at, size):
        if padding == 2:
            low, span = (0, size - 1) if align else (-0.5, size)
            away = abs(at - low)
            at = (away % span if away // span % 2 == 0 else span - away % span) + low
        return min(max(at, 0), size - 1) if padding else at

    def cubic(d):  # Keys' weight at a distance
        d, a = abs(d), -0.75
        return ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else a * (((d - 5) * d + 8) * d - 4)

    def weights(g, size):  # of each index along a dimension
        at = (g + 1) / 2 * (size - 1) if align else ((g + 1) * size - 1) / 2
        if mode == 2:
            taps = [(kept(k, size), cubic(k - at)) for k in np.floor(at) + np.arange(-1, 3)]
            return np.array([sum(w for at, w in taps if at == i) for i in range(size)])
        i = np.arange(size)
        at = kept(at, size)
        return (i == np.round(at)) * 1.0 if mode else np.maximum(0, 1 - abs(i - at))

    for b, q in np.ndindex(out.shape[0], out.shape[2]):
        w = 1.0
        for g, size in zip(grid[b, q, ::-1], x.shape[2:]):
            w = np.multiply.outer(w, weights(g, size))
        out[b, :, q] = (x[b] * w).reshape(x.shape[1], -1).sum(1)
    return out


def bag_sum(weight, indices, starts, factors=None):
    rows = weight[indices] * (1 if factors is None else factors[:, None])
    return np.stack([rows[a:b].sum(0) for a, b in zip(starts[:-1], starts[1:])])


def constant_pad_nd(x, pad, value=0):
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    cropped = x[tuple(slice(-min(a, 0), x.shape[d] + min(b, 0)) for d, (a, b) in enumerate(pairs))]
    return np.pad(cropped, [(max(a, 0), max(b, 0)) for a, b in pairs], constant_values=value)


def extend(x, pad, frame=2):
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    return np.pad(x, pairs, mode=("reflect", "edge", "wrap")[frame])


def bce(x, t, weight=None, reduction=1):
    loss = -(t * np.log(x) + (1 - t) * np.log(1 - x))
    loss = loss if weight is None else loss * weight
    return loss if reduction == 0 else np.asarray(loss.mean() if reduction == 1 else loss.sum())


def bad_conv():
    x, w = randn(2, 3, 5, 5), randn(4, 3, 3, 3)
    return [
        (RuntimeError, Sample(randn(2, 4, 5, 5), w)),
        (RuntimeError, Sample(randn(2, 3, 2, 2), w)),
        (RuntimeError, Sample(randn(5, 5), w)),
        (RuntimeError, Sample(x, w, None, 0)),
        (RuntimeError, Sample(x, w, None, 1, -1)),
        (RuntimeError, Sample(x, w, None, 1, 0, 0)),
        (RuntimeError, Sample(x, w, None, 1, 0, 1, 2)),
        (RuntimeError, Sample(x, w, randn(5))),
        (RuntimeError, Sample(x, w, None, 2**62, 2**62)),
    ]


SPECS = [
    OpSpec(
        "conv2d",
        lambda: [
            Sample(randn(2, 3, 5, 6), randn(4, 3, 3, 2), randn(4), stride=2, padding=1),
            Sample(randn(1, 4, 6, 6), randn(6, 2, 3, 3), dilation=2, groups=2),
            Sample(randn(2, 4, 5, 5), randn(8, 1, 3, 3), groups=4, padding=1),
            Sample(randn(2, 3, 4, 4), randn(5, 3, 1, 1), randn(5)),
            Sample(randn(0, 3, 4, 4), randn(5, 3, 3, 3), randn(5)),
        ],
        conv2d,
        method=False,
        errors=bad_conv,
    ),
    OpSpec(
        "conv_transpose2d",
        lambda: [
            Sample(randn(2, 3, 4, 3), randn(3, 2, 3, 2), randn(2), stride=2, padding=1, output_padding=1),
            Sample(randn(1, 4, 3, 3), randn(4, 2, 2, 2), groups=2, dilation=2),
        ],
        conv_transpose2d,
        method=False,
    ),
    OpSpec(
        "max_pool2d",
        lambda: [
            Sample(randn(2, 3, 6, 7), kernel_size=3, stride=2, padding=1),
            Sample(randn(1, 2, 4, 4), kernel_size=2),
        ],
        max_pool2d,
        method=False,
        errors=lambda: [
            (RuntimeError, Sample(randn(2, 3, 4, 4), kernel_size=5)),
            (RuntimeError, Sample(randn(2, 3, 4, 4), kernel_size=2, padding=2)),
            (RuntimeError, Sample(randn(2, 3, 4, 4), kernel_size=0)),
            (RuntimeError, Sample(randn(4), kernel_size=2)),
        ],
    ),
    OpSpec(
        "nn.functional.avg_pool2d",
        lambda: [
            Sample(randn(2, 3, 6, 7), kernel_size=3, stride=2, padding=1),
            Sample(randn(2, 3, 6, 7), kernel_size=3, stride=2, padding=1, count_include_pad=False),
        ],
        avg_pool2d,
        method=False,
    ),
    OpSpec(
        "adaptive_avg_pool1d",
        lambda: [Sample(randn(2, 3, 7), output_size=3), Sample(randn(2, 7), output_size=9)],
        adaptive_avg_pool1d,
        method=False,
    ),
    OpSpec(
        "layer_norm",
        lambda: [
            Sample(randn(3, 4, 5), (4, 5), randn(4, 5), randn(4, 5)),
            Sample(randn(2, 6), (6,)),
            Sample(randn(2, 6), (6,), randn(6), eps=0.1),
        ],
        layer_norm,
        method=False,
        errors=lambda: [
            (RuntimeError, Sample(randn(2, 6), (5,))),
            (RuntimeError, Sample(randn(2, 6), (6,), randn(5))),
        ],
    ),
    OpSpec(
        "group_norm",
        lambda: [
            Sample(randn(2, 6, 3, 2), 3, randn(6), randn(6)),
            Sample(randn(2, 4, 5), 2),
            Sample(randn(3, 6), 2, randn(6)),
        ],
        group_norm,
        method=False,
        errors=lambda: [(RuntimeError, Sample(randn(2, 5, 3), 2)), (RuntimeError, Sample(randn(2, 4, 3), 0))],
    ),
    OpSpec(
        "batch_norm",
        lambda: [
            Sample(randn(3, 4, 5), randn(4), randn(4), None, None, True, 0.1, 1e-5, True),
            Sample(randn(5, 4), randn(4), None, None, None, True, 0.1, 1e-5, True),
            Sample(randn(2, 3, 4, 3), None, None, None, None, True, 0.1, 1e-3, True),
        ],
        batch_norm,
        method=False,
        errors=lambda: [
            (RuntimeError, Sample(randn(3, 4), randn(5), None, None, None, True, 0.1, 1e-5, True))
        ],
    ),
    OpSpec(
        "rms_norm",
        lambda: [Sample(randn(3, 4, 5), (5,), randn(5)), Sample(randn(2, 6), (6,), eps=0.1)],
        rms_norm,
        method=False,
    ),
    OpSpec(
        "nn._core.cross_entropy",
        lambda: [
            Sample(randn(5, 3), ints(5, high=3)),
            Sample(randn(2, 4, 3), ints(2, 3, high=4), weight=rand(4), reduction=0),
            Sample(randn(4, 3), rl.tensor([0, 1, 2, 1]), weight=rand(3), reduction=1, ignore_index=1),
            Sample(randn(4, 3), ints(4, high=3), None, 2),
        ],
        cross_entropy,
        method=False,
        errors=lambda: [
            (IndexError, Sample(randn(2, 3), ints(2, low=3, high=4))),
            (ValueError, Sample(randn(2, 3), ints(3, high=3))),
            (RuntimeError, Sample(randn(2, 3), ints(2, 2, high=3))),
            (RuntimeError, Sample(randn(2, 3), randn(2))),
        ],
    ),
    OpSpec(
        "nn._core.nll_loss_nd",
        lambda: [
            Sample(randn(5, 3), ints(5, high=3)),
            Sample(
                randn(2, 4, 3), rl.tensor([[3, 0, 2], [2, 1, 0]]), weight=rand(4), reduction=1, ignore_index=2
            ),
        ],
        nll_loss,
        method=False,
    ),
    OpSpec(
        "nn._core.binary_cross_entropy",
        lambda: [
            Sample(rand(4, 3, low=0.1, high=0.9), rand(4, 3)),
            Sample(rand(5, low=0.1, high=0.9), rand(5), None, 0),
        ],
        bce,
        method=False,
        errors=lambda: [(RuntimeError, Sample(randn(3) + 5, rand(3)))],
    ),
    OpSpec(
        "nn._core.mse_loss",
        lambda: [
            Sample(randn(4, 3), randn(4, 3)),
            Sample(randn(4), randn(4), 0),
            Sample(randn(4), randn(4), 2),
        ],
        lambda x, t, reduction=1: (
            (x - t) ** 2
            if reduction == 0
            else np.asarray(((x - t) ** 2).mean() if reduction == 1 else ((x - t) ** 2).sum())
        ),
        method=False,
    ),
    OpSpec("nn._core.lstm_step", lambda: [Sample(randn(3, 8), randn(3, 2))], lstm_step, method=False),
    OpSpec(
        "nn._core.gru_step", lambda: [Sample(randn(3, 6), randn(3, 6), randn(3, 2))], gru_step, method=False
    ),
    OpSpec(
        "nn._core.grid_sample",
        lambda: [
            Sample(randn(2, 2, *sizes), rand(2, 5, len(sizes), low=-1.3, high=1.3), mode, padding, align)
            for sizes in ((3, 4), (3, 2, 4))
            for mode in ((0, 1, 2) if len(sizes) == 2 else (0, 1))
            for padding in (0, 1, 2)
            for align in (False, True)
        ],
        grid_sample,
        method=False,
        errors=lambda: [
            (RuntimeError, Sample(randn(2, 2, 3, 4), randn(1, 5, 2), 0, 0, False)),
            (RuntimeError, Sample(randn(2, 2, 3, 4), randn(2, 5, 3), 0, 0, False)),
            (RuntimeError, Sample(randn(2, 2, 3, 4), randn(2, 5, 2), 3, 0, False)),
            (RuntimeError, Sample(randn(2, 2, 3, 4, 2), randn(2, 5, 3), 2, 0, False)),
        ],
    ),
    OpSpec(
        "nn._core.bag_sum",
        lambda: [
            Sample(randn(5, 3), ints(7, high=5), rl.tensor([0, 2, 2, 7])),
            Sample(randn(5, 3), ints(7, high=5), rl.tensor([0, 3, 7]), randn(7)),
        ],
        bag_sum,
        method=False,
        errors=lambda: [
            (RuntimeError, Sample(randn(5, 3), rl.tensor([5]), rl.tensor([0, 1]))),
            (RuntimeError, Sample(randn(5, 3), rl.tensor([-1]), rl.tensor([0, 1]))),
            (RuntimeError, Sample(randn(5, 3), rl.tensor([1, 2]), rl.tensor([0, 3]))),
            (RuntimeError, Sample(randn(5, 3), rl.tensor([1, 2]), rl.tensor([0, 5, 2]))),
        ],
    ),
    OpSpec("nn._core.rnn_layer", lambda: list(rnn_samples()), rnn_layer, method=False),
    OpSpec(
        "constant_pad_nd",
        lambda: [
            Sample(randn(2, 3), [1, 2]),
            Sample(randn(2, 3, 4), [1, -1, 0, 2], 7.0),
            Sample(randn(3, 4), [-1, -1, -1, 0]),
        ],
        constant_pad_nd,
        method=False,
        errors=lambda: [(RuntimeError, Sample(randn(2, 3), [1])), (RuntimeError, Sample(randn(2), [-2, -1]))],
    ),
    OpSpec(
        "nn._core.extend",
        lambda: [
            Sample(randn(2, 3, 5), [2, 1], 0),
            Sample(randn(2, 4, 3), [1, 2, 3, 0], 0),
            Sample(randn(2, 3, 2), [4, 0, 0, 5], 1),
            Sample(randn(1, 3, 2, 3), [1, 1, 0, 0, 2, 1], 1),
        ],
        extend,
        method=False,
        errors=lambda: [
            (RuntimeError, Sample(randn(2, 3), [3, 0], 0)),
            (RuntimeError, Sample(randn(2, 3), [1], 0)),
            (RuntimeError, Sample(randn(2, 3), [1, 1], 3)),
            (RuntimeError, Sample(randn(2, 3), [2**62, 2**62], 1)),
            (RuntimeError, Sample(randn(2, 3), [-2, -1], 1)),
        ],
    ),
    OpSpec("nn._core.wrap", lambda: [Sample(randn(2, 4, 3), [3, 1, 0, 2])], extend, method=False),
]
