"""More rules of `_composites`: other names of primitives, and functions that are a few primitives."""

import math

import rushlight as rl

from .. import _C
from ..ops import namespace
from .composites import _copied, rule

aten = namespace("aten")


@rule("cpu")
def _cpu(x, memory_format=None):
    return _copied(x, device="cpu", memory_format=memory_format)


@rule("narrow")
def _narrow(input, dim, start, length):
    dim, size = _dim(input, dim), input.shape[dim]
    start = int(start) if isinstance(start, rl.Tensor) else start
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start += size if start < 0 else 0
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return aten.slice.Tensor(input, dim, start, start + length, 1)


def _dim(x, dim):
    rank = max(x.dim(), 1)
    if not -rank <= dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
        )
    return dim % rank


@rule("chunk")
def _chunk(input, chunks, dim=0):
    return tuple(aten.split.Tensor(input, _chunk_size(input, chunks, dim), dim))


@rule("unsafe_chunk")
def _unsafe_chunk(input, chunks, dim=0):
    return tuple(aten.unsafe_split.Tensor(input, _chunk_size(input, chunks, dim), dim))


def _chunk_size(x, chunks, dim):
    if x.dim() == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    return max(math.ceil(x.shape[_dim(x, dim)] / chunks), 1)


@rule("ravel")
def _ravel(x):
    return x.reshape(-1)


@rule("unflatten")
def _unflatten(x, dim, sizes, names=None):
    if names is not None:
        return NotImplemented
    dim, sizes = _dim(x, dim), list(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if -1 in sizes and (known := -math.prod(sizes)) > 0:
        sizes[sizes.index(-1)] = x.shape[dim] // known
    if math.prod(sizes) != x.shape[dim]:
        raise RuntimeError(
            f"unflatten: Provided sizes {sizes} don't multiply up to the size of dim {dim} ({x.shape[dim]}) in the "
            "input tensor"
        )
    return x.view([*x.shape[:dim], *sizes, *x.shape[dim + 1 :]])


@rule("movedim", "moveaxis")
def _movedim(x, source, destination):
    source = [_dim(x, d) for d in ([source] if isinstance(source, int) else source)]
    destination = [_dim(x, d) for d in ([destination] if isinstance(destination, int) else destination)]
    if len(source) != len(destination) or len({*source}) < len(source) or len({*destination}) < len(source):
        return NotImplemented  # the op itself says what is wrong
    order = [d for d in range(x.dim()) if d not in source]
    for to, which in sorted(zip(destination, source, strict=True)):
        order.insert(to, which)
    return x.permute(order)


@rule("swapaxes", "swapdims")
def _swapaxes(x, first, second):
    return x.transpose(first, second)


@rule("atleast_1d", "_atleast_1d")
def _atleast_1d(x):
    return x.reshape(1) if x.dim() == 0 else x


@rule("_atleast_2d")
def _atleast_2d(x):
    return x.reshape(1, 1) if x.dim() == 0 else x.unsqueeze(0) if x.dim() == 1 else x


@rule("vstack", "row_stack")
def _vstack(tensors):
    return rl.cat([_atleast_2d(x) for x in tensors], 0)


@rule("hstack")
def _hstack(tensors):
    tensors = [_atleast_1d(x) for x in tensors]
    return rl.cat(tensors, 0 if tensors and tensors[0].dim() == 1 else 1)


@rule("column_stack")
def _column_stack(tensors):
    return rl.cat([x.reshape(x.numel(), 1) if x.dim() <= 1 else x for x in tensors], 1)


@rule("outer", "ger")
def _outer(input, vec2):
    if input.dim() != 1 or vec2.dim() != 1:
        return NotImplemented  # the op itself says what is wrong
    return input.reshape(input.shape[0], 1) * vec2


@rule("tile")
def _tile(x, *dims, **named):
    given = dims or (named["dims"],)
    counts = list(given[0]) if len(given) == 1 and not isinstance(given[0], int) else list(given)
    return x.repeat([1] * (x.dim() - len(counts)) + counts)


@rule("argsort")
def _argsort(x, *args, **kwargs):
    if "stable" in kwargs:
        return rl.sort(x, *args, **kwargs)[1]
    return x.sort(*args, **kwargs)[1]


@rule("argwhere")
def _argwhere(x):
    return x.nonzero()


@rule("msort")
def _msort(x):
    return rl.sort(x, dim=0)[0]


@rule("isfinite")
def _isfinite(x):
    if not (x.is_floating_point() or x.is_complex()):
        return rl.ones_like(x, dtype=rl.bool)
    return (x == x) * (x.abs() != math.inf)


@rule("_where_method")
def _where_method(x, condition, other):
    return rl.where(condition, x, other)


@rule("positive")
def _positive(x):
    if x.dtype == rl.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return x


@rule("real")
def _real(x):
    return rl.view_as_real(x).select(-1, 0) if x.is_complex() else x


@rule("true_divide")
def _true_divide(x, other):
    return _C.ops["div"](x, other)


@rule("layer_norm", "nn.functional.layer_norm")
def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True):
    return aten.native_layer_norm(input, list(normalized_shape), weight, bias, eps)[0]


@rule("batch_norm", "nn.functional.batch_norm")
def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True):
    return aten.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]
