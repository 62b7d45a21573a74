"""Resizing, sampling, windows, bags and losses, against plain loops in NumPy."""

import itertools

import numpy as np
from opspec import OpSpec, Sample, ints, rand, randn

import rushlight as rl


def F(name, samples, numpy, **kwargs):
    return OpSpec("nn.functional." + name, samples, numpy, method=False, **kwargs)


def aten(name, samples, numpy, **kwargs):
    return OpSpec("ops.aten." + name, samples, numpy, method=False, **kwargs)


def apply_along(x, matrices):
    """x with each of its last dimensions multiplied by a matrix (out, in)."""
    for k, m in enumerate(reversed(matrices)):
        x = np.moveaxis(np.moveaxis(x, -1 - k, -1) @ m.T, -1, -1 - k)
    return x


def source(i, n_in, n_out, align_corners):
    if align_corners:
        return i * (n_in - 1) / (n_out - 1) if n_out > 1 else 0.0
    return (i + 0.5) * n_in / n_out - 0.5


def nearest_matrix(n_in, n_out, exact):
    m = np.zeros((n_out, n_in))
    for i in range(n_out):
        m[i, min(int((i + (0.5 if exact else 0.0)) * n_in / n_out), n_in - 1)] = 1
    return m


def linear_matrix(n_in, n_out, align_corners):
    m = np.zeros((n_out, n_in))
    for i in range(n_out):
        x = max(source(i, n_in, n_out, align_corners), 0.0)
        low = min(int(x), n_in - 1)
        m[i, low] += 1 - (x - low)
        m[i, min(low + 1, n_in - 1)] += x - low
    return m


def keys(x, a=-0.75):
    """Keys' cubic kernel."""
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def cubic_matrix(n_in, n_out, align_corners):
    m = np.zeros((n_out, n_in))
    for i in range(n_out):
        x = source(i, n_in, n_out, align_corners)
        low = int(np.floor(x))
        for j in range(low - 1, low + 3):
            m[i, min(max(j, 0), n_in - 1)] += keys(x - j)
    return m


def triangle_matrix(n_in, n_out):
    """The antialiasing filter: a triangle as wide as an output pixel."""
    step = n_in / n_out
    width = max(step, 1.0)
    m = np.zeros((n_out, n_in))
    for i in range(n_out):
        for j in range(n_in):
            m[i, j] = max(0.0, 1 - abs(j + 0.5 - (i + 0.5) * step) / width)
    return m / m.sum(1, keepdims=True)


def resized(matrix):
    def numpy(x, size, *flags):
        size = (size,) if isinstance(size, int) else size
        return apply_along(x, [matrix(x.shape[d + 2], size[d], *flags) for d in range(len(size))])

    return numpy


def resizings(*flags):
    def samples():
        for f in flags:
            yield Sample(randn(2, 3, 5, 4), (7, 6), *f)
            yield Sample(randn(1, 2, 6, 5).transpose(2, 3), (3, 3), *f)

    return samples


def sampled(x, grid, mode, padding, align_corners):
    n, c, high, wide = x.shape
    out = np.zeros((n, c, *grid.shape[1:3]))
    for b, i, j in itertools.product(range(n), range(grid.shape[1]), range(grid.shape[2])):
        at = []
        for g, size in ((grid[b, i, j, 1], high), (grid[b, i, j, 0], wide)):
            p = (g + 1) / 2 * (size - 1) if align_corners else ((g + 1) * size - 1) / 2
            at.append(min(max(p, 0), size - 1) if padding == 1 else p)
        if mode == 1:
            corners = [(round(at[0]), round(at[1]), 1.0)]
        else:
            low = [int(np.floor(p)) for p in at]
            corners = [
                (low[0] + u, low[1] + v, abs(1 - u - (at[0] - low[0])) * abs(1 - v - (at[1] - low[1])))
                for u, v in itertools.product((0, 1), repeat=2)
            ]
        for h, w, weight in corners:
            if 0 <= h < high and 0 <= w < wide:
                out[b, :, i, j] += weight * x[b, :, h, w]
    return out


def unfolded(x, kernel, dilation, padding, stride):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    span = (kernel - 1) * dilation + 1
    columns = [
        x[:, :, i : i + span : dilation, j : j + span : dilation].reshape(x.shape[0], -1)
        for i in range(0, x.shape[2] - span + 1, stride)
        for j in range(0, x.shape[3] - span + 1, stride)
    ]
    return np.stack(columns, -1)


def folded(columns, size, kernel):
    high, wide = size
    n, c = columns.shape[0], columns.shape[1] // kernel**2
    out = np.zeros((n, c, high, wide))
    corners = itertools.product(range(high - kernel + 1), range(wide - kernel + 1))
    for k, (i, j) in enumerate(corners):
        out[:, :, i : i + kernel, j : j + kernel] += columns[:, :, k].reshape(n, c, kernel, kernel)
    return out


def huber(x, y, reduction, delta):
    d = np.abs(x - y)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2)).mean()


def smooth_l1(x, y, beta):
    d = np.abs(x - y)
    return np.where(d < beta, d * d / 2 / beta, d - beta / 2).mean()


def bagged(index, weight, offsets, mode):
    ends = [*offsets[1:], len(index)]
    reduce = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    rows = [weight[index[a:b]] for a, b in zip(offsets, ends, strict=True)]
    return np.stack([reduce(r, 0) if len(r) else np.zeros(weight.shape[1]) for r in rows])


def segmented(data, reduce, lengths):
    ends = np.cumsum(lengths)
    return np.stack([getattr(np, reduce)(data[e - n : e], 0) for e, n in zip(ends, lengths, strict=True)])


def group_normed(x, weight, bias, n, c, area, groups, eps):
    g = x.reshape(n, groups, -1)
    mean, invstd = g.mean(2), 1 / np.sqrt(g.var(2) + eps)
    y = ((g - mean[..., None]) * invstd[..., None]).reshape(n, c, area) * weight[:, None] + bias[:, None]
    return y.reshape(x.shape), mean, invstd


def alignments(log_probs, targets, inputs, lengths):
    """-log of the summed probability of every path that collapses to the targets; blank is 0."""
    out = []
    for b, (steps, length) in enumerate(zip(inputs, lengths, strict=True)):
        total = 0.0
        for path in itertools.product(range(log_probs.shape[2]), repeat=steps):
            short = [k for k, _ in itertools.groupby(path) if k != 0]
            if short == list(targets[b, :length]):
                total += np.exp(sum(log_probs[t, b, k] for t, k in enumerate(path)))
        out.append(-np.log(total) if total else np.inf)
    return np.array(out)


def ctc_samples():
    x = randn(5, 3, 3).log_softmax(-1)
    yield Sample(x, ints(3, 3, low=1, high=3), [5, 4, 3], [3, 2, 0], reduction=0)
    yield Sample(x, ints(3, 2, low=1, high=2), [5, 2, 0], [2, 2, 1], reduction=0)


BAD_SIZES = [
    (RuntimeError, Sample(randn(2, 3, 4), (3, 3))),
    (RuntimeError, Sample(randn(2, 3, 4, 4), (0, 3))),
]

SPECS = [
    aten(
        "upsample_nearest2d",
        resizings(()),
        resized(lambda a, b: nearest_matrix(a, b, False)),
        errors=lambda: BAD_SIZES,
    ),
    aten("_upsample_nearest_exact2d", resizings(()), resized(lambda a, b: nearest_matrix(a, b, True))),
    aten("upsample_bilinear2d", resizings((True,), (False,)), resized(linear_matrix)),
    aten("upsample_bicubic2d", resizings((True,), (False,)), resized(cubic_matrix)),
    aten("_upsample_bilinear2d_aa", resizings((False,)), resized(lambda a, b, align: triangle_matrix(a, b))),
    aten(
        "upsample_linear1d",
        lambda: [Sample(randn(2, 3, 5), 8, align) for align in (True, False)],
        resized(linear_matrix),
    ),
    aten(
        "upsample_trilinear3d",
        lambda: [Sample(randn(1, 2, 3, 2, 4), (2, 3, 5), False)],
        resized(linear_matrix),
    ),
    OpSpec(
        "grid_sampler_2d",
        lambda: [
            Sample(randn(2, 3, 4, 5), rand(2, 3, 2, 2, low=-1.4, high=1.4), mode, padding, align)
            for mode, padding, align in itertools.product((0, 1), (0, 1), (True, False))
        ],
        sampled,
        method=False,
        errors=lambda: [
            (RuntimeError, Sample(randn(2, 3, 4, 5), randn(3, 3, 2, 2), 0, 0, True)),
            (RuntimeError, Sample(randn(2, 3, 4, 5), randn(2, 3, 2, 3), 0, 0, True)),
            (RuntimeError, Sample(randn(2, 3, 4, 5), randn(2, 3, 2, 2), 7, 0, True)),
        ],
    ),
    F(
        "unfold",
        lambda: [Sample(randn(2, 3, 6, 5), 2, 2, 1, 2), Sample(randn(1, 2, 4, 4), 3, 1, 0, 1)],
        unfolded,
    ),
    F("fold", lambda: [Sample(randn(2, 12, 12), (5, 4), 2)], folded),
    F("huber_loss", lambda: [Sample(randn(3, 4), randn(3, 4), "mean", 0.7)], huber),
    F("smooth_l1_loss", lambda: [Sample(randn(3, 4), randn(3, 4), beta=0.7)], smooth_l1),
    F(
        "embedding_bag",
        lambda: [
            Sample(ints(7, high=5), randn(5, 3), rl.tensor(offsets), mode=mode)
            for mode in ("sum", "mean", "max")
            for offsets in ([0], [0, 3, 3, 5])
        ],
        bagged,
        errors=lambda: [(RuntimeError, Sample(ints(3, low=5, high=6), randn(5, 3), ints(1, high=1)))],
    ),
    OpSpec(
        "segment_reduce",
        lambda: [
            Sample(randn(6, 2), reduce, lengths=lengths)
            for reduce in ("sum", "mean", "max", "min", "prod")
            for lengths in (ints(3, low=2, high=3), ints(1, low=6, high=7))
        ],
        lambda x, reduce, lengths: segmented(x, reduce, lengths),
        method=False,
        errors=lambda: [(RuntimeError, Sample(randn(5), "sum", lengths=ints(2, low=1, high=2)))],
    ),
    OpSpec(
        "native_group_norm",
        lambda: [Sample(randn(2, 4, 3), randn(4), randn(4), 2, 4, 3, groups, 1e-5) for groups in (1, 2)],
        group_normed,
        method=False,
        errors=lambda: [(RuntimeError, Sample(randn(2, 4, 3), None, None, 2, 4, 3, 3, 1e-5))],
    ),
    OpSpec(
        "ctc_loss",
        ctc_samples,
        lambda *args, reduction: alignments(*args),
        method=False,
        # The derivative takes log_probs to be normalised; targets that do not fit have none.
        derive=lambda x, *args, **options: rl.ctc_loss(
            x.log_softmax(-1), *args, **options, zero_infinity=True
        ),
    ),
]
