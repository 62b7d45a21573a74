import numpy as np
from opspec import OpSpec, Sample, ints, randn

import rushlight as rl


def c(*size):
    """Complex numbers."""
    return rl.tensor(randn(*size).numpy() + 1j * randn(*size).numpy())


def matmul_samples():
    return [
        Sample(randn(3, 4), randn(4, 2)),
        Sample(randn(4), randn(4)),
        Sample(randn(3, 4), randn(4)),
        Sample(randn(4), randn(4, 2)),
        Sample(randn(2, 3, 4), randn(4, 2)),
        Sample(randn(3, 4), randn(2, 4, 2)),
        Sample(randn(2, 1, 3, 4), randn(5, 4, 2)),
        Sample(randn(5, 3, 4), randn(4)),
        Sample(randn(4), randn(5, 4, 2)),
        Sample(randn(4, 3).t(), randn(2, 4).t()),
        Sample(randn(0, 4), randn(4, 2)),
        Sample(randn(3, 0), randn(0, 2)),
        Sample(c(3, 4), c(4, 2)),
        Sample(ints(3, 4), ints(4, 5)),
    ]


def mismatched():
    return [
        (RuntimeError, Sample(randn(3, 4), randn(3, 4))),
        (RuntimeError, Sample(randn(3, 4), ints(4, 2))),
        (TypeError, Sample(randn(3, 4), "x")),
    ]


def add_matmul(c, a, b, beta=1, alpha=1):
    return beta * c + alpha * (a @ b)


def linear(x, w, b=None):
    return x @ w.T if b is None else x @ w.T + b


SPECS = [
    OpSpec("matmul", matmul_samples, np.matmul, out=True, errors=mismatched),
    OpSpec(
        "mm",
        lambda: [
            Sample(randn(3, 4), randn(4, 2)),
            Sample(c(2, 3), c(3, 3)),
            Sample(randn(65, 70), randn(70, 66)),
        ],
        np.matmul,
        out=True,
        errors=mismatched,
    ),
    OpSpec(
        "bmm",
        lambda: [Sample(randn(2, 3, 4), randn(2, 4, 2)), Sample(c(2, 2, 3), c(2, 3, 1))],
        np.matmul,
        out=True,
    ),
    OpSpec("mv", lambda: [Sample(randn(3, 4), randn(4)), Sample(c(3, 2), c(2))], np.matmul, out=True),
    OpSpec(
        "dot",
        lambda: [Sample(randn(4), randn(4)), Sample(c(3), c(3)), Sample(ints(5), ints(5))],
        np.dot,
        out=True,
    ),
    OpSpec("vdot", lambda: [Sample(randn(4), randn(4)), Sample(c(3), c(3))], np.vdot, out=True),
    OpSpec("outer", lambda: [Sample(randn(3), randn(4)), Sample(c(3), c(2))], np.outer, out=True),
    OpSpec(
        "inner", lambda: [Sample(randn(2, 3), randn(4, 3)), Sample(randn(3), randn(3))], np.inner, out=True
    ),
    OpSpec(
        "kron", lambda: [Sample(randn(2, 3), randn(3, 2)), Sample(randn(3), randn(2, 2))], np.kron, out=True
    ),
    OpSpec("trace", lambda: [Sample(randn(3, 4)), Sample(ints(3, 3))], np.trace, out=True),
    OpSpec(
        "nn.functional.linear",
        lambda: [
            Sample(randn(3, 4), randn(2, 4), randn(2)),
            Sample(randn(2, 3, 4), randn(5, 4), randn(5)),
            Sample(randn(4), randn(5, 4)),
            Sample(c(3, 4), c(2, 4), c(2)),
        ],
        linear,
        method=False,
    ),
    OpSpec(
        "addmm",
        lambda: [
            Sample(randn(3, 2), randn(3, 4), randn(4, 2)),
            Sample(randn(2), randn(3, 4), randn(4, 2), beta=0.5, alpha=2.0),
            Sample(randn(), randn(3, 4), randn(4, 2), beta=0.5),
        ],
        add_matmul,
        inplace=False,
        out=True,
    ),
    OpSpec(
        "baddbmm",
        lambda: [Sample(randn(2, 3, 2), randn(2, 3, 4), randn(2, 4, 2), alpha=2.0)],
        add_matmul,
        out=True,
    ),
    OpSpec(
        "addbmm",
        lambda: [Sample(randn(3, 2), randn(5, 3, 4), randn(5, 4, 2), beta=2.0)],
        lambda c, a, b, beta: beta * c + (a @ b).sum(0),
        inplace=True,
        out=True,
    ),
    OpSpec(
        "addmv",
        lambda: [Sample(randn(3), randn(3, 4), randn(4), beta=2.0)],
        add_matmul,
        inplace=True,
        out=True,
    ),
    OpSpec(
        "addr",
        lambda: [Sample(randn(3, 4), randn(3), randn(4), alpha=0.5)],
        lambda c, a, b, alpha: c + alpha * np.outer(a, b),
        inplace=True,
        out=True,
    ),
    OpSpec(
        "einsum",
        lambda: [
            Sample("ij,jk->ik", randn(2, 3), randn(3, 4)),
            Sample("bij,bjk", randn(2, 2, 3), randn(2, 3, 2)),
            Sample("ii->i", randn(3, 3)),
            Sample("...i,ij->...j", randn(2, 3, 4), randn(4, 2)),
            Sample("i,j,k->ijk", randn(2), randn(3), randn(2)),
            Sample("bhqd,bhkd->bhqk", randn(2, 2, 3, 4), randn(2, 2, 5, 4)),
            Sample("ij->", randn(2, 3)),
        ],
        np.einsum,
        method=False,
        errors=lambda: [
            (RuntimeError, Sample("ij,jk", randn(2, 3), randn(4, 2))),
            (RuntimeError, Sample("i->ii", randn(2))),
            (RuntimeError, Sample("i1->i", randn(2, 2))),
        ],
    ),
    OpSpec(
        "tensordot",
        lambda: [Sample(randn(2, 3, 4), randn(3, 4, 2)), Sample(randn(2, 3), randn(2, 3), dims=([0], [0]))],
        lambda a, b, dims=2: np.tensordot(a, b, dims),
        method=False,
        out=True,
    ),
    OpSpec("cross", lambda: [Sample(randn(2, 3), randn(2, 3)), Sample(c(3), c(3))], np.cross, out=True),
]
