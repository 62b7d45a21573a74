import numpy as np
from opspec import OpSpec, Sample, ints, rand, randn


def shapes():
    return [randn(3, 4), randn(2, 3, 5), randn(5), randn(), randn(3, 0), randn(2, 3, 4).transpose(0, 2)]


def over_dims():
    """All elements, one dimension, several, kept or not."""
    samples = [Sample(x) for x in shapes()]
    for dim in (0, -1, (0, 2), (0, 1, 2)):
        for keepdim in (False, True):
            samples.append(Sample(randn(2, 3, 4), dim=dim, keepdim=keepdim))
    samples.append(Sample(ints(3, 4, low=-5), dim=1))
    samples.append(Sample(ints(3, 4, low=0, high=2, dtype=bool), dim=0))
    return samples


def axis(f, empty=None):
    def call(x, dim=None, keepdim=False):
        return np.asarray(f(x, axis=dim, keepdims=keepdim))

    return call


def filled():
    return [s for s in over_dims() if 0 not in s.input.shape and s.input.dtype.is_floating_point]


def along():
    samples = []
    for x in (randn(3, 4), randn(2, 3, 5), randn(7), randn(2, 3, 4).transpose(0, 2)):
        samples += [Sample(x, d) for d in range(-1, x.dim() - 1)]
    return samples


def wrong_dim():
    return [
        (IndexError, Sample(randn(3, 4), dim=2)),
        (RuntimeError, Sample(randn(3, 4), dim=(0, 0))),
        (TypeError, Sample(randn(3, 4), dim="a")),
    ]


def no_element():
    return [(IndexError, Sample(randn(3, 0), dim=1)), (RuntimeError, Sample(randn(0)))]


def picked(numpy):
    """Values along a dimension must be NumPy's, and stand where the indices say."""

    def check(sample, result):
        x = sample.input.detach().numpy()
        dim = sample.args[-1] if sample.args else -1
        np.testing.assert_array_equal(result[0].detach().numpy(), numpy(x, *sample.args))
        at = np.expand_dims(result[1].numpy(), dim)
        np.testing.assert_array_equal(np.take_along_axis(x, at, dim).squeeze(dim), result[0].detach().numpy())

    return check


def with_zero(x):
    """With a zero inside, where the usual formula for products divides by it."""
    x[1] = 0
    return x


def softmax(x, dim):
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


def running(f):
    return lambda x, dim: np.asarray(f(x, axis=dim))


def logcumsumexp(x, dim):
    return np.logaddexp.accumulate(x, axis=dim)


def sorted_check(sample, result):
    x, dim = sample.input.detach().numpy(), sample.args[0]
    down = sample.kwargs.get("descending", False)
    expected = np.sort(x, axis=dim)
    np.testing.assert_array_equal(result[0].detach().numpy(), np.flip(expected, dim) if down else expected)
    np.testing.assert_array_equal(np.take_along_axis(x, result[1].numpy(), dim), result[0].detach().numpy())


def topk_check(sample, result):
    x, (k, dim) = sample.input.detach().numpy(), sample.args
    expected = np.take(np.flip(np.sort(x, axis=dim), dim), range(k), dim)
    np.testing.assert_array_equal(result[0].detach().numpy(), expected)


def norm(p):
    return lambda x: np.asarray((np.abs(x) ** p).sum() ** (1 / p))


def sums(f):
    """Integers and bool are summed in int64."""

    def call(x, dim=None, keepdim=False):
        return np.asarray(f(x, axis=dim, keepdims=keepdim, dtype=np.int64 if x.dtype != np.float64 else None))

    return call


floats = lambda: [s for s in over_dims() if s.input.dtype.is_floating_point]  # noqa: E731

SPECS = [
    OpSpec("sum", over_dims, sums(np.sum), out=True, errors=wrong_dim),
    OpSpec("nansum", floats, axis(np.nansum), out=True),
    OpSpec(
        "mean",
        filled,
        axis(np.mean),
        out=True,
        errors=lambda: [*wrong_dim(), (RuntimeError, Sample(ints(3)))],
    ),
    OpSpec("nanmean", filled, axis(np.nanmean), out=True),
    OpSpec(
        "prod",
        lambda: [Sample(randn(2, 3)), Sample(with_zero(randn(5)))] + along(),
        lambda x, dim=None: np.asarray(np.prod(x, axis=dim)),
        out=True,
    ),
    OpSpec("amax", filled, axis(np.max), out=True, errors=no_element),
    OpSpec("amin", filled, axis(np.min), out=True, errors=no_element),
    OpSpec("max", along, check=picked(np.max)),
    OpSpec("min", along, check=picked(np.min)),
    OpSpec(
        "argmax",
        along,
        lambda x, d: np.argmax(x, axis=d),
        grad=False,
        out=True,
        errors=lambda: [(RuntimeError, Sample(ints(3, dtype=bool)))],
    ),
    OpSpec("argmin", along, lambda x, d: np.argmin(x, axis=d), grad=False, out=True),
    OpSpec("any", over_dims, axis(np.any), grad=False, out=True),
    OpSpec("all", over_dims, axis(np.all), grad=False, out=True),
    OpSpec(
        "count_nonzero",
        lambda: [Sample(ints(3, 4, high=2)), Sample(ints(3, 4, high=2), 1)],
        lambda x, d=None: np.asarray(np.count_nonzero(x, axis=d)),
        grad=False,
    ),
    OpSpec(
        "var",
        lambda: [s for s in filled() if s.input.dim()],
        lambda x, dim=None, keepdim=False: np.asarray(np.var(x, axis=dim, keepdims=keepdim, ddof=1)),
        out=True,
        errors=lambda: [(RuntimeError, Sample(ints(3)))],
    ),
    OpSpec(
        "std",
        lambda: [s for s in filled() if s.input.dim()],
        lambda x, dim=None, keepdim=False: np.asarray(np.std(x, axis=dim, keepdims=keepdim, ddof=1)),
        out=True,
    ),
    OpSpec(
        "var_mean",
        lambda: [Sample(randn(3, 4), 1)],
        lambda x, d: (np.var(x, axis=d, ddof=1), np.mean(x, axis=d)),
        method=False,
    ),
    OpSpec(
        "std_mean",
        lambda: [Sample(randn(3, 4), 1)],
        lambda x, d: (np.std(x, axis=d, ddof=1), np.mean(x, axis=d)),
        method=False,
    ),
    OpSpec(
        "logsumexp",
        lambda: [Sample(randn(3, 4), 1), Sample(randn(2, 3, 4), (0, 2))],
        lambda x, d: np.log(np.exp(x).sum(d)),
        out=True,
    ),
    OpSpec(
        "linalg.vector_norm", lambda: [Sample(randn(3, 4)), Sample(randn(5))], norm(2), method=False, out=True
    ),
    OpSpec(
        "norm",
        lambda: [Sample(randn(3, 4), 3), Sample(rand(4, low=0.1), 1.5)],
        lambda x, p: norm(p)(x),
        out=True,
    ),
    OpSpec("median", along, check=picked(lambda x, d: np.take(np.sort(x, d), (x.shape[d] - 1) // 2, d))),
    OpSpec(
        "kthvalue",
        lambda: [Sample(randn(3, 5), 2, 1), Sample(randn(4), 4, 0)],
        check=picked(lambda x, k, d: np.take(np.sort(x, d), k - 1, d)),
        errors=lambda: [(RuntimeError, Sample(randn(3), 4)), (IndexError, Sample(randn(2, 0), 1, 1))],
    ),
    OpSpec(
        "cumsum",
        along,
        running(np.cumsum),
        inplace=True,
        out=True,
        errors=lambda: [(IndexError, Sample(randn(3), 1))],
    ),
    OpSpec(
        "cumprod",
        lambda: along() + [Sample(with_zero(randn(5)), 0)],
        running(np.cumprod),
        inplace=True,
        out=True,
    ),
    OpSpec("logcumsumexp", along, logcumsumexp, out=True),
    OpSpec(
        "cummax",
        along,
        check=lambda s, r: np.testing.assert_array_equal(
            r[0].detach().numpy(), np.maximum.accumulate(s.input.detach().numpy(), s.args[0])
        ),
    ),
    OpSpec(
        "cummin",
        along,
        check=lambda s, r: np.testing.assert_array_equal(
            r[0].detach().numpy(), np.minimum.accumulate(s.input.detach().numpy(), s.args[0])
        ),
    ),
    OpSpec("softmax", along, softmax, out=True, errors=lambda: [(IndexError, Sample(randn(3), 1))]),
    OpSpec("log_softmax", along, lambda x, d: np.log(softmax(x, d)), out=True),
    OpSpec(
        "sort",
        lambda: (
            along()
            + [
                Sample(ints(50, high=5), 0),
                Sample(randn(300), 0, descending=True),
                Sample(ints(70000, low=-(2**40), high=2**40), 0),
            ]
        ),
        check=sorted_check,
        grad=False,
    ),
    OpSpec(
        "topk",
        lambda: [Sample(randn(3, 9), 4, 1), Sample(randn(2000), 7, 0), Sample(ints(30, high=9), 30, 0)],
        check=topk_check,
        errors=lambda: [(RuntimeError, Sample(randn(3), 4))],
    ),
    OpSpec(
        "searchsorted",
        lambda: [Sample(randn(40).sort()[0], randn(3, 5)), Sample(ints(20).sort()[0], ints(7), right=True)],
        lambda s, v, right=False: np.searchsorted(s, v, "right" if right else "left"),
        method=False,
        grad=False,
        out=True,
        errors=lambda: [(RuntimeError, Sample(randn(3), randn(3), side="up"))],
    ),
    OpSpec(
        "bincount",
        lambda: [Sample(ints(30, high=7)), Sample(ints(0), minlength=3)],
        lambda x, minlength=0: np.bincount(x, minlength=minlength),
        grad=False,
        errors=lambda: [(RuntimeError, Sample(ints(3, low=-3, high=-1)))],
    ),
    OpSpec(
        "histc",
        lambda: [Sample(randn(100), 10, -2, 2)],
        lambda x, b, lo, hi: np.histogram(x, b, (lo, hi))[0].astype(np.float64),
        grad=False,
        out=True,
    ),
    OpSpec(
        "quantile",
        lambda: [Sample(randn(3, 7), 0.3, 1), Sample(randn(9), 0.5)],
        lambda x, q, d=None: np.asarray(np.quantile(x, q, axis=d)),
        out=True,
        errors=lambda: [(RuntimeError, Sample(randn(3), 1.5)), (RuntimeError, Sample(ints(3), 0.5))],
    ),
    OpSpec(
        "unique",
        lambda: [Sample(ints(30, high=6)), Sample(ints(4, 5, high=3)), Sample(randn(0))],
        np.unique,
        grad=False,
    ),
    OpSpec(
        "diff",
        lambda: [Sample(randn(3, 6)), Sample(randn(5), n=2), Sample(randn(4, 3), dim=0)],
        lambda x, n=1, dim=-1: np.diff(x, n, dim),
        out=True,
        errors=lambda: [(RuntimeError, Sample(randn()))],
    ),
    OpSpec(
        "trapezoid",
        lambda: [Sample(randn(3, 6)), Sample(randn(3, 6), rand(6))],
        lambda y, x=None: np.asarray(np.trapezoid(y, x) if hasattr(np, "trapezoid") else np.trapz(y, x)),
        method=False,
    ),
    OpSpec("cov", lambda: [Sample(randn(3, 8))], lambda x: np.cov(x)),
    OpSpec(
        "isin",
        lambda: [Sample(ints(3, 4), ints(3)), Sample(ints(20, high=50), ints(20, high=50))],
        np.isin,
        method=False,
        grad=False,
        out=True,
    ),
    OpSpec(
        "cdist",
        lambda: [
            Sample(randn(3, 4), randn(5, 4)),
            Sample(randn(2, 3, 4), randn(2, 5, 4), p=1.0),
            Sample(randn(2, 1, 3, 4), randn(3, 5, 4), p=2.5),
            Sample(randn(3, 4), randn(40, 4), p=np.inf),
            Sample(randn(30, 2), randn(5, 2)),
        ],
        lambda a, b, p=2.0: np.linalg.norm(a[..., :, None, :] - b[..., None, :, :], p, -1),
        method=False,
        errors=lambda: [(RuntimeError, Sample(randn(3, 4), randn(3, 5)))],
    ),
    OpSpec(
        "nn.functional.pdist",
        lambda: [
            Sample(randn(4, 3)),
            Sample(randn(40, 2), 1.0),
            Sample(randn(5, 3), 3.0),
            Sample(randn(5, 3), np.inf),
        ],
        lambda a, p=2.0: np.linalg.norm(a[:, None] - a, p, -1)[np.triu_indices(len(a), 1)],
        method=False,
        errors=lambda: [(RuntimeError, Sample(randn(3))), (RuntimeError, Sample(randn(3, 2), -1.0))],
    ),
]
