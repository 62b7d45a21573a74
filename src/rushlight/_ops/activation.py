"""Activations composed of other ops."""

from .. import _C
from .._compose import op

_ops = _C.ops


def _rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """input, or a slope times input below 0; in training each element draws its slope from [lower, upper]."""
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}")
    if not training:
        return _ops["nn.functional.leaky_relu"](input, (lower + upper) / 2)
    slope = _ops["empty_like"](input).uniform_(lower, upper, generator=generator)
    return _ops["where"](input <= 0, input * slope, input)


@op
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    return _rrelu(input, lower, upper, training, generator)


@op
def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    return _ops["_assign"]("rrelu_", input, _rrelu(input, lower, upper, training, generator))


@op(name="nn.functional.rrelu")
def rrelu_functional(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    result = _rrelu(input, lower, upper, training)
    return _ops["_assign"]("rrelu_", input, result) if inplace else result


@op(name="nn.functional.rrelu_")
def rrelu_functional_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    return _ops["_assign"]("rrelu_", input, _rrelu(input, lower, upper, training))
