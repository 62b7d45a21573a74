"""Activations of nn.functional, against their formulas in NumPy."""

import numpy as np
from opspec import OpSpec, Sample, rand, randn


def waves(*args, **kwargs):
    return lambda: [
        Sample(x, *args, **kwargs) for x in (randn(3, 4), randn(), randn(2, 3).t(), randn(0, 2), 4 * randn(7))
    ]


def f(name, numpy, *args, **kwargs):
    return OpSpec("nn.functional." + name, waves(*args, **kwargs), numpy, method=False)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, 30))) / beta)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def gelu_tanh(x, approximate):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu(x):
    from math import erf

    return 0.5 * x * (1 + np.vectorize(erf, otypes=[np.float64])(x / np.sqrt(2)))


def shrink(x, lambd):
    return np.where(np.abs(x) <= lambd, 0, x - np.copysign(lambd, x))


SPECS = [
    f("relu", lambda x: np.maximum(x, 0)),
    f("relu6", lambda x: np.clip(x, 0, 6)),
    f("leaky_relu", lambda x, s: np.where(x > 0, x, s * x), 0.1),
    f("hardtanh", np.clip, -0.7, 0.9),
    f("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6),
    f("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    f("hardshrink", lambda x, a: np.where(np.abs(x) <= a, 0, x), 0.4),
    f("softshrink", shrink, 0.4),
    f("threshold", lambda x, t, v: np.where(x > t, x, v), 0.1, 5.0),
    f("elu", elu, 1.3),
    f("selu", lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772)),
    f("celu", lambda x, a: np.maximum(x, 0) + np.minimum(0, a * np.expm1(x / a)), 1.3),
    f("gelu", gelu),
    f("gelu", gelu_tanh, approximate="tanh"),
    f("silu", lambda x: x * sigmoid(x)),
    f("mish", lambda x: x * np.tanh(softplus(x))),
    f("softplus", softplus, 2.0, 5.0),
    f("logsigmoid", lambda x: -softplus(-x, 1.0, 700)),
    f("softsign", lambda x: x / (1 + np.abs(x))),
    f("tanhshrink", lambda x: x - np.tanh(x)),
    OpSpec(
        "nn.functional.glu",
        lambda: [Sample(randn(3, 4)), Sample(randn(4, 3), 0)],
        lambda x, dim=-1: np.split(x, 2, dim)[0] * sigmoid(np.split(x, 2, dim)[1]),
        method=False,
        errors=lambda: [(RuntimeError, Sample(randn(3))), (RuntimeError, Sample(randn()))],
    ),
    OpSpec(
        "nn.functional.prelu",
        lambda: [Sample(randn(2, 3, 4), rand(3)), Sample(randn(4), rand(1))],
        lambda x, w: np.where(x > 0, x, x * (w.reshape(1, -1, 1) if x.ndim == 3 else w)),
        method=False,
        errors=lambda: [(RuntimeError, Sample(randn(2, 3), rand(2)))],
    ),
]
