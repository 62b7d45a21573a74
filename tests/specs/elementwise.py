"""Elementwise ops with a NumPy twin."""

import numpy as np
from opspec import OpSpec, Sample, ints, rand, randn


def wave():
    """Shapes, memory orders and an integer input (which becomes float32)."""
    return [
        Sample(randn(3, 4)),
        Sample(randn()),
        Sample(randn(2, 3).t()),
        Sample(randn(0, 2)),
        Sample(randn(1, 5)),
    ]


def between(low, high):
    return lambda: [
        Sample(rand(3, 4, low=low, high=high)),
        Sample(rand(low=low, high=high)),
        Sample(rand(3, 2, low=low, high=high).t()),
        Sample(rand(0, low=low, high=high)),
    ]


def unary(name, numpy, samples=wave, **kwargs):
    return OpSpec(name, samples, numpy, inplace=True, out=True, **kwargs)


def pairs(low=-2.0, high=2.0):
    def samples():
        def draw(*size):
            return rand(*size, low=low, high=high)

        return [
            Sample(draw(3, 4), draw(3, 4)),
            Sample(draw(3, 1), draw(4)),
            Sample(draw(), draw(2)),
            Sample(draw(0, 3), draw(3)),
            Sample(draw(2, 3).t(), draw(3, 2)),
        ]

    return samples


def integers():
    return [
        Sample(ints(3, 4), ints(3, 4, low=1)),
        Sample(ints(4, low=-9, high=-1), ints(4, low=-5, high=-1)),
        Sample(ints(3), 3),
    ]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


POWERS = [
    unary("exp", np.exp),
    unary("exp2", np.exp2),
    unary("expm1", np.expm1),
    unary("log", np.log, between(0.2, 4)),
    unary("log2", np.log2, between(0.2, 4)),
    unary("log10", np.log10, between(0.2, 4)),
    unary("log1p", np.log1p, between(-0.8, 4)),
    unary("sqrt", np.sqrt, between(0.2, 4)),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), between(0.2, 4)),
    unary("square", np.square),
    unary("reciprocal", np.reciprocal, between(0.3, 4)),
    unary("sigmoid", sigmoid),
    OpSpec("pow", pairs(0.2, 2), np.power, inplace=True, out=True),
    OpSpec(
        "float_power",
        lambda: [Sample(rand(3), 2.5), Sample(rand(3), ints(3, low=1)), Sample(ints(3, low=1), -1)],
        np.float_power,
        out=True,
    ),
    OpSpec("logaddexp", pairs(), np.logaddexp, out=True),
    OpSpec("logaddexp2", pairs(), np.logaddexp2, out=True),
    OpSpec("xlogy", pairs(0.2, 2), lambda a, b: a * np.log(b), inplace=True, out=True),
]

TRIGONOMETRY = [
    unary("sin", np.sin),
    unary("cos", np.cos),
    unary("tan", np.tan, between(-1.2, 1.2)),
    unary("asin", np.arcsin, between(-0.9, 0.9)),
    unary("acos", np.arccos, between(-0.9, 0.9)),
    unary("atan", np.arctan),
    unary("sinh", np.sinh),
    unary("cosh", np.cosh),
    unary("tanh", np.tanh),
    unary("asinh", np.arcsinh),
    unary("acosh", np.arccosh, between(1.2, 4)),
    unary("atanh", np.arctanh, between(-0.9, 0.9)),
    unary("sinc", np.sinc, between(0.1, 2)),
    unary("deg2rad", np.deg2rad),
    unary("rad2deg", np.rad2deg),
    OpSpec("atan2", pairs(0.2, 2), np.arctan2, inplace=True, out=True),
    OpSpec("hypot", pairs(0.2, 2), np.hypot, inplace=True, out=True),
]

ROUNDING = [
    unary("ceil", np.ceil),
    unary("floor", np.floor),
    unary("trunc", np.trunc),
    unary("round", np.round),
    unary("frac", lambda x: x - np.trunc(x)),
    unary("abs", np.abs),
    unary("sign", np.sign),
    unary("sgn", np.sign),
    OpSpec("positive", wave, np.positive),
    OpSpec("copysign", pairs(0.2, 2), np.copysign, inplace=True, out=True),
    OpSpec("nextafter", pairs(), np.nextafter, grad=False, inplace=True, out=True),
    OpSpec("heaviside", pairs(), np.heaviside, grad=False, inplace=True, out=True),
    # Away from powers of two, where its parts jump.
    OpSpec("frexp", lambda: [*between(0.55, 0.95)(), *between(-3.8, -2.2)()], np.frexp),
    OpSpec("ldexp", lambda: [Sample(randn(3), ints(3))], lambda a, b: a * 2.0**b, out=True),
]

DIVISION = [
    OpSpec("floor_divide", integers, np.floor_divide, grad=False, inplace=True, out=True),
    OpSpec("remainder", lambda: [*pairs(0.3, 2)(), *integers()], np.remainder, inplace=True, out=True),
    OpSpec("fmod", lambda: [*pairs(0.3, 2)(), *integers()], np.fmod, inplace=True, out=True),
    OpSpec("true_divide", pairs(0.3, 2), np.true_divide, inplace=True, out=True),
    OpSpec(
        "gcd",
        lambda: [Sample(ints(3, 4), ints(3, 4, low=1)), Sample(ints(4), ints())],
        np.gcd,
        grad=False,
        inplace=True,
        out=True,
    ),
    OpSpec(
        "lcm", lambda: [Sample(ints(3, 4), ints(3, 4, low=1))], np.lcm, grad=False, inplace=True, out=True
    ),
    OpSpec("rsub", pairs(), lambda a, b: b - a, method=False),
]


def compare(name, numpy):
    samples = lambda: [*pairs()(), *integers(), Sample(randn(3), 0.5)]  # noqa: E731
    return OpSpec(name, samples, numpy, grad=False, out=True)


COMPARISON = [
    compare("eq", np.equal),
    compare("ne", np.not_equal),
    compare("lt", np.less),
    compare("le", np.less_equal),
    compare("gt", np.greater),
    compare("ge", np.greater_equal),
    OpSpec("logical_and", pairs(), np.logical_and, grad=False, out=True),
    OpSpec("logical_or", pairs(), np.logical_or, grad=False, out=True),
    OpSpec("logical_xor", pairs(), np.logical_xor, grad=False, out=True),
    OpSpec("logical_not", wave, np.logical_not, grad=False, out=True),
    OpSpec("isnan", wave, np.isnan, grad=False),
    OpSpec("isinf", wave, np.isinf, grad=False),
    OpSpec("isfinite", wave, np.isfinite, grad=False),
    OpSpec("isposinf", wave, np.isposinf, grad=False, out=True),
    OpSpec("isneginf", wave, np.isneginf, grad=False, out=True),
    OpSpec("isreal", wave, np.isreal, grad=False),
    OpSpec("signbit", wave, np.signbit, grad=False, out=True),
    OpSpec("isclose", pairs(), np.isclose, grad=False),
    OpSpec("allclose", pairs(), np.allclose, grad=False),
    OpSpec(
        "equal", lambda: [Sample(ints(3), ints(3)), Sample(randn(2), randn(3))], np.array_equal, grad=False
    ),
    OpSpec("bitwise_and", integers, np.bitwise_and, grad=False, inplace=True, out=True),
    OpSpec("bitwise_or", integers, np.bitwise_or, grad=False, inplace=True, out=True),
    OpSpec("bitwise_xor", integers, np.bitwise_xor, grad=False, inplace=True, out=True),
    OpSpec("bitwise_not", lambda: [Sample(ints(3, 4))], np.bitwise_not, grad=False, inplace=True, out=True),
    OpSpec(
        "bitwise_left_shift",
        lambda: [Sample(ints(4), ints(4))],
        np.left_shift,
        grad=False,
        inplace=True,
        out=True,
    ),
    OpSpec(
        "bitwise_right_shift",
        lambda: [Sample(ints(4, high=999), ints(4))],
        np.right_shift,
        grad=False,
        inplace=True,
        out=True,
    ),
]

CHOICE = [
    OpSpec("maximum", pairs(), np.maximum, out=True),
    OpSpec("minimum", pairs(), np.minimum, out=True),
    OpSpec("fmax", pairs(), np.fmax, out=True),
    OpSpec("fmin", pairs(), np.fmin, out=True),
    OpSpec(
        "clamp",
        lambda: [
            Sample(randn(3, 4), -0.5, 0.7),
            Sample(randn(4), min=0.1),
            Sample(randn(2, 3), randn(3) - 1, randn(3) + 1),
        ],
        lambda x, min=None, max=None: np.clip(x, min, max),
        inplace=True,
        out=True,
        errors=lambda: [(RuntimeError, Sample(randn(3)))],
    ),
    OpSpec(
        "clamp_min",
        lambda: [Sample(randn(3, 4), 0.1), Sample(randn(3), randn(3))],
        np.maximum,
        inplace=True,
        out=True,
    ),
    OpSpec(
        "clamp_max",
        lambda: [Sample(randn(3, 4), 0.1), Sample(randn(3), randn(3))],
        np.minimum,
        inplace=True,
        out=True,
    ),
    OpSpec("nan_to_num", wave, np.nan_to_num, inplace=True, out=True),
    OpSpec(
        "where",
        lambda: [Sample(randn(3, 4) > 0, randn(3, 4), randn(4)), Sample(randn(3) > 0, 1.0, randn(3))],
        np.where,
        method=False,
    ),
    OpSpec(
        "lerp",
        lambda: [Sample(randn(3, 4), randn(4), 0.3), Sample(randn(3), randn(3), rand(3))],
        lambda a, b, w: a + w * (b - a),
        inplace=True,
        out=True,
    ),
    OpSpec(
        "addcmul",
        lambda: [Sample(randn(3, 4), randn(4), randn(3, 1), value=0.5)],
        lambda x, a, b, value: x + value * a * b,
        inplace=True,
        out=True,
    ),
    OpSpec(
        "addcdiv",
        lambda: [Sample(randn(3, 4), randn(4), rand(3, 1, low=1, high=2), value=0.5)],
        lambda x, a, b, value: x + value * a / b,
        inplace=True,
        out=True,
    ),
]

SPECS = POWERS + TRIGONOMETRY + ROUNDING + DIVISION + COMPARISON + CHOICE
