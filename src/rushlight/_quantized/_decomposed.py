"""torch.ops.quantized_decomposed: quantization as arithmetic on plain tensors of integers."""

import rushlight as rl
from rushlight._quantized._schemes import checked_parameters

_FLOATS = (rl.float32, rl.float16, rl.bfloat16)


def _floats(x):
    if x.dtype not in _FLOATS:
        raise AssertionError(f"Expecting input to have dtype torch.float32, but got dtype: {x.dtype}")
    return x.float()


def _bounds(quant_min, quant_max, dtype):
    limits = rl.iinfo(dtype)
    if quant_min < limits.min or quant_max > limits.max:
        raise AssertionError(
            f"quant_min or quant_max out of bound for {dtype}: ({quant_min}, {quant_max}), it holds "
            f"({limits.min}, {limits.max})"
        )


def _number(value, name):
    if isinstance(value, rl.Tensor):
        if value.numel() != 1:
            raise AssertionError(f"Expecting {name} tensor to be one element, but received : {value.numel()}")
        return value.item()
    return value


def _rounded(x, inverse, zero_point, quant_min, quant_max, dtype):
    return (rl.round(x * inverse) + zero_point).clamp(quant_min, quant_max).to(dtype)


def quantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype):
    """Floats as integers of dtype: the nearest to input / scale + zero_point, within the bounds."""
    _bounds(quant_min, quant_max, dtype)
    x = _floats(input)
    return _rounded(
        x, 1.0 / _number(scale, "scale"), int(_number(zero_point, "zero_point")), quant_min, quant_max, dtype
    )


def dequantize_per_tensor(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype=None):
    """(input - zero_point) * scale"""
    if input.dtype is not dtype:
        raise AssertionError(f"Expecting input to have dtype: {dtype}, but got {input.dtype}")
    whole = input.to(rl.int64) - int(_number(zero_point, "zero_point"))
    return whole.to(out_dtype or rl.float32) * _number(scale, "scale")


def choose_qparams(input, qmin, qmax, eps, dtype):
    """(scale, zero_point), tensors, that integers from qmin to qmax need for the range of the data."""
    x = _floats(input).detach()
    least, most = x.min().clamp(max=0), x.max().clamp(min=0)
    eps = _number(eps, "eps")
    scale = ((most - least) / float(qmax - qmin)).clamp(min=eps)
    zero_point = (qmin - rl.round(least / scale)).clamp(qmin, qmax)
    return scale.double(), zero_point.to(rl.int64)


def choose_qparams_symmetric(input, qmin, qmax, eps, dtype):
    """The same with the zero point in the middle."""
    x = _floats(input).detach()
    widest = x.abs().max()
    scale = (widest / (float(qmax - qmin) / 2)).clamp(min=_number(eps, "eps"))
    middle = 0 if dtype in (rl.int8, rl.int16, rl.int32) else (qmin + qmax + 1) // 2
    return scale.double(), rl.tensor(middle)


def _along(values, axis, dims):
    shape = [1] * dims
    shape[axis] = -1
    return values.reshape(shape)


def quantize_per_channel(input, scales, zero_points, axis, quant_min, quant_max, dtype):
    """quantize_per_tensor with a scale and a zero point for each index along axis."""
    _bounds(quant_min, quant_max, dtype)
    checked_parameters(scales, zero_points)
    x = _floats(input)
    inverse, offset = _along(1.0 / scales, axis, x.dim()), _along(zero_points, axis, x.dim())
    return _rounded(x, inverse, offset, quant_min, quant_max, dtype)


def dequantize_per_channel(input, scales, zero_points, axis, quant_min, quant_max, dtype, *, out_dtype=None):
    """Its inverse."""
    if input.dtype is not dtype:
        raise AssertionError(f"Expecting input to have dtype {dtype}, but got dtype: {input.dtype}")
    whole = input.to(rl.int64)
    if zero_points is not None:
        whole = whole - _along(zero_points, axis, input.dim())
    return whole.to(out_dtype or rl.float32) * _along(scales, axis, input.dim())


def choose_qparams_per_token(input, dtype):
    """(scales, zero_points) of each row, symmetric."""
    widest = input.abs().amax(-1, keepdim=True).float()
    scales = widest.clamp(min=1e-5) / (2 ** (8 - 1) - 1)
    return scales, rl.zeros_like(scales)


def choose_qparams_per_token_asymmetric(input, dtype):
    """(scales, zero_points) of each row, in int8."""
    qmin, qmax = -128, 127
    least = rl.amin(input, -1, keepdim=True).float().clamp(max=0)
    most = rl.amax(input, -1, keepdim=True).float().clamp(min=0)
    scale = ((most - least) / float(qmax - qmin)).clamp(min=rl.finfo(rl.float32).eps)
    below, above = least / scale, most / scale
    # From the end at which less is lost.
    zero_point = rl.where(qmin + below + qmax + above > 0, qmin - below, qmax - above)
    zero_point = rl.round(zero_point.clamp(qmin, qmax))
    return scale.to(rl.float32), zero_point.to(rl.float32)


def quantize_per_token(input, scales, zero_points, quant_min, quant_max, dtype):
    """Each row with its own scale and zero point."""
    _bounds(quant_min, quant_max, dtype)
    return _rounded(_floats(input), 1.0 / scales, zero_points, quant_min, quant_max, dtype)


def dequantize_per_token(input, scales, zero_points, quant_min, quant_max, dtype, output_dtype=rl.float32):
    """Its inverse."""
    return ((input.to(rl.int64) - zero_points) * scales).to(output_dtype)


def _groups(x, scales, group_size):
    if (
        group_size <= 1
        or x.dim() != 2
        or x.size(-1) % group_size
        or scales.size(-1) * group_size != x.size(-1)
    ):
        raise AssertionError(
            f"per_channel_group: {list(x.shape)} is no matrix of {scales.size(-1)} groups of {group_size} columns"
        )
    return x.reshape(-1, group_size)


def quantize_per_channel_group(input, scales, zero_points, quant_min, quant_max, dtype, group_size=128):
    """Each group of columns of a row with its own scale and zero point."""
    _bounds(quant_min, quant_max, dtype)
    rows = _groups(_floats(input), scales, group_size)
    parts = (1.0 / scales.reshape(-1, 1), zero_points.reshape(-1, 1))
    return _rounded(rows, *parts, quant_min, quant_max, dtype).reshape(input.shape)


def dequantize_per_channel_group(
    w_int8, scales, zero_points, quant_min, quant_max, dtype, group_size=128, output_dtype=rl.float32
):
    """Its inverse."""
    rows = _groups(w_int8, scales, group_size).to(rl.int64)
    if zero_points is not None:
        rows = rows - zero_points.reshape(-1, 1)
    return (rows.to(output_dtype) * scales.reshape(-1, 1)).reshape(w_int8.shape).to(output_dtype)


OPERATORS = {
    name: function
    for name, function in globals().items()
    if name.startswith(("quantize_", "dequantize_", "choose_"))
}
OPERATORS["_choose_qparams_per_token_asymmetric_impl"] = choose_qparams_per_token_asymmetric
