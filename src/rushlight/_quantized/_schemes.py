"""Schemes of quantization: one scale and zero point for a tensor, or one for each index along an axis."""

import rushlight as rl


class qscheme:
    """The name of a scheme: torch.per_tensor_affine, torch.per_channel_affine ...

    Args:
        name (str): what it prints as.

    Example:
        >>> torch.quantize_per_tensor(torch.ones(1), 0.5, 0, torch.qint8).qscheme()
        torch.per_tensor_affine
    """

    __module__ = "rushlight"

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


per_tensor_affine = qscheme("per_tensor_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_affine = qscheme("per_channel_affine")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")

# Of each quantized type: the integers it is kept as, their range, and how many of them a byte holds.
INTEGERS = {
    rl.quint8: rl.uint8, rl.qint8: rl.int8, rl.qint32: rl.int32, rl.quint4x2: rl.uint8, rl.quint2x4: rl.uint8,
}  # fmt: skip
RANGES = {
    rl.quint8: (0, 255), rl.qint8: (-128, 127), rl.qint32: (-(2**31), 2**31 - 1), rl.quint4x2: (0, 15),
    rl.quint2x4: (0, 3),
}  # fmt: skip
PER_BYTE = {rl.quint4x2: 2, rl.quint2x4: 4}
OF_INTEGERS = {rl.uint8: rl.quint8, rl.int8: rl.qint8, rl.int32: rl.qint32}
NAMES = {
    rl.quint8: "QUInt8", rl.qint8: "QInt8", rl.qint32: "QInt32", rl.quint4x2: "QUInt4x2", rl.quint2x4: "QUInt2x4",
}  # fmt: skip


def in_range(q, dtype):
    """Rounded floats as integers of dtype, those that it does not hold cut off."""
    low, high = RANGES[dtype]
    # Where NaN ends is what the processor makes of it in PyTorch: the largest byte, else the smallest number.
    nan = high if dtype in (rl.quint8, rl.qint8) else low
    return rl.nan_to_num(q.double(), nan, float("inf"), -float("inf")).clamp(low, high).to(INTEGERS[dtype])


class PerTensor:
    """One scale and zero point for all elements."""

    scheme = per_tensor_affine

    def __init__(self, scale, zero_point):
        self.scale, self.zero_point = float(scale), int(zero_point)

    def quantize(self, x, dtype):
        """x / scale + zero_point, rounded, halves to the even number. In float32 as PyTorch has it, bit by bit: bytes by
        one rounding of product and sum, 32 bits by two; packed types round before they add."""
        inverse = 1 / rl.tensor(self.scale, dtype=rl.float32)
        if dtype in PER_BYTE:
            return in_range(rl.round(x * inverse).double() + self.zero_point, dtype)
        if dtype is rl.qint32:
            return in_range(rl.round(x * inverse + self.zero_point), dtype)
        return in_range(rl.round((x.double() * inverse.double() + self.zero_point).float()), dtype)

    def dequantize(self, q):
        return (q.to(rl.int64) - self.zero_point).float() * rl.tensor(self.scale, dtype=rl.float32)

    def check(self, dtype, what):
        _bounds(what, self.zero_point, self.zero_point, dtype)

    def same(self, other):
        return type(other) is PerTensor and (self.scale, self.zero_point) == (other.scale, other.zero_point)

    def parts(self):
        return (self.scheme, self.scale, self.zero_point)

    def suffixes(self):
        return [f"scale={self.scale}", f"zero_point={self.zero_point}"]


class PerChannel:
    """A scale and a zero point for each index along `axis`. Zero points may be fractions; then both are float32."""

    def __init__(self, scales, zero_points, axis):
        self.floating = zero_points.is_floating_point()
        self.scheme = per_channel_affine_float_qparams if self.floating else per_channel_affine
        self.scales = scales.detach().to(rl.float32 if self.floating else rl.float64)
        self.zero_points = zero_points.detach().to(rl.float32 if self.floating else rl.int64)
        self.axis = int(axis)

    def _along(self, values, dims):
        shape = [1] * dims
        shape[self.axis] = -1
        return values.reshape(shape)

    def quantize(self, x, dtype):
        scale = self._along(self.scales.float(), x.dim())
        zero_point = self._along(self.zero_points, x.dim())
        inverse = 1 / scale
        if self.floating:
            inverse = rl.where(scale == 0, rl.ones_like(scale), inverse)
        return in_range(rl.round(x * inverse + zero_point), dtype)

    def dequantize(self, q):
        scale = self._along(self.scales.float(), q.dim())
        zero_point = self._along(self.zero_points, q.dim())
        q = q.float() if self.floating else q.to(rl.int64)
        return (q - zero_point).float() * scale

    def fit(self, size, doing):
        """Checks that there is one scale for each index along the axis of a tensor of this size."""
        if not 0 <= self.axis < len(size):
            raise RuntimeError(
                f"Channel axis out of range in per channel affine {doing}. "
                f"Got: {self.axis}Expected: [0, {len(size)})"
            )
        if self.scales.numel() != size[self.axis]:
            raise RuntimeError(
                f"length of scales must equal to channel, expected {size[self.axis]} got, {self.scales.numel()}"
            )

    def check(self, dtype, what):
        if self.zero_points.numel() and not self.floating:
            _bounds(what, int(self.zero_points.min()), int(self.zero_points.max()), dtype)

    def same(self, other):
        return (
            type(other) is PerChannel
            and self.axis == other.axis
            and self.floating == other.floating
            and rl.equal(self.scales, other.scales)
            and rl.equal(self.zero_points, other.zero_points)
        )

    def parts(self):
        return (self.scheme, self.scales, self.zero_points, self.axis)

    def suffixes(self):
        return [f"scale={self.scales}", f"zero_point={self.zero_points}", f"axis={self.axis}"]


def _bounds(what, least, most, dtype):
    """Zero points must be integers that the memory of the type holds: of packed ones, a byte."""
    low, high = RANGES[rl.quint8 if dtype in PER_BYTE else dtype]
    if least < low:
        raise RuntimeError(f"{what} zero_point {least} is below lower bound.")
    if most > high:
        raise RuntimeError(f"{what} zero_point {most} is above upper bound.")


def checked_parameters(scales, zero_points):
    if scales.dim() != 1:
        raise RuntimeError("scale tensor must have dimension 1")
    if zero_points.dim() != 1:
        raise RuntimeError("zero_points tensor must have dimension 1")
    if scales.numel() != zero_points.numel():
        raise RuntimeError("number of elements in scales and zero_points must match")


def quantized_dtype(dtype):
    """dtype, which must be a quantized one."""
    if dtype not in INTEGERS:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    return dtype


def packed(q, dtype):
    """Integers of less than a byte, several to a byte, the first in its lowest bits."""
    per_byte = PER_BYTE[dtype]
    bits = 8 // per_byte
    flat = q.reshape(-1)
    flat = rl.nn.functional.pad(flat, (0, -flat.numel() % per_byte)).reshape(-1, per_byte)
    whole = flat[:, 0].clone()
    for i in range(1, per_byte):
        whole |= flat[:, i] << (i * bits)
    return whole


def unpacked(data, count, dtype):
    """The first `count` integers of packed bytes."""
    per_byte = PER_BYTE[dtype]
    bits = 8 // per_byte
    parts = [(data >> (i * bits)) & (2**bits - 1) for i in range(per_byte)]
    return rl.stack(parts, 1).reshape(-1)[:count].clone()
