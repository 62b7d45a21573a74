"""torch.ops.quantized: arithmetic whose result has a scale of its own, and layers with packed weights."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._quantized._parameters import chosen
from rushlight._quantized._schemes import PerTensor, in_range
from rushlight._quantized._tensor import QuantizedTensor, make

F = rl.nn.functional


def _check(name, *tensors):
    for q in tensors:
        if not isinstance(q, QuantizedTensor) or q.qscheme() is not rl.per_tensor_affine:
            raise RuntimeError(
                f"quantized::{name}: Only per tensor quantization is supported, for quantized tensors"
            )
        if q.dtype is not tensors[0].dtype:
            raise RuntimeError(f"quantized::{name}: operands should have same data type.")


def _result(values, q, scale, zero_point, relu):
    given = PerTensor(scale, zero_point)
    return make(given.quantize(rl.relu(values) if relu else values, q.dtype), q.dtype, given)


def _add(relu):
    def add(qa, qb, scale=None, zero_point=None):
        """qa + qb with the scale given; a number is added with a scale chosen for the result."""
        if not isinstance(qb, rl.Tensor):
            return _add_scalar(qa, qb, relu)
        _check("add", qa, qb)
        return _result(qa.dequantize() + qb.dequantize(), qa, scale, zero_point, relu)

    return add


def _range(q):
    return {rl.quint8: (0, 255), rl.qint8: (-128, 127), rl.qint32: (-(2**31), 2**31 - 1)}[q.dtype]


def _add_scalar(q, number, relu):
    """The zero point moves, as far as it can; beyond that the scale changes."""
    _check("add_scalar", q)
    low, high = _range(q)
    scale, zero_point = q.q_scale(), q.q_zero_point()
    moved = zero_point - round(float(number) / scale)
    if low <= moved <= high:
        result = make(q._ints().clone(), q.dtype, PerTensor(scale, moved))
    else:
        end = low if moved < low else high
        wider = (high - moved) / (high - low) * scale if moved < low else (moved - low) / (high - low) * scale
        given = PerTensor(wider, end)
        steps = q._ints().to(rl.int64) - moved
        result = make(in_range(rl.round(steps.double() * (scale / wider)) + end, q.dtype), q.dtype, given)
    return rl.relu(result) if relu else result


def _mul(relu):
    def mul(qa: Any, qb: Any, scale: Any = None, zero_point: Any = None) -> Any:
        """qa * qb with the scale given; by a number only the scale changes, and its sign."""
        if not isinstance(qb, rl.Tensor):
            return _mul_scalar(qa, qb, relu)
        _check("mul", qa, qb)
        factors: tuple[Any, Any] = (qa, qb)
        above = [t._ints().to(rl.int64) - t.q_zero_point() for t in factors]
        given = PerTensor(scale, zero_point)
        factor = rl.tensor(qa.q_scale() * qb.q_scale() / given.scale, dtype=rl.float32)
        steps = (above[0] * above[1]).float() * factor
        q = make(in_range(rl.round(steps) + given.zero_point, qa.dtype), qa.dtype, given)
        return rl.relu(q) if relu else q

    return mul


def _mul_scalar(q, number, relu):
    _check("mul_scalar", q)
    number, scale, zero_point, ints = float(number), q.q_scale(), q.q_zero_point(), q._ints()
    low, high = _range(q)
    if number > 0:
        result = make(ints.clone(), q.dtype, PerTensor(scale * number, zero_point))
    elif number == 0:
        result = make(rl.zeros_like(ints), q.dtype, PerTensor(1.0, 0))
    else:
        negated = (high + low - ints.to(rl.int64)).to(ints.dtype)
        result = make(negated, q.dtype, PerTensor(-scale * number, high + low - zero_point))
    return rl.relu(result) if relu else result


def _scaled(function):
    """A function of the values, quantized with the scale given."""

    def compute(qx, *args):
        *options, scale, zero_point = args
        _check(function.__name__, qx)
        return _result(function(qx.dequantize(), *options), qx, scale, zero_point, False)

    return compute


def sigmoid(qx, output_scale, output_zero_point):
    """sigmoid with the scale given."""
    return _scaled(rl.sigmoid)(qx, output_scale, output_zero_point)


def leaky_relu(qx, negative_slope, inplace, output_scale, output_zero_point):
    """leaky_relu with the scale given."""
    return _scaled(F.leaky_relu)(qx, negative_slope, output_scale, output_zero_point)


def elu(qx, output_scale, output_zero_point, alpha=1.0, scale=1.0, input_scale=1.0):
    """elu with the scale given."""
    _check("elu", qx)
    x = qx.dequantize()
    y = rl.where(x <= 0, alpha * rl.expm1(x * input_scale), x) * scale
    return _result(y, qx, output_scale, output_zero_point, False)


def celu(qx, output_scale, output_zero_point, alpha=1.0):
    """celu with the scale given."""
    return elu(qx, output_scale, output_zero_point, alpha, 1.0, 1 / alpha)


def _cat(relu):
    def cat(qx, dim, scale=None, zero_point=None):
        """Joins tensors of any scales; the result has the scale given, or the first one's."""
        _check("cat", *qx)
        first = qx[0]
        scale = first.q_scale() if scale is None else scale
        zero_point = first.q_zero_point() if zero_point is None else zero_point
        return _result(rl.cat([q.dequantize() for q in qx], dim), first, scale, zero_point, relu)

    return cat


class PackedParams:
    """The weight and the bias of a layer, and how its windows lie if it is a convolution."""

    def __init__(self, weight, bias, **geometry):
        if not isinstance(weight, QuantizedTensor) or weight.dtype is not rl.qint8:
            raise RuntimeError("prepack: the weight must be a quantized tensor of torch.qint8")
        self._weight, self._bias = weight, None if bias is None else bias.detach().float()
        self.__dict__.update(geometry)

    def unpack(self):
        """(weight, bias)"""
        return self._weight, self._bias

    def weight(self):
        return self._weight

    def bias(self):
        return self._bias

    def _parts(self):
        """The weight above its zero point, as integers in float64, and the scale of each row of results."""
        weight = self._weight
        shape = (-1, *[1] * (weight.dim() - 1))
        if weight.qscheme() is rl.per_tensor_affine:
            return weight._ints().double() - weight.q_zero_point(), rl.tensor(
                weight.q_scale(), dtype=rl.float64
            )
        if weight.q_per_channel_axis() != 0:
            raise RuntimeError("prepack: scales of a weight must belong to its first dimension")
        zero_points = weight.q_per_channel_zero_points().double().reshape(shape)
        return weight._ints().double() - zero_points, weight.q_per_channel_scales()


def linear_prepack(W, B=None):
    """The weight of a linear layer, with its bias."""
    return PackedParams(W, B)


def linear_unpack(W_prepack):
    """(weight, bias)"""
    return W_prepack.unpack()


def _layer(name, relu):
    def apply(qx, packed, output_scale=None, output_zero_point=None):
        """The layer with the scale given for its result; sums are of integers."""
        _check(name, qx)
        weight, scales = packed._parts()
        above = qx._ints().double() - qx.q_zero_point()
        channels = (1, -1, *[1] * (weight.dim() - 2)) if name != "linear" else (-1,)
        if name == "linear":
            sums = above @ weight.t()
        else:
            windows = (packed.stride, packed.padding, packed.dilation, packed.groups)
            sums = getattr(F, name)(above, weight, None, *windows)
        scale = scales.reshape(channels) * qx.q_scale() if scales.dim() else scales * qx.q_scale()
        y = sums * scale
        if packed._bias is not None:
            y = y + packed._bias.double().reshape(channels)
        given = PerTensor(output_scale, output_zero_point)
        y = rl.relu(y) if relu else y
        return make(
            in_range(rl.round((y / given.scale).float()) + given.zero_point, qx.dtype), qx.dtype, given
        )

    return apply


def _linear_dynamic(relu):
    def apply(X, W_prepack, reduce_range=False):
        """The layer of float32 values, which are quantized by their range."""
        weight, scales = W_prepack._parts()
        x = X.detach()
        scale, zero_point = chosen(float(x.min()), float(x.max()), 0, 127 if reduce_range else 255)
        quantizer = PerTensor(scale, zero_point)
        above = quantizer.quantize(x, rl.quint8).double() - zero_point
        y = (above @ weight.t()) * (scales * scale)
        y = y if W_prepack._bias is None else y + W_prepack._bias.double()
        return (rl.relu(y) if relu else y).float()

    return apply


def _conv_prepack(n):
    def prepack(weight, bias, stride, padding, dilation, groups):
        """The weight of a convolution, with its bias and its windows."""
        for what, values in (("stride", stride), ("padding", padding), ("dilation", dilation)):
            if len(values) != n:
                raise RuntimeError(f"{what} should contain {n} elements for {n}D convolution.")
        geometry = dict(
            stride=list(stride), padding=list(padding), dilation=list(dilation), groups=int(groups)
        )
        return PackedParams(weight, bias, **geometry)

    return prepack


def batch_norm2d(qx, weight, bias, mean, var, eps, output_scale, output_zero_point):
    """Batch norm with the scale given."""
    return rl.quantized_batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point)


OPERATORS = {
    "add": _add(False), "add_relu": _add(True), "add_scalar": _add(False), "add_scalar_relu": _add(True),
    "mul": _mul(False), "mul_relu": _mul(True), "mul_scalar": _mul(False), "mul_scalar_relu": _mul(True),
    "cat": _cat(False), "cat_relu": _cat(True), "sigmoid": sigmoid, "elu": elu, "celu": celu, "leaky_relu": leaky_relu,
    "hardswish": _scaled(F.hardswish), "relu6": lambda qx, inplace=False: F.relu6(qx, inplace),
    "linear_prepack": linear_prepack, "linear_unpack": linear_unpack, "linear": _layer("linear", False),
    "linear_relu": _layer("linear", True), "linear_dynamic": _linear_dynamic(False),
    "linear_relu_dynamic": _linear_dynamic(True), "batch_norm2d": batch_norm2d, "batch_norm": batch_norm2d,
    **{f"conv{n}d_prepack": _conv_prepack(n) for n in (1, 2, 3)},
    **{f"conv{n}d_unpack": linear_unpack for n in (1, 2, 3)},
    **{f"conv{n}d": _layer(f"conv{n}d", False) for n in (1, 2, 3)},
    **{f"conv{n}d_relu": _layer(f"conv{n}d", True) for n in (1, 2, 3)},
}  # fmt: skip
