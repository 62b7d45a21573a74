"""Rules of ops that go element by element."""

import rushlight as rl

from .._C import Tensor
from .._tensor import CASTS
from .._vmap import batched_at, wrap
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
        "detach",
        "alias",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "_cast",
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
        "mvlgamma",
        "view_as_real",
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


@rule("to", "type_as")
def _to(func, args, kwargs, level):
    x, *rest = args
    rest = [r._value if batched_at(r, level.number) else r for r in rest]
    if not batched_at(x, level.number):
        return func(x, *rest, **kwargs)
    return wrap(func(x._value, *rest, **kwargs), level.number)


@rule("clone")
def _clone(func, args, kwargs, level):
    order = kwargs.get("memory_format", args[1] if len(args) > 1 else None)
    if order not in (None, rl.preserve_format, rl.contiguous_format):
        raise RuntimeError(
            "NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format torch.preserve_format or "
            f"torch.contiguous_format (got {order})"
        )
    return wrap(func(args[0]._value, *args[1:], **kwargs), level.number)


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
