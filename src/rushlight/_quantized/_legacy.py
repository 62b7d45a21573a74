"""Linear layers with weights packed ahead, by the old names of the library that PyTorch calls for them (FBGEMM).

What is packed here is plain: the bytes of the weights. The weights of eight bits have one scale; those of sixteen are
float16 values. PyTorch warns that these functions are deprecated, once each; so does this.
"""

import warnings

import rushlight as rl
from rushlight._core.compose import public
from rushlight._quantized._parameters import chosen
from rushlight._quantized._schemes import PerTensor

_warned: set = set()


def _deprecated(name, stacklevel=4):
    if name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"{name} is deprecated and will be removed in a future PyTorch release.",
            UserWarning,
            stacklevel=stacklevel,
        )


def _matrix(weight, name):
    if weight.dim() != 2:
        raise RuntimeError(f"{name}: expected a matrix of weights, got {weight.dim()} dimensions")
    return weight.detach().contiguous()


@public
def fbgemm_linear_quantize_weight(input):
    """(weights as int8, sum of each row above the zero point, scale, zero point)."""
    _deprecated("fbgemm_linear_quantize_weight")
    weight = _matrix(input, "fbgemm_linear_quantize_weight").float()
    scale, zero_point = chosen(float(weight.min()), float(weight.max()), -128, 127)
    q = PerTensor(scale, zero_point).quantize(weight, rl.qint8)
    offsets = (q.to(rl.int32).sum(1) - zero_point * weight.size(1)).to(rl.int32)
    return q, offsets, rl.tensor(scale, dtype=rl.float32).item(), zero_point


@public
def fbgemm_pack_quantized_matrix(input, K=None, N=None):
    """Weights of int8, packed for fbgemm_linear_int8_weight."""
    _deprecated("fbgemm_pack_quantized_matrix")
    weight = _matrix(input, "fbgemm_pack_quantized_matrix")
    if weight.dtype is not rl.int8:
        raise RuntimeError(f"fbgemm_pack_quantized_matrix: expected int8 weights, got {weight.dtype}")
    return weight.view(rl.uint8).reshape(-1).clone()


@public
def fbgemm_linear_int8_weight_fp32_activation(
    input, weight, packed, col_offsets, weight_scale, weight_zero_point, bias
):
    """input @ weight.T + bias: the input is quantized by its own range, products are summed as integers."""
    return _int8_linear(input, weight, packed, weight_scale, weight_zero_point, bias)


@public
def fbgemm_linear_int8_weight(input, weight, packed, col_offsets, weight_scale, weight_zero_point, bias):
    """The same under its older name."""
    return _int8_linear(input, weight, packed, weight_scale, weight_zero_point, bias)


def _int8_linear(input, weight, packed, weight_scale, weight_zero_point, bias):
    _deprecated("fbgemm_linear_int8_weight_fp32_activation", 5)
    if input.dim() < 2 or weight.dim() != 2 or input.size(-1) != weight.size(1):
        raise RuntimeError(
            f"fbgemm_linear_int8_weight: sizes of input {list(input.shape)} and weight {list(weight.shape)} do not fit"
        )
    if packed.numel() != weight.numel() or packed.dtype is not rl.uint8:
        raise RuntimeError("fbgemm_linear_int8_weight: the packed weights are not those of this weight")
    if bias.shape != (weight.size(0),):
        raise RuntimeError(
            f"fbgemm_linear_int8_weight: expected a bias of {weight.size(0)} values, got {list(bias.shape)}"
        )
    x = input.detach().float()
    scale, zero_point = chosen(float(x.min()), float(x.max()), 0, 255)
    quantizer = PerTensor(scale, zero_point)
    above = quantizer.quantize(x, rl.quint8).to(rl.int32) - zero_point
    own = packed.view(rl.int8).reshape(weight.shape).to(rl.int32) - int(weight_zero_point)
    return _matmul(above, own) * (scale * float(weight_scale)) + bias.detach().float()


def _matmul(x, weight):
    """x @ weight.T of integers, exact, as float32 values."""
    return (x.double() @ weight.double().t()).float()


@public
def fbgemm_pack_gemm_matrix_fp16(input):
    """Weights as float16, packed for fbgemm_linear_fp16_weight."""
    _deprecated("fbgemm_pack_gemm_matrix_fp16")
    weight = _matrix(input, "fbgemm_pack_gemm_matrix_fp16").float().clamp(-65504, 65504)
    return weight.half().view(rl.uint8).reshape(-1)


@public
def fbgemm_linear_fp16_weight_fp32_activation(input, packed_weight, bias):
    """input @ weight.T + bias, with weights of float16 and sums of float32."""
    return _fp16_linear(input, packed_weight, bias)


@public
def fbgemm_linear_fp16_weight(input, packed_weight, bias):
    """The same under its older name."""
    return _fp16_linear(input, packed_weight, bias)


def _fp16_linear(input, packed_weight, bias):
    _deprecated("fbgemm_linear_fp16_weight_fp32_activation", 5)
    width = input.size(-1)
    if packed_weight.dtype is not rl.uint8 or not width or packed_weight.numel() % (2 * width):
        raise RuntimeError(
            f"fbgemm_linear_fp16_weight: the packed weights are not a matrix of {width} columns, as the input needs"
        )
    weight = packed_weight.view(rl.float16).reshape(-1, width).float()
    result = input.detach().float() @ weight.t()
    return result if bias is None else result + bias.detach().float()


@public
def _wrapped_linear_prepack(weight, weight_scale, weight_zero_point, bias):
    """Weights as int8, their scale and zero point, and the bias: one tensor of bytes."""
    weight, (scale, zero_point) = (
        _matrix(weight, "_wrapped_linear_prepack"),
        _pair(weight_scale, weight_zero_point),
    )
    if bias.shape != (weight.size(0),):
        raise RuntimeError(
            f"_wrapped_linear_prepack: expected a bias of {weight.size(0)} values, got {list(bias.shape)}"
        )
    q = PerTensor(scale, zero_point).quantize(weight.float(), rl.qint8)
    head = rl.tensor([scale, float(zero_point)], dtype=rl.float64)
    parts = (head, bias.detach().float(), q.reshape(-1))
    return rl.cat([part.contiguous().view(rl.uint8).reshape(-1) for part in parts])


@public
def _wrapped_quantized_linear_prepacked(
    input, input_scale, input_zero_point, packed_weight, output_scale, output_zero_point, out_channel
):
    """input @ weight.T + bias, with the input and the result rounded as numbers of eight bits."""
    rows, width = int(out_channel), input.size(-1)
    if packed_weight.dtype is not rl.uint8 or packed_weight.numel() != 16 + 4 * rows + rows * width:
        raise RuntimeError(
            f"_wrapped_quantized_linear_prepacked: the packed weights are not {rows} rows of {width} values"
        )
    scale, zero_point = packed_weight[:16].clone().view(rl.float64).tolist()
    bias = packed_weight[16 : 16 + 4 * rows].clone().view(rl.float32)
    weight = packed_weight[16 + 4 * rows :].clone().view(rl.int8).reshape(rows, width)
    taken, given = (
        PerTensor(*_pair(input_scale, input_zero_point)),
        PerTensor(*_pair(output_scale, output_zero_point)),
    )
    above = taken.quantize(input.detach().float(), rl.quint8).to(rl.int32) - taken.zero_point
    sums = _matmul(above, weight.to(rl.int32) - int(zero_point))
    result = sums * (taken.scale * scale) + bias
    return given.dequantize(given.quantize(result, rl.quint8))


def _pair(scale, zero_point):
    return float(scale), int(zero_point)
