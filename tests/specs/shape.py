import itertools

import numpy as np
from opspec import OpSpec, Sample, ints, randn

import rushlight as rl


def transposed():
    return [Sample(randn(2, 3, 4)), Sample(ints(3, 2)), Sample(randn(0, 3))]


def split_parts(sizes, axis=0):
    return lambda x, *a, **k: tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def np_unfold(x, dim, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dim)
    return np.take(windows, range(0, windows.shape[dim], step), dim)


def np_diag_embed(x, offset=0):
    n = x.shape[-1] + abs(offset)
    y = np.zeros((*x.shape[:-1], n, n), dtype=x.dtype)
    for i in range(x.shape[-1]):
        y[..., i - min(offset, 0), i + max(offset, 0)] = x[..., i]
    return y


def np_written(view):
    def write(x, src, *args):
        y = x.copy()
        view(y, *args)[...] = src
        return y

    return write


def np_diagonal_scatter(x, src, k=0):
    y = x.copy()
    for i, value in enumerate(src):
        y[i - min(k, 0), i + max(k, 0)] = value
    return y


def lists():
    return [
        Sample([randn(2, 3), randn(2, 3)]),
        Sample([ints(2, 1), ints(2, 1), ints(2, 1)]),
    ]


SPECS = [
    OpSpec(
        "cat",
        lambda: [
            Sample([randn(2, 3), randn(4, 3)]),
            Sample([randn(2, 1), randn(2, 3), randn(2, 0)], 1),
            Sample([randn(2, 3), ints(1, 3)]),
            Sample([randn(3, 2).t(), randn(2, 3)], -1),
        ],
        lambda x, dim=0: np.concatenate(x, dim),
        method=False,
        out=True,
        errors=lambda: [
            (ValueError, Sample([])),
            (RuntimeError, Sample([randn(2), randn(2, 2)])),
            (RuntimeError, Sample([randn(2, 2), randn(2, 3)])),
            (RuntimeError, Sample([randn()])),
        ],
    ),
    OpSpec(
        "stack",
        lambda: [Sample([randn(2, 3), randn(2, 3)]), Sample([randn(2), randn(2)], -1), Sample([randn()], 0)],
        lambda x, dim=0: np.stack(x, dim),
        method=False,
        out=True,
        errors=lambda: [(RuntimeError, Sample([randn(2), randn(3)])), (RuntimeError, Sample([]))],
    ),
    OpSpec("hstack", lists, np.hstack, method=False, out=True),
    OpSpec("vstack", lists, np.vstack, method=False, out=True),
    OpSpec("dstack", lists, np.dstack, method=False, out=True),
    OpSpec("column_stack", lists, np.column_stack, method=False, out=True),
    OpSpec(
        "split",
        lambda: [Sample(randn(5, 2), 2), Sample(randn(2, 5), 3, 1), Sample(randn(5), [1, 4])],
        lambda x, size, dim=0: tuple(
            np.split(
                x, np.cumsum(size)[:-1] if isinstance(size, list) else range(size, x.shape[dim], size), dim
            )
        ),
        errors=lambda: [(RuntimeError, Sample(randn(5), [1, 1])), (RuntimeError, Sample(randn(5), 0))],
    ),
    OpSpec(
        "chunk",
        lambda: [Sample(randn(6, 2), 3), Sample(randn(2, 6), 2, 1)],
        lambda x, n, dim=0: tuple(np.split(x, n, dim)),
        errors=lambda: [(RuntimeError, Sample(randn(5), 0))],
    ),
    OpSpec(
        "tensor_split",
        lambda: [Sample(randn(5, 2), 3), Sample(randn(7), [2, 5]), Sample(randn(2, 4), 2, 1)],
        lambda x, n, dim=0: tuple(np.array_split(x, n, dim)),
    ),
    OpSpec(
        "unbind",
        lambda: [Sample(randn(3, 2)), Sample(randn(3, 2), 1), Sample(ints(2))],
        lambda x, dim=0: tuple(np.take(x, i, dim) for i in range(x.shape[dim])),
        errors=lambda: [(IndexError, Sample(randn()))],
    ),
    OpSpec(
        "flip",
        lambda: [
            Sample(randn(3, 4), (0,)),
            Sample(randn(3, 4), (0, -1)),
            Sample(ints(2, 3, 40), 2),
            Sample(randn(3), ()),
        ],
        lambda x, dims: np.flip(x, dims),
        errors=lambda: [(RuntimeError, Sample(randn(3), (0, 0))), (IndexError, Sample(randn(3), 1))],
    ),
    OpSpec(
        "fliplr", lambda: [Sample(randn(3, 4))], np.fliplr, errors=lambda: [(RuntimeError, Sample(randn(3)))]
    ),
    OpSpec("flipud", lambda: [Sample(randn(3, 4))], np.flipud),
    OpSpec(
        "rot90",
        lambda: [Sample(randn(3, 4), k, (0, 1)) for k in range(-1, 5)] + [Sample(randn(2, 3, 4), 1, (2, 0))],
        np.rot90,
    ),
    OpSpec(
        "roll",
        lambda: [
            Sample(randn(3, 4), 2),
            Sample(randn(3, 4), -1, 1),
            Sample(randn(3, 4), (5, -2), (0, 1)),
            Sample(randn(0, 2), 1, 0),
        ],
        np.roll,
        errors=lambda: [(RuntimeError, Sample(randn(3), (1, 2), 0)), (IndexError, Sample(randn(), 0, 0))],
    ),
    OpSpec(
        "movedim",
        lambda: [Sample(randn(2, 3, 4), 0, 2), Sample(randn(2, 3, 4), (0, 1), (-1, 0))],
        np.moveaxis,
        errors=lambda: [(RuntimeError, Sample(randn(2, 2), (0, 0), (0, 1)))],
    ),
    OpSpec("swapaxes", lambda: [Sample(randn(2, 3, 4), 0, -1)], np.swapaxes),
    OpSpec(
        "unflatten",
        lambda: [Sample(randn(2, 6), 1, (2, -1)), Sample(randn(4), 0, (2, 2))],
        lambda x, d, s: x.reshape(*x.shape[:d], *s, *x.shape[d + 1 :]),
        errors=lambda: [(RuntimeError, Sample(randn(4), 0, (3, 2)))],
    ),
    OpSpec("ravel", transposed, np.ravel),
    OpSpec("adjoint", lambda: [Sample(randn(2, 3, 4))], lambda x: np.swapaxes(x, -1, -2)),
    OpSpec(
        "diagonal",
        lambda: [Sample(randn(3, 4), k) for k in (-4, -1, 0, 2)] + [Sample(randn(2, 3, 4), 1, 0, 2)],
        np.diagonal,
        errors=lambda: [(RuntimeError, Sample(randn(2, 2), 0, 0, 0)), (IndexError, Sample(randn(2)))],
    ),
    OpSpec(
        "diag_embed", lambda: [Sample(randn(2, 3)), Sample(randn(3), 2), Sample(randn(3), -1)], np_diag_embed
    ),
    OpSpec(
        "diag", lambda: [Sample(randn(3), 1), Sample(randn(3, 4)), Sample(randn(3, 4), -1)], np.diag, out=True
    ),
    OpSpec("diagflat", lambda: [Sample(randn(2, 2)), Sample(randn(3), -1)], np.diagflat),
    OpSpec(
        "tril",
        lambda: [Sample(randn(3, 4), k) for k in (-5, -1, 0, 2)] + [Sample(ints(2, 3, 3))],
        np.tril,
        inplace=True,
        out=True,
        errors=lambda: [(RuntimeError, Sample(randn(3)))],
    ),
    OpSpec(
        "triu",
        lambda: [Sample(randn(3, 4), k) for k in (-5, -1, 0, 2)] + [Sample(ints(2, 3, 3))],
        np.triu,
        inplace=True,
        out=True,
    ),
    OpSpec(
        "tile", lambda: [Sample(randn(2, 3), (2,)), Sample(randn(3), (2, 2)), Sample(randn(2), (0,))], np.tile
    ),
    OpSpec(
        "repeat_interleave",
        lambda: [
            Sample(randn(2, 3), 2),
            Sample(randn(2, 3), 2, 1),
            Sample(randn(3, 2), rl.tensor([2, 0, 1]), 0),
            Sample(randn(2, 2), rl.tensor([1, 2, 0, 1])),
        ],
        np.repeat,
        errors=lambda: [
            (RuntimeError, Sample(randn(2), -1)),
            (RuntimeError, Sample(randn(2), rl.tensor([1, -2]))),
        ],
    ),
    OpSpec(
        "Tensor.unfold",
        lambda: [Sample(randn(7), 0, 3, 2), Sample(randn(4, 5), 1, 2, 1), Sample(randn(4), 0, 4, 1)],
        np_unfold,
        method=False,
        errors=lambda: [(RuntimeError, Sample(randn(3), 0, 4, 1)), (RuntimeError, Sample(randn(3), 0, 1, 0))],
    ),
    OpSpec(
        "Tensor.repeat",
        lambda: [Sample(randn(2, 3), 2, 1), Sample(randn(3), 2, 2)],
        lambda x, *r: np.tile(x, r),
        method=False,
    ),
    OpSpec("broadcast_to", lambda: [Sample(randn(3, 1), (2, 3, 4)), Sample(randn(), (2,))], np.broadcast_to),
    OpSpec(
        "meshgrid",
        lambda: [Sample(randn(2), randn(3), indexing=i) for i in ("ij", "xy")],
        lambda *x, indexing: tuple(np.meshgrid(*x, indexing=indexing)),
        method=False,
    ),
    OpSpec(
        "cartesian_prod",
        lambda: [Sample(randn(2), randn(3)), Sample(ints(2), ints(3), ints(2))],
        lambda *x: np.array(list(itertools.product(*x)), dtype=x[0].dtype),
        method=False,
    ),
    OpSpec(
        "combinations",
        lambda: [Sample(randn(4)), Sample(randn(3), 3), Sample(randn(3), 2, True)],
        lambda x, r=2, again=False: np.array(
            list((itertools.combinations_with_replacement if again else itertools.combinations)(x, r))
        ),
        method=False,
    ),
    OpSpec(
        "select_scatter",
        lambda: [Sample(randn(3, 4), randn(4), 0, 1), Sample(randn(3, 4), randn(3), -1, -1)],
        np_written(lambda y, d, i: np.moveaxis(y, d, 0)[i]),
        errors=lambda: [(RuntimeError, Sample(randn(3, 4), randn(3), 0, 1))],
    ),
    OpSpec(
        "slice_scatter",
        lambda: [Sample(randn(5, 2), randn(2, 2), 0, 1, 5, 2), Sample(randn(2, 5), randn(2, 3), 1, 2)],
        np_written(
            lambda y, d, *s: np.moveaxis(
                np.moveaxis(y, d, 0)[slice(*s) if len(s) > 1 else slice(*s, None)], 0, d
            )
        ),
    ),
    OpSpec(
        "diagonal_scatter",
        lambda: [Sample(randn(3, 3), randn(3)), Sample(randn(3, 4), randn(2), -1)],
        np_diagonal_scatter,
    ),
    OpSpec(
        "view_as_real",
        lambda: [Sample(rl.tensor([1 + 2j, 3 - 1j], dtype=rl.complex128))],
        lambda x: np.stack([x.real, x.imag], -1),
        method=False,
    ),
    OpSpec("atleast_3d", transposed, lambda x: x if x.ndim > 2 else x[..., None], method=False),
]
