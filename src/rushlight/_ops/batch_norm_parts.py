"""Batch norm in parts, between which processes exchange their statistics (torch.batch_norm_stats and what follows it)."""

from __future__ import annotations

from rushlight._C import Tensor

from .. import _C
from .._core.compose import op

_WIDE = {_C.float16: _C.float32, _C.bfloat16: _C.float32}


def _wide(input):
    """In the type that statistics are computed in."""
    return input.to(_WIDE.get(input.dtype, input.dtype))


def _others(input):
    """All dimensions but the channels'."""
    return [d for d in range(input.dim()) if d != 1]


def _along_channels(statistic, input):
    return statistic.reshape(1, -1, *[1] * (input.dim() - 2))


@op
def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Mean and inverse deviation of each channel."""
    x = _wide(input)
    mean = x.mean(_others(x))
    return mean, (x.var(_others(x), correction=0) + eps).rsqrt()


@op
def batch_norm_elemt(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float
) -> Tensor:
    """The input normalised by given statistics, scaled and shifted."""
    y = (_wide(input) - _along_channels(mean, input)) * _along_channels(invstd, input)
    if weight is not None:
        y = y * _along_channels(weight, input)
    if bias is not None:
        y = y + _along_channels(bias, input)
    return y.to(input.dtype)


@op
def batch_norm_gather_stats_with_counts(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Statistics of the whole from those (parts, channels) of its parts; brings the running ones up to date.

    Args:
        counts: how many elements of a channel each part had.
    """
    share = counts.to(mean.dtype).reshape(-1, 1)
    total = share.sum()
    whole = (share * mean).sum(0) / total
    squares = (share * (invstd**-2 - eps + (mean - whole) ** 2)).sum(0)
    with _no_grad():
        if running_mean is not None:
            running_mean.lerp_(whole.to(running_mean.dtype), momentum)
        if running_var is not None:
            running_var.lerp_((squares / (total - 1)).to(running_var.dtype), momentum)
    return whole, (squares / total + eps).rsqrt()


def _no_grad():
    from .._core.grad_mode import no_grad

    return no_grad()


@op
def batch_norm_gather_stats(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    count: int,
) -> tuple[Tensor, Tensor]:
    """batch_norm_gather_stats_with_counts of parts that had `count` elements of a channel each."""
    counts = mean.new_full((mean.size(0),), count)
    return batch_norm_gather_stats_with_counts(
        input, mean, invstd, running_mean, running_var, momentum, eps, counts
    )


@op
def batch_norm_backward_reduce(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """(sum of dy, sum of dy * (x - mean), dweight, dbias) of each channel; None for what is not asked for."""
    dy = _wide(grad_out)
    sums = dy.sum(_others(dy))
    products = (dy * (_wide(input) - _along_channels(mean, input))).sum(_others(dy))
    like = grad_out if weight is None else weight
    return (
        sums if input_g else None,
        products if input_g else None,
        (products * invstd).to(like.dtype) if weight_g else None,
        sums.to(like.dtype) if bias_g else None,
    )


@op
def batch_norm_backward_elemt(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    sum_dy: Tensor,
    sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:
    """The gradient by the input, from sums over all parts; `count` has the parts' numbers of elements of a channel."""
    total = count.sum().to(sum_dy.dtype)
    x = _wide(input) - _along_channels(mean, input)
    dx = (
        _wide(grad_out)
        - _along_channels(sum_dy / total, input)
        - x * _along_channels(invstd**2 * sum_dy_xmu / total, input)
    )
    factor = invstd if weight is None else invstd * weight
    return (dx * _along_channels(factor, input)).to(input.dtype)
