"""Activations composed of other ops."""

from __future__ import annotations

from rushlight._C import Generator, Tensor

from .. import _C
from .._compose import op

_ops = _C.ops


def _rrelu(input, lower, upper, training, generator=None):
    """input, or up to 0 a slope times input; in training each element draws its own from [lower, upper]."""
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}"
        )
    if not training:
        return _ops["nn.functional.leaky_relu"](input, (lower + upper) / 2)
    below = input.detach() <= 0
    # Drawn in double and only where needed, so that the stream of random numbers is torch's.
    drawn = _ops["empty"](int(below.sum()), dtype=_C.float64, device=input.device).uniform_(
        lower, upper, generator=generator
    )
    slope = _ops["ones_like"](input.detach()).masked_scatter_(below, drawn.to(input.dtype))
    return input * slope


def _rrelu_in_place(input, lower, upper, training, generator=None):
    if not training and lower <= upper:  # backward knows the result alone, and refuses a negative slope
        return _ops["nn.functional.leaky_relu_"](input, (lower + upper) / 2)
    return _ops["_assign"]("rrelu_", input, _rrelu(input, lower, upper, training, generator))


@op
def rrelu(
    input: Tensor,
    lower: complex = 1.0 / 8,
    upper: complex = 1.0 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """x where x > 0, else x times a slope drawn from lower to upper (their mean when not training)."""
    return _rrelu(input, lower, upper, training, generator)


@op
def rrelu_(
    input: Tensor,
    lower: complex = 1.0 / 8,
    upper: complex = 1.0 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """rrelu in place."""
    return _rrelu_in_place(input, lower, upper, training, generator)


@op(name="nn.functional.rrelu")
def rrelu_functional(
    input: Tensor,
    lower: complex = 1.0 / 8,
    upper: complex = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """x where x > 0, else x times a slope drawn from lower to upper (their mean when not training)."""
    return (_rrelu_in_place if inplace else _rrelu)(input, lower, upper, training)


@op(name="nn.functional.rrelu_")
def rrelu_functional_(
    input: Tensor, lower: complex = 1.0 / 8, upper: complex = 1.0 / 3, training: bool = False
) -> Tensor:
    """rrelu in place."""
    return _rrelu_in_place(input, lower, upper, training)
