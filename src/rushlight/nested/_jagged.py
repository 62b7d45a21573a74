"""Ops on jagged tensors, by the name of the op: on all values at once where sequences need not be told apart."""

import rushlight as rl
from rushlight._C import Tensor
from rushlight.nested import _pad
from rushlight.nested._ragged_size import NestedInt
from rushlight.nested._tensor import Nested, NestedTensor, alias, jagged, wrapped

HANDLERS: dict = {"to_padded_tensor": _pad.to_padded_tensor}
LAYERS: dict = {}  # of torch.nn.functional, where the function itself is meant and not what it is composed of


def handles(*names, table=HANDLERS):
    def register(function):
        table.update(dict.fromkeys(names, function))
        return function

    return register


def refusal(name):
    return (
        f"aten.{name}.default: there is no such operation for jagged nested tensors. Where sequences do not mix, apply it to "
        "values(): torch.nested.nested_tensor_from_jagged(f(x.values()), x.offsets()); else to x.unbind(), or to "
        "x.to_padded_tensor(0)"
    )


def shape_text(t):
    return "(" + ", ".join(map(str, t.shape)) + ("," if t.dim() == 1 else "") + ")"


def same_sequences(a, b):
    return a._ragged_idx == b._ragged_idx and a._ragged_size == b._ragged_size


_NAMES = {"add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge"}


def _mismatch(name, a, b):
    name = name.removesuffix("_")
    name = f"{name}.Tensor" if name in _NAMES else name
    return RuntimeError(
        f"cannot call binary pointwise function {name} with inputs of shapes {shape_text(a)} and {shape_text(b)}: the sequences "
        "must be the same, made of the same offsets()"
    )


def _dense_values(dense, x, name):
    """A dense tensor as it broadcasts with the values of x."""
    if dense.dim() == 0:
        return dense
    dims = x.dim()
    if dense.dim() > dims:
        raise _mismatch(name, x, dense)
    dense = dense.reshape((1,) * (dims - dense.dim()) + tuple(dense.shape))
    ragged, size = x._ragged_idx, x.size()
    for d, (n, m) in enumerate(zip(dense.shape, size, strict=True)):
        if d != ragged and n != 1 and m != 1 and n != m:
            raise _mismatch(name, x, dense)
    if dense.size(ragged) == 1:
        if dense.size(0) == 1:
            return dense[0]
        if x._lengths is None:
            return (
                dense.movedim(ragged, 1)
                .squeeze(1)
                .repeat_interleave(x._offsets.diff(), 0, output_size=x._held.size(ragged - 1))
                .movedim(0, ragged - 1)
            )
        dense = dense.expand(*dense.shape[:ragged], x._get_max_seqlen(), *dense.shape[ragged + 1 :])
    if dense.size(ragged) != x._get_max_seqlen():
        raise _mismatch(name, x, dense)
    return _pad.unpadded(dense.expand(x._batch(), *dense.shape[1:]), x)


def pointwise(func, name, args, kwargs):
    values = (*args, *kwargs.values())
    nested = [a for a in values if isinstance(a, Nested)]
    first = nested[0]
    for other in nested[1:]:
        if not same_sequences(first, other) or first.dim() != other.dim():
            raise _mismatch(name, first, other)

    if any(isinstance(a, NestedInt) for a in values):
        raise RuntimeError(
            f"invalid argument: {name} of a nested tensor and the size of a ragged dimension, which is no number"
        )

    def plain(a):
        if isinstance(a, Nested):
            return a._held
        if isinstance(a, Tensor):
            return _dense_values(a, first, name)
        return a

    kwargs = {k: plain(v) for k, v in kwargs.items() if k != "layout"}
    if name.endswith("_like"):
        kwargs.pop("memory_format", None)
    result = func(*map(plain, args), **kwargs)
    if name.endswith("_") and not name.endswith("__"):
        if not isinstance(args[0], Nested):
            raise RuntimeError(
                f"{name}: a nested tensor cannot be written into a dense one: use its to_padded_tensor()"
            )
        return args[0]
    if isinstance(result, Tensor):
        return first._like(result)
    return type(result)([first._like(r) for r in result])


def inner(x, dim, name, ragged=False):
    """The dimension of the values that `dim` of x is; neither the batch nor (unless `ragged`) the ragged one."""
    at = wrapped(dim, x.dim())
    if at == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if at == x._ragged_idx and not ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return at - 1


def _with(x, held, ragged_idx=None):
    """Other values with the sequences of x, the ragged dimension in another place perhaps."""
    return jagged(
        held, x._offsets, x._lengths, x._ragged_idx if ragged_idx is None else ragged_idx, x._metadata_cache
    )


@handles("unbind")
def unbind(x, dim=0):
    if wrapped(dim, x.dim()) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    at, held = x._ragged_idx - 1, x._held
    if at < 0:
        raise RuntimeError("unbind(): nested tensor with a ragged dimension out of bounds: 0 is the batch")
    spans = x._spans()
    if x._lengths is None:
        if spans and spans[0][0] == 0 and spans[-1][0] + spans[-1][1] == held.size(at):
            return held.split([n for _, n in spans], at)
    elif len(x._lengths) != len(x._offsets) - 1:
        raise RuntimeError(
            f"unbind(): nested tensor offsets and lengths do not match: {len(x._offsets)} offsets, {len(x._lengths)} lengths"
        )
    total = held.size(at)
    for start, n in spans:
        if start < 0 or n < 0 or start + n > total:
            raise RuntimeError(
                f"unbind(): nested tensor offsets and lengths lead out of bounds: {n} elements from {start} on, of {total} in "
                f"dimension {at} of its values"
            )
    return tuple(held.narrow(at, start, n) for start, n in spans)


def of_parts(parts, x, ragged_idx):
    """The parts, one for each sequence of x and as long along ragged_idx, as a jagged tensor."""
    values = rl.cat(list(parts), ragged_idx - 1)
    if x._lengths is None and int(x._offsets[0]) == 0:
        return jagged(values, x._offsets, None, ragged_idx, x._metadata_cache)
    return jagged(
        values,
        rl.nn.functional.pad(x._sequence_lengths().cumsum(0), (1, 0)),
        None,
        ragged_idx,
        x._metadata_cache,
    )


@handles("select")
def select(x, dim, index):
    at = wrapped(dim, x.dim())
    if at == 0:
        n = x._batch()
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {n}")
        start = int(x._offsets[index % n])
        stop = int(x._offsets[index % n + 1]) if x._lengths is None else start + int(x._lengths[index])
        return x._held.narrow(x._ragged_idx - 1, start, stop - start)
    d = inner(x, dim, "select")
    return _with(x, x._held.select(d, index), x._ragged_idx - (at < x._ragged_idx))


def _is_all(index):
    return isinstance(index, slice) and index == slice(None)


@handles("__getitem__")
def getitem(x, index):
    index = index if isinstance(index, tuple) else (index,)
    if any(i is Ellipsis for i in index):
        at = next(k for k, i in enumerate(index) if i is Ellipsis)
        missing = x.dim() - sum(i is not None for i in index) + 1
        index = index[:at] + (slice(None),) * missing + index[at + 1 :]
    if not index:
        return _with(x, alias(x._held))
    if isinstance(index[0], int) and not isinstance(index[0], bool):
        part = select(x, 0, index[0])
        return part[index[1:]] if len(index) > 1 else part
    if all(isinstance(i, Tensor) for i in index) and len(index) > 1:
        return x._held[_flat_index(x, index)]
    if not _is_all(index[0]):
        raise RuntimeError(
            "slice(): not supported for NestedTensor on dim=0: take the list x.unbind()[a:b], or chunk(n, dim=0)"
        )
    ragged, seen, removed = x._ragged_idx, 1, 0
    for i in index[1:]:
        if seen == ragged and i is not None:
            if not _is_all(i):
                raise RuntimeError(
                    "slice(): not supported for NestedTensor on ragged dim: sequences are cut one by one, [t[a:b] for t in x.unbind()]"
                )
            break
        removed += 1 if isinstance(i, int) else -1 if i is None else 0
        seen += i is not None
    return _with(x, x._held[index[1:]], ragged - removed)


def _flat_index(x, index):
    """Indices (sequence, place in it, ...) as indices of the values."""
    if x._ragged_idx != 1:
        raise RuntimeError("index_put(): not supported for NestedTensor with ragged_idx > 1")
    batch, place = (i.to(rl.int64) for i in index[:2])
    lengths = x._sequence_lengths().to(rl.int64)
    if bool(((place >= lengths[batch]) | (place < -lengths[batch])).any()):
        raise RuntimeError("Some indices in the ragged dimension are out of bounds!")
    place = rl.where(place < 0, place + lengths[batch], place)
    return (x._offsets[:-1][batch] + place, *index[2:])


@handles("index_put_")
def index_put_(x, indices, values, accumulate=False):
    if len(indices) < 2 or any(i is None for i in indices[:2]):
        raise RuntimeError(
            "If ragged dimension is part of indices, index_put needs the batch's and the ragged one's: x[sequence, place] = value"
        )
    x._held.index_put_(_flat_index(x, indices), values, accumulate)
    return x


@handles("index_put")
def index_put(x, indices, values, accumulate=False):
    return index_put_(x.clone(), indices, values, accumulate)


@handles("__setitem__")
def setitem(x, index, value):
    index = index if isinstance(index, tuple) else (index,)
    value = value if isinstance(value, Tensor) else rl.tensor(value, dtype=x.dtype)
    if len(index) > 1 and all(isinstance(i, Tensor) for i in index):
        index_put_(x, index, value)
    elif index == (Ellipsis,) or all(map(_is_all, index)):
        x.copy_(value) if isinstance(value, Nested) else x._held.copy_(_dense_values(value, x, "copy_"))
    else:
        target = getitem(x, index)
        target.copy_(value) if isinstance(value, Nested) or not isinstance(
            target, Nested
        ) else target._held.copy_(_dense_values(value, target, "copy_"))


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
    """(shape of the values, place of the ragged dimension) for a view of x."""
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


@handles("contiguous")
def contiguous(x, memory_format=rl.contiguous_format):
    if x._lengths is None:
        held = x._held.contiguous()
        return x if held is x._held else _with(x, held)
    return of_parts(unbind(x), x, x._ragged_idx)


@handles("clone")
def clone(x, *, memory_format=None):
    if memory_format is rl.contiguous_format:
        made = contiguous(x)
        return _with(x, x._held.clone()) if made is x else made
    return _with(x, x._held.clone())


@handles("detach", "alias")
def detach(x):
    return _with(x, x._held.detach())


@handles("to", "type_as", "cpu", "type")
def to(x, *args, **kwargs):
    kwargs = {k: v._held if isinstance(v, Nested) else v for k, v in kwargs.items() if k != "layout"}
    args = [a._held if isinstance(a, Nested) else a for a in args]
    if not isinstance(x, Nested):
        return x.to(*args, **kwargs)
    held = x._held.to(*args, **kwargs)
    if held is x._held:
        return x
    if held.device != x._offsets.device:
        lengths = None if x._lengths is None else x._lengths.to(held.device)
        return jagged(held, x._offsets.to(held.device), lengths, x._ragged_idx, x._metadata_cache)
    return _with(x, held)


@handles("copy_")
def copy_(x, src, non_blocking=False):
    if (
        not isinstance(x, Nested)
        or not isinstance(src, Nested)
        or not same_sequences(x, src)
        or x.size() != src.size()
    ):
        raise RuntimeError(
            "copy_ only supports Nested Tensors that have same size and the exact same offset tensor."
        )
    x._held.copy_(src._held)
    return x


@handles("is_same_size")
def is_same_size(x, other):
    for t in (x, other):
        if not isinstance(t, NestedTensor):
            raise ValueError(
                "NestedTensor is_same_size_default(self: jt_all, other: jt_all): expected self to be a jagged layout NestedTensor"
            )
    return x.size() == other.size()


@handles("numel", "nelement")
def numel(x):
    return x.numel()


@handles("equal")
def equal(x, other):
    if not (isinstance(x, Nested) and isinstance(other, Nested)) or x._spans() != other._spans():
        return False
    return all(rl.equal(a, b) for a, b in zip(unbind(x), unbind(other), strict=True))


def _register_new(name):
    def new(x, size=(), *args, **kwargs):
        if isinstance(size, int) or tuple(size) != ():
            raise RuntimeError(f"{name}() not supported for NJT with shape != (): call it of values()")
        return getattr(x._held, name)((), *args, **kwargs)

    handles(name)(new)


for _name in ("new_empty", "new_zeros", "new_ones", "new_full"):
    _register_new(_name)


@handles("_assign")
def assign(name, x, result):
    return copy_(x, result)


@handles("numpy", "__array__")
def numpy(x, *args, **kwargs):
    raise RuntimeError(
        ".numpy() is not supported for tensor subclasses: values().numpy(), or that of each in unbind()"
    )


@handles("tolist")
def tolist(x):
    raise RuntimeError(
        ".tolist() is not supported for tensor subclasses, got NestedTensor: [t.tolist() for t in x.unbind()]"
    )


@handles("masked_select")
def masked_select(x, mask):
    if x.dim() != 2 or not isinstance(mask, Nested):
        raise RuntimeError(
            "masked_select only support 2-D selections currently: values()[mask.values()] has the elements"
        )
    if not same_sequences(x, mask):
        raise RuntimeError(f"Mask with shape {mask.size()} is not compatible with input's shape {x.size()}")
    counts = rl.stack([m.sum() for m in unbind(mask)])
    return jagged(x._held[mask._held], rl.nn.functional.pad(counts.cumsum(0), (1, 0)))


from rushlight.nested import _jagged_products, _jagged_reduce  # noqa: E402, F401  (further handlers)
