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
    """Other values with the sequences of x, the ragged dimension at another index perhaps."""
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
    """Indices (sequence, position in it, ...) as indices of the values."""
    if x._ragged_idx != 1:
        raise RuntimeError("index_put(): not supported for NestedTensor with ragged_idx > 1")
    batch, position = (i.to(rl.int64) for i in index[:2])
    lengths = x._sequence_lengths().to(rl.int64)
    if bool(((position >= lengths[batch]) | (position < -lengths[batch])).any()):
        raise RuntimeError("Some indices in the ragged dimension are out of bounds!")
    position = rl.where(position < 0, position + lengths[batch], position)
    return (x._offsets[:-1][batch] + position, *index[2:])


@handles("index_put_")
def index_put_(x, indices, values, accumulate=False):
    if len(indices) < 2 or any(i is None for i in indices[:2]):
        raise RuntimeError(
            "If ragged dimension is part of indices, index_put needs the batch's and the ragged one's: x[sequence, position] = value"
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
