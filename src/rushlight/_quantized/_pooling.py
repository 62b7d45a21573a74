"""Pooling, resizing and padding of quantized tensors: on the integers, which are exact in float64."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._core.compose import public
from rushlight._quantized import _schemes as schemes
from rushlight._quantized._schemes import PerTensor
from rushlight._quantized._tensor import QuantizedTensor, no_kernel

F = rl.nn.functional


def _quantizer(q, name):
    if type(q._quantizer) is not PerTensor:
        raise RuntimeError(f"{name}: only per-tensor affine quantized tensors are supported.")
    return q._quantizer


def _on_integers(function, name):
    """What takes elements as they are: their order and positions."""

    def compute(q, *args, **kwargs):
        _quantizer(q, name)
        ints = q._ints()
        return q._like(function(ints.double(), *args, **kwargs).to(ints.dtype))

    return compute


def _check_windows(input, n, kernel_size, stride, padding, dilation):
    """Says what is wrong with windows in the words of PyTorch's quantized pooling, which are its own."""
    if input.dim() not in ((3, 4) if n == 2 else (5,)):
        raise RuntimeError(f"Expecting the input tensor of rank {'3 or 4' if n == 2 else '5'}.")
    kernel, steps, gaps, margins = (
        [value] * n if isinstance(value, int) else list(value)
        for value in (kernel_size, stride, dilation, padding)
    )
    if len(kernel) != n and not (n == 2 and len(kernel) == 1):
        raise RuntimeError(f"Expected {'1d or 2d' if n == 2 else '3d'} kernel size, got {len(kernel)}")
    for values, least, phrase in (
        (gaps, 1, "Expected dilation >= 1"),
        (kernel, 1, "kernel_size should be greater than zero."),
        (steps, 1, "strides should be greater than zero."),
        (margins, 0, f"pad must be non-negative, but got pad: {min(margins, default=0)}"),
    ):
        if any(value < least for value in values):
            raise RuntimeError(phrase)
    if any(2 * m > k for m, k in zip(margins, kernel * n, strict=False)):
        raise RuntimeError("padding should be smaller than half of kernel_size.")


def _max_pool(n):
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[n - 1]

    def compute(
        input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
    ):
        if return_indices:
            raise no_kernel(f"max_pool{n}d_with_indices")
        stride = None if stride is not None and not isinstance(stride, int) and len(stride) == 0 else stride
        _quantizer(input, f"max_pool{n}d")
        if n > 1:
            _check_windows(
                input, n, kernel_size, kernel_size if stride is None else stride, padding, dilation
            )
        elif not isinstance(kernel_size, int) and len(kernel_size) != 1:
            raise RuntimeError(
                "max_pool1d() kernel_size must be an int, list of ints or tuple of ints of size 1 but got size "
                f"{len(kernel_size)}"
            )
        ints = input._ints()
        found = pool(ints.double(), kernel_size, stride, padding, dilation, ceil_mode)
        return input._like(found.to(ints.dtype))

    return compute


def _quantized_max_pool(n):
    compute = _max_pool(n)

    def pool(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        if not isinstance(input, QuantizedTensor):
            raise no_kernel(
                pool.__name__, "CPU", f"it takes quantized tensors; for others there is max_pool{n}d"
            )
        return compute(input, kernel_size, stride, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = f"quantized_max_pool{n}d"
    pool.__doc__ = f"max_pool{n}d of a quantized tensor: the largest number under each window, with the scale of the input."
    return public(pool)


quantized_max_pool1d, quantized_max_pool2d, quantized_max_pool3d = map(_quantized_max_pool, (1, 2, 3))


def _averaged(q, sums, counts):
    """The integers nearest to sums / counts of what is above the zero point, by float32 as PyTorch computes it."""
    scale = rl.tensor(q.q_scale(), dtype=rl.float32)
    factor = 1 / (1 / (scale / scale / counts.float()))
    return schemes.in_range(rl.round(sums.float() * factor + q.q_zero_point()), q.dtype)


def _avg_pool(n):
    pool: Any = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[n - 1]

    def compute(
        input,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        quantizer = _quantizer(input, f"avg_pool{n}d")
        above = input._ints().double() - quantizer.zero_point
        if n == 1:
            means = pool(above, kernel_size, stride, padding, ceil_mode, count_include_pad)
            return input._like(schemes.in_range(rl.round(means.float() + quantizer.zero_point), input.dtype))
        shape = (kernel_size, stride, padding, ceil_mode, count_include_pad)
        sums = pool(above, *shape, 1)
        # How many each window counts: a plane of ones, whose mean is seen / counted.
        counts = rl.tensor(float(divisor_override or 1))
        if divisor_override is None:
            ones = rl.ones_like(above[..., :1, :, :] if n == 2 else above[..., :1, :, :, :])
            counts = rl.round(pool(ones, *shape, 1) / pool(ones, *shape))
        return input._like(_averaged(input, sums, counts))

    return compute


def _adaptive(name):
    pool = getattr(F, name)

    def compute(input, output_size):
        quantizer = _quantizer(input, name)
        means = pool(input._ints().double() - quantizer.zero_point, output_size)
        return input._like(schemes.in_range(rl.round(means.float() + quantizer.zero_point), input.dtype))

    return compute


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Resizes by the nearest elements, or by the two by two nearest ones."""
    quantizer = _quantizer(input, "interpolate")
    options = dict(
        size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners,
        recompute_scale_factor=recompute_scale_factor,
    )  # fmt: skip
    ints = input._ints()
    if mode in ("nearest", "nearest-exact"):
        return input._like(F.interpolate(ints.double(), **options).to(ints.dtype))
    if mode != "bilinear" or antialias:
        raise no_kernel(f"upsample_{mode}2d.out")
    found = F.interpolate(ints.float(), **options) - quantizer.zero_point
    return input._like(schemes.in_range(rl.round(found + quantizer.zero_point), input.dtype))


def pad(input, pad, mode="constant", value=None):
    """Adds a margin: of a number, or of the elements at the edge, mirrored or repeated."""
    quantizer = _quantizer(input, "pad")
    ints = input._ints()
    if mode == "constant":
        number = quantizer.quantize(rl.tensor(float(value or 0.0)), input.dtype)
        return input._like(F.pad(ints, pad, "constant", int(number)))
    return input._like(F.pad(ints.double(), pad, mode).to(ints.dtype))


def constant_pad_nd(input, pad_, value=0):
    return pad(input, pad_, "constant", value)


HANDLERS = {
    **{f"max_pool{n}d": _max_pool(n) for n in (1, 2, 3)},
    **{f"_max_pool{n}d": _max_pool(n) for n in (1, 2, 3)},
    **{f"quantized_max_pool{n}d": _max_pool(n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _avg_pool(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive(f"adaptive_avg_pool{n}d") for n in (1, 2, 3)},
    "interpolate": interpolate, "upsample": interpolate, "pad": pad, "constant_pad_nd": constant_pad_nd,
    "channel_shuffle": _on_integers(rl.channel_shuffle, "channel_shuffle"),
    "pixel_shuffle": _on_integers(rl.pixel_shuffle, "pixel_shuffle"),
    "pixel_unshuffle": _on_integers(rl.pixel_unshuffle, "pixel_unshuffle"),
}  # fmt: skip
