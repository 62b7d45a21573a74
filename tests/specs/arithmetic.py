import numpy as np
from opspec import OpSpec, Sample, ints, rand, randn


def pairs():
    return [
        Sample(randn(3, 4), randn(3, 4)),
        Sample(randn(3, 1), randn(4)),
        Sample(randn(), randn(2)),
        Sample(randn(0, 3), randn(3)),
        Sample(randn(2, 3), 2.5),
        Sample(randn(2, 3).t(), randn(3, 2)),
        Sample(ints(3), ints(3, low=1)),
    ]


def mismatched():
    return [(RuntimeError, Sample(randn(3), randn(4))), (TypeError, Sample(randn(3), "4"))]


SPECS = [
    OpSpec("add", pairs, np.add, inplace=True, out=True, errors=mismatched),
    OpSpec("sub", pairs, np.subtract, inplace=True, out=True, errors=mismatched),
    OpSpec("mul", pairs, np.multiply, inplace=True, out=True, errors=mismatched),
    OpSpec(
        "div",
        lambda: [Sample(randn(3, 4), rand(3, 4, low=1, high=2)), Sample(randn(3), 2.0), Sample(ints(3), 2)],
        lambda a, b: np.true_divide(a, b).astype(np.float32) if a.dtype == np.int64 else np.true_divide(a, b),
        inplace=True,
        out=True,
    ),
    OpSpec(
        "neg",
        lambda: [Sample(randn(3, 4)), Sample(randn()), Sample(ints(0))],
        np.negative,
        inplace=True,
        out=True,
    ),
]
