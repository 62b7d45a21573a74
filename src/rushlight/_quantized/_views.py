"""Views of quantized tensors: of one scale as of any tensor; of a scale for each channel where the channels stay whole
or are chosen one by one."""

import rushlight as rl
from rushlight._C import Tensor
from rushlight._quantized._schemes import PerChannel, PerTensor
from rushlight._quantized._tensor import QuantizedTensor, make, without_overrides

_UNIFORM_ONLY = "Setting strides is possible only on uniformly quantized tensor"


def wrapped(result, like, quantizer=None):
    """Integers, or a list of them, as quantized tensors of the type of another."""
    if isinstance(result, Tensor):
        return like._like(result, quantizer)
    return tuple(like._like(part, quantizer) for part in result)


def uniform(function):
    """A view that moves elements: of tensors with one scale."""

    def view(q, *args, **kwargs):
        if type(q._quantizer) is PerChannel:
            raise RuntimeError(f"{_UNIFORM_ONLY}: {function.__name__} would take channels apart")
        return wrapped(function(q._ints(), *args, **kwargs), q)

    return view


def sized(function):
    """A view that must leave the axis of the channels as long as it was."""

    def view(q, *args, **kwargs):
        ints = function(q._ints(), *args, **kwargs)
        if type(q._quantizer) is PerChannel:
            q._quantizer.fit(ints.shape, "quantization")
        return wrapped(ints, q)

    return view


def _moved(quantizer, axis):
    return PerChannel(quantizer.scales, quantizer.zero_points, axis)


def _dim(q, dim, extra=0):
    n = q.dim() + extra
    if not -n <= dim < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )
    return dim % n


def select(q, dim, index):
    quantizer, ints = q._quantizer, q._ints().select(dim, index)
    if type(quantizer) is PerChannel:
        dim = _dim(q, dim)
        if dim == quantizer.axis:
            scale, zero_point = quantizer.scales[index], quantizer.zero_points[index]
            if quantizer.floating:
                raise RuntimeError(
                    "select: a channel whose zero point is a fraction has no scheme of its own"
                )
            quantizer = PerTensor(scale, zero_point)
        else:
            quantizer = _moved(quantizer, quantizer.axis - (dim < quantizer.axis))
    return q._like(ints, quantizer)


def sliced(q, dim, index):
    """q[..., start:stop:step, ...] along a dimension."""
    quantizer = q._quantizer
    if type(quantizer) is PerChannel and dim == quantizer.axis:
        quantizer = PerChannel(quantizer.scales[index], quantizer.zero_points[index], dim)
    return q._like(q._ints()[(slice(None),) * dim + (index,)], quantizer)


def narrow(q, dim, start, length):
    dim = _dim(q, dim)
    q._ints().narrow(dim, start, length)  # says what is out of range
    start = int(start) % max(q.size(dim), 1) if start < 0 else int(start)
    return sliced(q, dim, slice(start, start + length))


def unsqueeze(q, dim):
    quantizer, ints = q._quantizer, q._ints().unsqueeze(dim)
    if type(quantizer) is PerChannel:
        quantizer = _moved(quantizer, quantizer.axis + (_dim(q, dim, 1) <= quantizer.axis))
    return q._like(ints, quantizer)


def squeeze(q, dim=None):
    quantizer = q._quantizer
    ints = q._ints().squeeze() if dim is None else q._ints().squeeze(dim)
    if type(quantizer) is PerChannel:
        dims = (
            range(q.dim())
            if dim is None
            else [_dim(q, d) for d in (dim if isinstance(dim, (tuple, list)) else [dim])]
        )
        gone = [d for d in dims if q.size(d) == 1]
        if quantizer.axis in gone:
            raise RuntimeError(
                "Squeeze is only possible on non-axis dimension for Per-Channel Quantized Tensors."
            )
        quantizer = _moved(quantizer, quantizer.axis - sum(d < quantizer.axis for d in gone))
    return q._like(ints, quantizer)


def unbind(q, dim=0):
    return tuple(select(q, dim, i) for i in range(q.size(dim)))


def split(q, split_size, dim=0):
    dim = _dim(q, dim)
    pieces = q._ints().split(split_size, dim)
    ends, start = [], 0
    for piece in pieces:
        ends.append((start, start + piece.size(dim)))
        start += piece.size(dim)
    return tuple(sliced(q, dim, slice(*end)) for end in ends)


def chunk(q, chunks, dim=0):
    return split(q, [c.size(dim) for c in q._ints().chunk(chunks, dim)], dim)


def basic(index):
    """Whether an index is of integers, slices, None and ... only."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is None or part is Ellipsis or isinstance(part, (int, slice)) and not isinstance(part, bool)
        for part in parts
    )


def getitem(q, index):
    if type(q._quantizer) is PerTensor:
        return q._like(q._ints()[index])
    if not basic(index):
        raise RuntimeError(
            f"{_UNIFORM_ONLY}: a tensor with a scale for each channel is indexed by integers and slices, or index_select"
        )
    parts = list(index) if isinstance(index, tuple) else [index]
    given = sum(part is not None and part is not Ellipsis for part in parts)
    if given > q.dim():
        raise IndexError(f"too many indices for tensor of dimension {q.dim()}")
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (q.dim() - given)
    dim = 0
    for part in parts:
        if part is None:
            q, dim = unsqueeze(q, dim), dim + 1
        elif isinstance(part, int):
            q = select(q, dim, part)
        else:
            q, dim = sliced(q, dim, part), dim + 1
    return q


def index_select(q, dim, index):
    quantizer, dim = q._quantizer, _dim(q, dim)
    if type(quantizer) is PerChannel and dim == quantizer.axis:
        quantizer = PerChannel(quantizer.scales[index], quantizer.zero_points[index], dim)
    return q._like(q._ints().index_select(dim, index), quantizer)


def resize_(q, *size, memory_format=None):
    """Other sizes on the same memory, in place."""
    if type(q._quantizer) is PerChannel:
        raise RuntimeError("Can only resize quantized tensors with per-tensor schemes!")
    rl._core.convert.alert_not_deterministic("quantized_resize_cpu_")
    without_overrides(Tensor.resize_, q, *size)
    return q


def cat(tensors, dim=0, *, out=None):
    """Joins tensors along a dimension; the result has the scale of the first, or of `out`."""
    first = tensors[0]
    for t in tensors:
        if not isinstance(t, QuantizedTensor) or t.dtype is not first.dtype:
            raise RuntimeError("All dtypes must be the same.")
        if t.qscheme() is not rl.per_tensor_affine:
            raise RuntimeError("Only per-tensor quantization is supported in 'cat'!")
    target = (first if out is None else out)._quantizer
    parts = [
        t._ints() if t._quantizer.same(target) else target.quantize(t.dequantize(), t.dtype) for t in tensors
    ]
    result = make(rl.cat(parts, dim), first.dtype, target)
    if out is None:
        return result
    resize_(out, result.shape)
    out._ints().copy_(result._ints())
    return out


def stack(tensors, dim=0):
    return cat([unsqueeze(t, dim) for t in tensors], dim)
