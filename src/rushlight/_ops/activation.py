"""Activations composed of other ops."""

from __future__ import annotations

from rushlight._C import Generator, Tensor

from .. import _C
from .._core.compose import op

_ops = _C.ops


def _rrelu(input, lower, upper, training, generator=None):
    """input, or up to 0 a negative slope times input; in training each element draws its own from [lower, upper]."""
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
    negative_slope = _ops["ones_like"](input.detach()).masked_scatter_(below, drawn.to(input.dtype))
    return input * negative_slope


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
    """Scales negative elements by random factors: y = x if x > 0, else a x, a drawn from U(lower, upper).

    Args:
        input (Tensor): any shape.
        lower (float): the least factor. Default: 1/8
        upper (float): the greatest factor. Default: 1/3
        training (bool): False takes their mean for a. Default: False
        generator (Generator): where random numbers come from. Default: None, the default one

    Example:
        >>> torch.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
        tensor([-0.2000,  2.0000])
    """
    return _rrelu(input, lower, upper, training, generator)


@op
def rrelu_(
    input: Tensor,
    lower: complex = 1.0 / 8,
    upper: complex = 1.0 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Scales negative elements by random factors, in place; see `rrelu`.

    Args:
        input (Tensor): any shape.
        lower (float): the least factor. Default: 1/8
        upper (float): the greatest factor. Default: 1/3
        training (bool): False takes their mean for a. Default: False
        generator (Generator): where random numbers come from. Default: None, the default one

    Example:
        >>> torch.rrelu_(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
        tensor([-0.2000,  2.0000])
    """
    return _rrelu_in_place(input, lower, upper, training, generator)


@op(name="nn.functional.rrelu")
def rrelu_functional(
    input: Tensor,
    lower: complex = 1.0 / 8,
    upper: complex = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Scales negative elements by random factors: y = x if x > 0, else a x, a drawn from U(lower, upper).

    Args:
        input (Tensor): any shape.
        lower (float): the least factor. Default: 1/8
        upper (float): the greatest factor. Default: 1/3
        training (bool): False takes their mean for a. Default: False
        inplace (bool): writes the result over the input. Default: False

    Example:
        >>> F.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
        tensor([-0.2000,  2.0000])
    """
    return (_rrelu_in_place if inplace else _rrelu)(input, lower, upper, training)


@op(name="nn.functional.rrelu_")
def rrelu_functional_(
    input: Tensor, lower: complex = 1.0 / 8, upper: complex = 1.0 / 3, training: bool = False
) -> Tensor:
    """Scales negative elements by random factors, in place; see `rrelu`.

    Args:
        input (Tensor): any shape.
        lower (float): the least factor. Default: 1/8
        upper (float): the greatest factor. Default: 1/3
        training (bool): False takes their mean for a. Default: False

    Example:
        >>> F.rrelu_(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
        tensor([-0.2000,  2.0000])
    """
    return _rrelu_in_place(input, lower, upper, training)
