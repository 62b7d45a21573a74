"""Views of jagged tensors, and what joins them."""

import rushlight as rl
from rushlight.nested._jagged import _dense_values, _with, handles, inner, same_sequences, shape_text
from rushlight.nested._ragged_size import NestedInt
from rushlight.nested._tensor import Nested, alias, jagged, wrapped


@handles("transpose", "swapaxes", "swapdims")
def transpose(x, dim0, dim1):
    a, b = wrapped(dim0, x.dim()), wrapped(dim1, x.dim())
    if a == b:
        return _with(x, alias(x._held))
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    ragged = {a: b, b: a}.get(x._ragged_idx, x._ragged_idx)
    return _with(x, x._held.transpose(a - 1, b - 1), ragged)


@handles("_mT", "mT", "_mH")
def matrix_transpose(x):
    return transpose(x, -2, -1)


@handles("_T", "T")
def reverse_dims(x):
    return permute(x, *reversed(range(x.dim())))


@handles("permute")
def permute(x, *dims, **kwargs):
    dims = dims or tuple(kwargs["dims"])
    dims = tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    if len(dims) != x.dim():
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({x.dim()}) does not match the length of the desired ordering of "
            f"dimensions ({len(dims)})."
        )
    order = [wrapped(d, x.dim()) for d in dims]
    if len(set(order)) != len(order):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return _with(x, x._held.permute([d - 1 for d in order[1:]]), order.index(x._ragged_idx))


@handles("movedim", "moveaxis")
def movedim(x, source, destination):
    order = list(range(x.dim()))
    at = wrapped(source, x.dim())
    order.remove(at)
    order.insert(wrapped(destination, x.dim()), at)
    return permute(x, *order)


@handles("squeeze")
def squeeze(x, dim=None):
    if dim is None:
        raise RuntimeError(
            "squeeze(): without the dim argument is not supported for NestedTensor: name the dimension"
        )
    dims = sorted({wrapped(d, x.dim()) for d in ((dim,) if isinstance(dim, int) else dim)}, reverse=True)
    held, ragged = x._held, x._ragged_idx
    for at in dims:
        d = inner(x, at, "squeeze")
        if held.size(d) == 1:
            held = held.squeeze(d)
            ragged -= at < x._ragged_idx
    return _with(x, held, ragged)


@handles("unsqueeze")
def unsqueeze(x, dim):
    at = wrapped(dim, x.dim() + 1)
    if at == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return _with(x, x._held.unsqueeze(at - 1), x._ragged_idx + (at <= x._ragged_idx))


def _given(shape, kwargs, key):
    shape = shape or tuple(kwargs.get(key, ()))
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


def _view_shape(x, shape, name):
    """(shape of the values, index of the ragged dimension) for a view of x."""
    size, ragged = x.size(), x._ragged_idx
    wrong = RuntimeError(
        f"{name}(): cannot view shape {shape_text(x)} as [{', '.join(map(str, shape))}]: the batch and the ragged dimension stay"
    )
    if not shape or shape[0] not in (-1, size[0]):
        raise wrong
    ragged_at = [k for k, n in enumerate(shape) if isinstance(n, NestedInt)]
    if not ragged_at:
        at = ragged
        if at >= len(shape) or (shape[at] != -1 and not (at == 0)):
            raise wrong
    elif len(ragged_at) == 1 and shape[ragged_at[0]] == size[ragged]:
        at = ragged_at[0]
    else:
        raise wrong
    before = [size[k] if n == -1 and k < ragged and at == ragged else n for k, n in enumerate(shape[:at])][1:]
    given = [*before, x._held.size(ragged - 1), *shape[at + 1 :]]
    known = 1
    for n in x._held.shape[: ragged - 1]:
        known *= n
    product = 1
    for n in before:
        product *= n
    if -1 not in before and product != known:
        raise wrong
    return given, at, wrong


@handles("view", "_unsafe_view")
def view(x, *shape, **kwargs):
    shape = _given(shape, kwargs, "size")
    if len(shape) == 1 and isinstance(shape[0], rl.dtype):
        return _with(x, x._held.view(shape[0]))
    given, at, _ = _view_shape(x, shape, "view")
    return _with(x, x._held.view(given), at)


@handles("reshape")
def reshape(x, *shape, **kwargs):
    given, at, _ = _view_shape(x, _given(shape, kwargs, "shape"), "view")
    return _with(x, x._held.reshape(given), at)


@handles("view_as", "reshape_as")
def reshape_as(x, other):
    return reshape(x, other.size())


@handles("expand")
def expand(x, *sizes, **kwargs):
    sizes = _given(sizes, kwargs, "size")
    own, ragged = x.size(), x._ragged_idx
    if (
        len(sizes) != x.dim()
        or sizes[0] not in (-1, own[0])
        or not (sizes[ragged] == -1 or sizes[ragged] == own[ragged])
    ):
        raise RuntimeError(
            f"expand(): cannot expand shape {shape_text(x)} -> [{', '.join(map(str, sizes))}]: the batch and the ragged dimension stay"
        )
    inner_sizes = [-1 if k == ragged else n for k, n in enumerate(sizes)][1:]
    return _with(x, x._held.expand(inner_sizes))


@handles("expand_as")
def expand_as(x, other):
    if isinstance(x, Nested):
        return expand(x, other.size())
    held = _dense_values(x, other, "expand").expand(other._held.shape)
    return other._like(held)


@handles("flatten")
def flatten(x, start_dim=0, end_dim=-1):
    a, b = (inner(x, d, "flatten", ragged=True) for d in (start_dim, end_dim))
    at = x._ragged_idx - 1
    if a <= at <= b and a != b:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    return _with(x, x._held.flatten(a, b), x._ragged_idx - (b - a if b < at else 0))


@handles("unflatten")
def unflatten(x, dim, sizes):
    d = inner(x, dim, "unflatten")
    return _with(
        x, x._held.unflatten(d, sizes), x._ragged_idx + (len(sizes) - 1 if d < x._ragged_idx - 1 else 0)
    )


@handles("chunk")
def chunk(x, chunks, dim=0):
    if wrapped(dim, x.dim()) == 0:
        return _batch_chunks(x, chunks)
    return tuple(_with(x, part) for part in x._held.chunk(chunks, inner(x, dim, "chunk")))


def _batch_chunks(x, chunks):
    each = -(-x._batch() // chunks)
    made = []
    for first in range(0, x._batch(), each):
        last = min(first + each, x._batch())
        at, starts = x._ragged_idx - 1, x._offsets[first : last + 1]
        if x._lengths is None:
            begin, end = int(starts[0]), int(starts[-1])
            part = x._held.narrow(at, begin, end - begin)
            made.append(jagged(part, starts - starts[0], None, x._ragged_idx))
        else:
            made.append(jagged(alias(x._held), starts.clone(), x._lengths[first:last].clone(), x._ragged_idx))
    return tuple(made)


@handles("split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes")
def split(x, split_size, dim=0):
    name = "split" if isinstance(split_size, int) else "split_with_sizes"
    return tuple(_with(x, part) for part in x._held.split(split_size, inner(x, dim, name)))


@handles("tensor_split")
def tensor_split(x, indices_or_sections, dim=0):
    return tuple(
        _with(x, part) for part in x._held.tensor_split(indices_or_sections, inner(x, dim, "tensor_split"))
    )


@handles("narrow")
def narrow(x, dim, start, length):
    return _with(x, x._held.narrow(inner(x, dim, "narrow"), start, length))


@handles("slice")
def slice_(x, dim=0, start=None, end=None, step=1):
    d = inner(x, dim, "slice")
    return _with(x, x._held[(slice(None),) * d + (slice(start, end, step),)])


def _joined(tensors, name):
    first = next(t for t in tensors if isinstance(t, Nested))
    values = []
    for t in tensors:
        if isinstance(t, Nested):
            if not same_sequences(first, t) or t.dim() != first.dim():
                raise RuntimeError(
                    f"{name}(): expected all tensors to have the same sequences, made of the same offsets()"
                )
            values.append(t._held)
        else:
            if t.dim() != first.dim():
                raise RuntimeError(
                    f"{name}(): expected tensors of as many dimensions, got {t.dim()} and {first.dim()}"
                )
            whole = [n for d, n in enumerate(t.shape) if d]
            whole[first._ragged_idx - 1] = first._held.size(first._ragged_idx - 1)
            values.append(_dense_values(t, first, name).expand(whole))
    return first, values


@handles("cat", "concat", "concatenate")
def cat(tensors, dim=0):
    first = next(t for t in tensors if isinstance(t, Nested))
    d = inner(first, dim, "cat")
    first, values = _joined(tensors, "cat")
    return _with(first, rl.cat(values, d))


@handles("stack")
def stack(tensors, dim=0):
    first, values = _joined(tensors, "stack")
    at = wrapped(dim, first.dim() + 1)
    if at == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    return _with(first, rl.stack(values, at - 1), first._ragged_idx + (at <= first._ragged_idx))
