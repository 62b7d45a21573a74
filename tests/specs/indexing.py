import numpy as np
from opspec import OpSpec, Sample, ints, randn

import rushlight as rl


def at(*values):
    return rl.tensor(np.array(values, dtype=np.int64))


def mask(*shape):
    return rl.tensor(np.arange(int(np.prod(shape))).reshape(shape) % 3 == 0)


def np_gather(x, dim, index):
    if x.ndim == 0:
        return x.reshape(1)[index]
    cut = tuple(slice(0, n) if d != dim % x.ndim else slice(None) for d, n in enumerate(index.shape))
    return np.take_along_axis(x[cut], index, dim)


def np_scatter(combine):
    def scatter(x, dim, index, src, *args, **kwargs):
        y = x.copy()
        for at in np.ndindex(index.shape):
            target = list(at)
            target[dim] = index[at]
            y[tuple(target)] = combine(y[tuple(target)], src[at] if isinstance(src, np.ndarray) else src)
        return y

    return scatter


def np_slices(combine):
    def write(x, dim, index, source, alpha=1):
        y = x.copy()
        for k, i in enumerate(index):
            at = [slice(None)] * x.ndim
            at[dim] = i
            s = source if not isinstance(source, np.ndarray) else np.take(source, k, dim)
            y[tuple(at)] = combine(y[tuple(at)], s * alpha)
        return y

    return write


def np_put(x, indices, values, accumulate=False):
    y = x.copy()
    indices = tuple(slice(None) if i is None else np.asarray(i) for i in indices)
    if accumulate:
        np.add.at(y, indices, values)
    else:
        y[indices] = values
    return y


def np_put_flat(x, index, source, accumulate=False):
    return np_put(x.reshape(-1), (index,), source, accumulate).reshape(x.shape)


def np_masked_fill(x, mask, value):
    return np.where(mask, np.asarray(value, dtype=x.dtype), x)


def np_masked_scatter(x, mask, source):
    y = np.array(np.broadcast_arrays(x, mask)[0])
    full = np.broadcast_to(mask, y.shape)
    y[full] = source.reshape(-1)[: full.sum()]
    return y


def set_(there, value):
    return value


def scatter_samples():
    return [
        Sample(randn(3, 4), 0, rl.tensor([[0, 1, 2, 0], [2, 0, 0, 1]]), randn(2, 4)),
        Sample(randn(3, 4), -1, rl.tensor([[3, 1], [0, 2], [1, 3]]), randn(3, 2)),
        Sample(randn(5), 0, at(4, 0, 1), randn(3)),
        Sample(randn(2, 3), 1, rl.tensor(np.zeros((2, 0), dtype=np.int64)), randn(2, 0)),
        Sample(ints(6), 0, at(1, 5), ints(2)),
    ]


def out_of_bounds():
    return [
        (RuntimeError, Sample(randn(3), 0, at(3), randn(1))),
        (RuntimeError, Sample(randn(3), 0, at(-1), randn(1))),
        (IndexError, Sample(randn(3), 2, at(0), randn(1))),
        (RuntimeError, Sample(randn(3), 0, rl.tensor([0.5]), randn(1))),
        (RuntimeError, Sample(randn(3, 3), 0, at(0), randn(1))),
    ]


def slice_samples():
    return [
        Sample(randn(4, 3), 0, at(2, 0), randn(2, 3)),
        Sample(randn(2, 5, 2), 1, at(4, 1, 0), randn(2, 3, 2)),
        Sample(randn(3), -1, at(1), randn(1)),
    ]


def many(reduce, include_self):
    index = rl.tensor([[0, 1, 0], [0, 1, 2]])
    return [Sample(randn(3, 3), 0, index, randn(2, 3), reduce, include_self=include_self)]


def np_scatter_reduce(x, dim, index, src, reduce, include_self):
    y = x.copy()
    for at in np.ndindex(*x.shape):
        values = [x[at]] if include_self else []
        for k in range(index.shape[dim]):
            source = list(at)
            source[dim] = k
            if (
                all(s < n for s, n in zip(source, index.shape, strict=True))
                and index[tuple(source)] == at[dim]
            ):
                values.append(src[tuple(source)])
        if values:
            f = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
            y[at] = f(values)
    return y


def reduce_samples():
    return [s for r in ("sum", "prod", "mean", "amax", "amin") for on in (True, False) for s in many(r, on)]


SPECS = [
    OpSpec(
        "gather",
        lambda: [
            Sample(randn(3, 4), 0, rl.tensor([[0, 2, 1, 1]])),
            Sample(randn(3, 4), 1, rl.tensor([[3, 0], [1, 1], [2, 2]])),
            Sample(randn(4), 0, at()),
            Sample(ints(2, 3, 2), -1, ints(2, 3, 5, high=2)),
        ],
        np_gather,
        out=True,
        errors=lambda: [
            (RuntimeError, Sample(randn(3), 0, at(3))),
            (RuntimeError, Sample(randn(3), 0, at(-1))),
        ],
    ),
    OpSpec("scatter", scatter_samples, np_scatter(set_), inplace=True, out=True, errors=out_of_bounds),
    OpSpec("scatter_add", scatter_samples, np_scatter(np.add), inplace=True, out=True, errors=out_of_bounds),
    OpSpec("scatter_reduce", reduce_samples, np_scatter_reduce, inplace=True, out=True),
    OpSpec(
        "index_select",
        lambda: [
            Sample(randn(4, 3), 0, at(3, 0, 0)),
            Sample(randn(2, 5), -1, at()),
            Sample(randn(3, 2, 2), 1, at(1)),
        ],
        lambda x, dim, index: np.take(x, index, dim),
        out=True,
        errors=lambda: [
            (IndexError, Sample(randn(3), 0, at(3))),
            (IndexError, Sample(randn(3), 0, rl.tensor([[0]]))),
        ],
    ),
    OpSpec(
        "index_add",
        lambda: [*slice_samples(), Sample(randn(3, 2), 0, at(0, 0, 2), randn(3, 2), alpha=2.5)],
        np_slices(np.add),
        inplace=True,
        out=True,
        errors=lambda: [(RuntimeError, Sample(randn(3), 0, at(0, 1), randn(1)))],
    ),
    OpSpec("index_copy", slice_samples, np_slices(set_), inplace=True, out=True),
    OpSpec(
        "index_fill",
        lambda: [Sample(randn(4, 3), 0, at(2, 0), 1.5), Sample(randn(4, 3), 1, at(-1), -2.0)],
        np_slices(set_),
        inplace=True,
        errors=lambda: [(IndexError, Sample(randn(3), 0, at(3), 0.0))],
    ),
    OpSpec(
        "index_reduce",
        lambda: [
            Sample(randn(4, 3), 0, at(2, 0, 2), randn(3, 3), r, include_self=on)
            for r in ("prod", "mean", "amax", "amin")
            for on in (True, False)
        ],
        lambda x, dim, index, source, reduce, include_self: np_scatter_reduce(
            x, dim, np.broadcast_to(index[:, None], source.shape), source, reduce, include_self
        ),
        inplace=True,
    ),
    OpSpec(
        "index_put",
        lambda: [
            Sample(randn(4, 3), (at(2, 0),), randn(2, 3)),
            Sample(randn(4, 3), (at(2, 2), at(1, 1)), randn(2), True),
            Sample(randn(4, 3), (at(-1, 0), at(1, 2)), randn()),
        ],
        np_put,
        inplace=True,
        errors=lambda: [
            (IndexError, Sample(randn(3), (at(3),), randn(1))),
            (RuntimeError, Sample(randn(3), (at(0),), ints(1))),
            (RuntimeError, Sample(randn(3), (at(0, 1),), randn(3))),
        ],
    ),
    OpSpec(
        "take",
        lambda: [Sample(randn(3, 4), rl.tensor([[0, 11], [-1, 5]])), Sample(randn(3), at())],
        lambda x, index: x.reshape(-1)[index],
        out=True,
        errors=lambda: [(IndexError, Sample(randn(3), at(3))), (IndexError, Sample(randn(0), at(0)))],
    ),
    OpSpec(
        "put",
        lambda: [Sample(randn(3, 4), at(0, 5, -1), randn(3)), Sample(randn(3), at(1, 1), randn(2), True)],
        np_put_flat,
        inplace=True,
    ),
    OpSpec(
        "take_along_dim",
        lambda: [Sample(randn(3, 4), rl.tensor([[0], [2], [1]]), 1), Sample(randn(3, 4), at(11, 0))],
        lambda x, i, d=None: np.take_along_axis(x, i, d),
    ),
    OpSpec(
        "masked_fill",
        lambda: [
            Sample(randn(3, 4), mask(3, 4), 2.5),
            Sample(randn(3, 4), mask(4), randn()),
            Sample(ints(3), mask(3), 1),
        ],
        np_masked_fill,
        inplace=True,
        errors=lambda: [(RuntimeError, Sample(randn(3), ints(3), 1.0))],
    ),
    OpSpec(
        "masked_select",
        lambda: [
            Sample(randn(3, 4), mask(3, 4)),
            Sample(randn(3, 1), mask(4)),
            Sample(randn(40, 500), mask(40, 500)),
        ],
        lambda x, m: (
            x[m] if x.shape == m.shape else np.broadcast_arrays(x, m)[0][np.broadcast_arrays(x, m)[1]]
        ),
        out=True,
        grad=False,
    ),
    OpSpec(
        "masked_scatter",
        lambda: [Sample(randn(3, 4), mask(3, 4), randn(5)), Sample(randn(3, 4), mask(4), randn(12))],
        np_masked_scatter,
        inplace=True,
        errors=lambda: [(RuntimeError, Sample(randn(4), mask(4), randn(1)))],
    ),
    OpSpec(
        "nonzero",
        lambda: [
            Sample(ints(3, 4, high=2)),
            Sample(mask(50, 700)),
            Sample(randn(0, 3)),
            Sample(mask(4, 3, 2)),
        ],
        np.argwhere,
        grad=False,
    ),
    OpSpec("argwhere", lambda: [Sample(ints(3, 4, high=2))], np.argwhere, grad=False),
]
