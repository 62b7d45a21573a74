"""Scales and zero points chosen from the range of the data."""

import math

import rushlight as rl
from rushlight._core.compose import public

_LEAST_SCALE = 6.1e-5  # smaller ones have no inverse in float16


def chosen(least, most, low, high, symmetric=False):
    """(scale, zero_point) with which integers from low to high reach from least to most; 0 is one of the numbers.

    `symmetric` puts the zero point in the middle, if there are values on both sides of zero.
    """
    least, most = min(least, 0.0), max(most, 0.0)
    both = symmetric and least < 0 < most
    if both:
        below, above = -((high - low) // 2 + 1), (high - low) // 2
        widest = _float32(max(abs(_float32(least / below)), abs(_float32(most / above))))
        least, most = _float32(widest * below), _float32(widest * above)
    scale = (most - least) / (high - low)
    if _float32(scale) == 0 or math.isinf(_inverse32(scale)):
        scale = 0.1
    if scale < _LEAST_SCALE:
        wider = _LEAST_SCALE / scale
        if least == 0:
            most = _float32(_LEAST_SCALE * (high - low))
        elif most == 0:
            least = _float32(-_LEAST_SCALE * (high - low))
        else:
            least, most = _float32(least * wider), _float32(most * wider)
        scale = _LEAST_SCALE
    # From the end of the range at which less is lost by rounding.
    by_least, by_most = low - least / scale, high - most / scale
    error_least, error_most = abs(low) - abs(least / scale), abs(high) - abs(most / scale)
    start = by_least if error_least < error_most else by_most
    if both:
        start = (low + high) / 2
    return scale, round(min(max(start, low), high))


def _float32(x):
    return rl.tensor(x, dtype=rl.float32).item()


def _inverse32(scale):
    return (1 / rl.tensor(scale, dtype=rl.float32)).item()


@public
def _choose_qparams_per_tensor(input, reduce_range=False):
    """(scale, zero_point) that torch.quint8 needs for the range of the data; with `reduce_range`, in 7 bits."""
    x = input.detach()
    return chosen(float(x.min()), float(x.max()), 0, 127 if reduce_range else 255)


@public
def choose_qparams_optimized(input, numel, n_bins, ratio, bit_width):
    """A narrower range to quantize data in: from either end by steps, as long as values then lie nearer to their levels.

    Args:
        input (Tensor): the data.
        numel (int): how many of its elements count.
        n_bins (int): steps of the whole range.
        ratio (float): the part of it that may be left out.
        bit_width (int): of the levels, 2^bit_width.

    Returns:
        tuple of Tensors: the most and the least.

    Example:
        >>> most, least = torch.choose_qparams_optimized(torch.linspace(0, 1, 8), 8, 20, 0.1, 4)
        >>> most.item(), least.item()
        (1.0, 0.0)
    """
    if numel < 0 or numel > input.numel():
        raise RuntimeError("numel is out of the bounds of the input tensor")
    if n_bins <= 0:
        raise RuntimeError("n_bins must be positive")
    x = input.detach().reshape(-1)[:numel].contiguous()
    least, most = x.min(), x.max()
    step = (most - least) / float(n_bins)
    narrowest = step * (float(n_bins) * (1 - rl.tensor(ratio, dtype=rl.float32)))
    low, high, loss = least, most, _loss(x, least, most, bit_width)
    best = (math.inf, most, least)
    while bool(low + narrowest < high):
        above, below = low + step, high - step
        by_low, by_high = _loss(x, above, high, bit_width), _loss(x, low, below, bit_width)
        if loss < min(by_low, by_high) and loss < best[0]:
            best = (loss, high, low)
        if by_low < by_high:
            low, loss = above, by_low
        else:
            high, loss = below, by_high
    return best[1].reshape(1), best[2].reshape(1)


def _loss(x, least, most, bit_width):
    """How far the data is from its nearest of 2^bit_width levels between least and most, kept in float16."""
    least = least.half().float()
    span = most - least
    scale = rl.where(span == 0, rl.ones_like(span), span / (2**bit_width - 1)).half().float()
    inverse = 1 / scale
    if bool(scale == 0) or bool(inverse.isinf()):
        scale = inverse = rl.tensor(1.0)
    q = rl.round((x - least) * inverse).clamp(0, 2**bit_width - 1)
    error = x - (q * scale + least)
    return float((error * error).double().sum().sqrt())


@public
def fused_moving_avg_obs_fake_quant(
    input, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min,
    quant_max, ch_axis, per_row_fake_quant=False, symmetric_quant=False,
):  # fmt: skip
    """Rounds data as quantized values would be, by a moving average of its range.

    The average is kept in running_min and running_max, scale and zero_point are chosen by it, all in place."""
    if ch_axis >= input.dim():
        raise RuntimeError("Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()")
    x = input.detach()
    if bool(observer_on):
        _observe(x, running_min, running_max, averaging_const, ch_axis if per_row_fake_quant else None)
        _choose(running_min, running_max, scale, zero_point, quant_min, quant_max, symmetric_quant)
    if not bool(fake_quant_on):
        return input.clone()
    if per_row_fake_quant:
        return rl.fake_quantize_per_channel_affine(input, scale, zero_point, ch_axis, quant_min, quant_max)
    return rl.fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)


def _observe(x, running_min, running_max, averaging_const, axis):
    if axis is None:
        least, most = x.aminmax()
    else:
        rows = x.movedim(axis, 0).reshape(x.size(axis), -1)
        least, most = rows.aminmax(dim=1)
        for running, start in ((running_min, math.inf), (running_max, -math.inf)):
            if running.numel() != rows.size(0):
                running.resize_(rows.size(0)).fill_(start)
    for running, new in ((running_min, least), (running_max, most)):
        new = new.reshape(running.shape).to(running.dtype)
        moved = running + averaging_const * (new - running)
        running.copy_(rl.where(running.isinf(), new, moved))


def _choose(running_min, running_max, scale, zero_point, low, high, symmetric):
    ends = zip(running_min.reshape(-1).tolist(), running_max.reshape(-1).tolist(), strict=True)
    pairs = [chosen(least, most, low, high, symmetric) for least, most in ends]
    for target, values in ((scale, [s for s, _ in pairs]), (zero_point, [z for _, z in pairs])):
        if target.numel() != len(values):
            target.resize_(len(values))
        target.copy_(rl.tensor(values).reshape(target.shape))
