"""Quantized tensors from the parts that files hold."""

import rushlight as rl
from rushlight._C import Tensor
from rushlight._quantized import _schemes as schemes
from rushlight._quantized._schemes import PerChannel, PerTensor
from rushlight._quantized._tensor import make


def rebuilt(storage, offset, size, stride, parts):
    """A quantized tensor on a storage; every part may come from a file, so each is checked."""
    from rushlight.serialization._storage import bytes_of, tensor_of
    from rushlight.storage import TypedStorage

    if not isinstance(storage, TypedStorage) or storage._dtype not in schemes.INTEGERS:
        raise TypeError("a quantized tensor needs a storage of a quantized type")
    dtype = storage._dtype
    quantizer = _quantizer(parts)
    if dtype in schemes.PER_BYTE:
        ints = _unpacked(bytes_of(storage), offset, size, stride, dtype)
    else:
        ints = tensor_of(storage, offset, size, stride, schemes.INTEGERS[dtype])
    if isinstance(quantizer, PerChannel):
        quantizer.fit(ints.shape, "quantization")
    return make(ints, dtype, quantizer)


def _quantizer(parts):
    if type(parts) is not tuple or not parts:
        raise TypeError("the scheme of a quantized tensor must be a tuple")
    scheme, *given = parts
    if scheme is rl.per_tensor_affine and len(given) == 2 and all(type(n) in (int, float) for n in given):
        return PerTensor(*given)
    if scheme in (rl.per_channel_affine, rl.per_channel_affine_float_qparams) and len(given) == 3:
        scales, zero_points, axis = given
        if isinstance(scales, Tensor) and isinstance(zero_points, Tensor) and type(axis) is int:
            schemes.checked_parameters(scales, zero_points)
            if scheme is rl.per_channel_affine:
                zero_points = zero_points.to(rl.int64)
            return PerChannel(scales, zero_points, axis)
    raise RuntimeError(f"Can't deserialize quantized tensor with qscheme {scheme}")


def _unpacked(storage, offset, size, stride, dtype):
    from rushlight.serialization._storage import tensor_over_storage

    if not all(type(n) is int and 0 <= n < 1 << 40 for n in (offset, *size, *stride)):
        raise ValueError("sizes of a quantized tensor are not possible")
    count = rl.Size(size).numel()
    if offset != 0 or tuple(stride) != rl.empty(size, device="meta").stride():
        raise ValueError(f"a tensor of {dtype} is stored from the beginning of its memory, in order")
    if storage.nbytes() * schemes.PER_BYTE[dtype] < count:
        raise ValueError("the tensor needs more elements than its storage has: the file is damaged")
    return schemes.unpacked(tensor_over_storage(storage), count, dtype).reshape(size)
