"""Rules of ops that go element by element."""

import rushlight as rl

from .._C import Tensor
from .._tensor import CASTS
from .._vmap import batched_at
from ._apply import _given, own_sizes, pointwise, rule

# unary ops and those whose arguments are pairs of elements, beyond the ones that say so by their flag
rule(
    *[
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "logaddexp",
        "logaddexp2",
        "isnan",
        "isinf",
        "isfinite",
        "isposinf",
        "isneginf",
        "isreal",
        "isclose",
        "signbit",
        "float_power",
        "ldexp",
        "rsub",
        "angle",
        "real",
        "imag",
        "conj",
        "positive",
        "threshold",
        "prelu",
        "complex",
        "polar",
        "clone",
        "detach",
        "alias",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "_cast",
        "to",
        *CASTS,
        "cpu",
        "resolve_conj",
        "resolve_neg",
        "frexp",
        "fill",
        "hardshrink",
        "selu",
        "celu",
        "_where_method",
        "type_as",
        "mvlgamma",
    ],
    *(
        "nn.functional." + n
        for n in [
            "celu",
            "elu",
            "gelu",
            "hardshrink",
            "hardsigmoid",
            "hardswish",
            "hardtanh",
            "leaky_relu",
            "logsigmoid",
            "mish",
            "relu",
            "relu6",
            "selu",
            "silu",
            "softplus",
            "softshrink",
            "softsign",
            "tanhshrink",
            "threshold",
        ]
    ),
)(pointwise)


@rule("where")
def _where(func, args, kwargs, level):
    if len(args) + len(kwargs) == 1:
        return own_sizes(func, args, kwargs, level)
    return pointwise(func, args, kwargs, level)


@rule("masked_fill")
def _masked_fill(func, args, kwargs, level):
    given = _given(("input", "mask", "value"), args, kwargs)
    value = given["value"]
    if not isinstance(value, Tensor) or not batched_at(value, level.number) or value.dim():
        return pointwise(func, args, kwargs, level)
    return rl.where(given["mask"], value.to(given["input"].dtype), given["input"])
