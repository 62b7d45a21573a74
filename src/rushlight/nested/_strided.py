"""Ops on nested tensors of layout torch.strided, by the name of the op: on the buffer where all lie in order, else tensor
by tensor."""

import math

import rushlight as rl
from rushlight._C import Tensor
from rushlight.nested import _pad
from rushlight.nested._tensor import Nested, NestedTensor, alias, jagged, strided, strided_of, wrapped

HANDLERS: dict = {}
LAYERS: dict = {}  # of torch.nn.functional, where the function itself is meant and not what it is composed of


def handles(*names, table=HANDLERS):
    def register(function):
        table.update(dict.fromkeys(names, function))
        return function

    return register


def refusal(name):
    return (
        f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend: there is no such operation for "
        f"nested tensors. Apply it to each: torch.nested.as_nested_tensor([t.{name}(...) for t in x.unbind()]), or to "
        "torch.nested.to_padded_tensor(x, 0)"
    )


def _need_contiguous(x, message="NestedTensor must be contiguous to get buffer. Call contiguous() first."):
    if not x.is_contiguous():
        raise RuntimeError(message)


def _same_places(a, b):
    return a._steps == b._steps and a._starts == b._starts


_BINARY = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "divide",
        "true_divide",
        "eq",
        "ne",
        "ge",
        "gt",
        "le",
        "lt",
        "rsub",
        "maximum",
        "minimum",
        "pow",
        "remainder",
        "fmod",
        "floor_divide",
        "where",
        "logical_and",
        "logical_or",
        "logical_xor",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "masked_fill",
        "fill",
        "zero",
    ]
)


def _is_number(value):
    return not isinstance(value, Tensor) or (not isinstance(value, Nested) and value.dim() == 0)


def pointwise(func, name, args, kwargs):
    base = name.removesuffix("_")
    values = (*args, *kwargs.values())
    nested = [a for a in values if isinstance(a, Nested)]
    first = nested[0]
    dense = [a for a in values if isinstance(a, Tensor) and not isinstance(a, Nested) and a.dim()]
    if base.endswith("_like"):
        return _like(func, first, *args[1:], **kwargs)
    in_place = name.endswith("_") and not name.endswith("__")
    if name == "fill_" and dense:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {dense[0].dim()} dimensions."
        )
    if in_place and not isinstance(args[0], Nested) and args[0].dim() == 0:
        raise RuntimeError("output with shape [] doesn't match the broadcast shape [of a nested tensor]")
    if dense:
        spread = _spread(dense[0], first) if len(dense) == 1 and not in_place else None
        if spread is None:
            kinds = (
                "nested self and non-nested" if isinstance(args[0], Nested) else "non-nested self and nested"
            )
            raise RuntimeError(
                f"Expected both self and other to be nested, but got a {kinds} other: the tensors can be taken one by one, "
                "x.unbind()"
            )
        return _by_parts(func, args, kwargs, {id(dense[0]): spread})
    for other in nested[1:]:
        if other._sizes != first._sizes:
            raise RuntimeError(
                f"{base} does not support broadcasting when given a NestedTensor: the sizes of the tensors differ"
            )
    if not all(_same_places(first, other) for other in nested[1:]):
        if base in ("div", "divide", "true_divide"):
            what = "strides" if any(first._steps != other._steps for other in nested) else "offsets"
            raise RuntimeError(
                f"div requires {what} to match when given NestedTensors: call contiguous() first"
            )
        if in_place:
            parts = zip(*(a.unbind() for a in nested), strict=True)
            for group in parts:
                _on(func, args, kwargs, iter(group))
            return args[0]
        return _by_parts(func, args, kwargs, {})
    if len(nested) == 1 and base not in _BINARY and not base.startswith("__r") and base != "dropout":
        _need_contiguous(first)
    result = _on(func, args, kwargs, iter([a._held for a in nested]))
    if in_place:
        return args[0]
    return _wrap(result, first)


def _wrap(result, first):
    if isinstance(result, Tensor):
        return first._like(result)
    return type(result)([first._like(r) for r in result])


def _on(func, args, kwargs, plain):
    """func with plain tensors in the places of nested ones."""
    given = [next(plain) if isinstance(a, Nested) else a for a in args]
    return func(*given, **{k: next(plain) if isinstance(v, Nested) else v for k, v in kwargs.items()})


def _by_parts(func, args, kwargs, spread):
    def parts(value):
        return value.unbind() if isinstance(value, Nested) else spread.get(id(value))

    lists, named = [parts(a) for a in args], {k: parts(v) for k, v in kwargs.items()}
    count = next(len(p) for p in (*lists, *named.values()) if p is not None)
    return strided_of(
        [
            func(
                *(a if p is None else p[i] for a, p in zip(args, lists, strict=True)),
                **{k: v if named[k] is None else named[k][i] for k, v in kwargs.items()},
            )
            for i in range(count)
        ]
    )


def _spread(dense, nested):
    """(B, 1, ...) as one tensor for each of a nested tensor (B, *, ...), or None."""
    if (
        dense.dim() != nested.dim()
        or dense.size(0) != len(nested._sizes)
        or dense.dim() < 2
        or dense.size(1) != 1
    ):
        return None
    return dense.unbind()


def _like(func, x, *args, memory_format=None, layout=None, **kwargs):
    if memory_format not in (None, rl.preserve_format, rl.contiguous_format):
        raise RuntimeError(
            f"memory format option is only supported by strided tensors: got {memory_format} for a nested tensor"
        )
    if memory_format is not rl.contiguous_format and x._held.numel() == x.numel():
        return x._like(func(x._held, *args, **kwargs))
    return strided(func(x._held.new_empty(x.numel()), *args, **kwargs), x._sizes)


@handles("unbind")
def unbind(x, dim=0):
    if wrapped(dim, x.dim()) != 0:
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
    if not x._sizes:
        return ()
    if x.is_contiguous():
        flat = x._held.split([math.prod(size) for size in x._sizes])
        return tuple(part.view(size) for part, size in zip(flat, x._sizes, strict=True))
    return tuple(_part(x, i) for i in range(len(x._sizes)))


def _part(x, i):
    held = x._held
    return held.as_strided(x._sizes[i], x._steps[i], held.storage_offset() + x._starts[i])


def _each(x, steps_like):
    """A view: the sizes and strides of each tensor changed."""
    pairs = [steps_like(size, step) for size, step in zip(x._sizes, x._steps, strict=True)]
    return strided(alias(x._held), [p[0] for p in pairs], [tuple(p[1]) for p in pairs], x._starts)


@handles("select")
def select(x, dim, index):
    dim = wrapped(dim, x.dim())
    if dim == 0:
        n = len(x._sizes)
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {n}")
        return _part(x, index % n)
    sizes, steps, starts = [], [], []
    for size, step, start in zip(x._sizes, x._steps, x._starts, strict=True):
        n = size[dim - 1]
        if not -n <= index < n:
            raise IndexError(
                f"select(): index {index} out of range for a tensor of size {list(size)} at dimension {dim - 1}"
            )
        sizes.append(size[: dim - 1] + size[dim:])
        steps.append(step[: dim - 1] + step[dim:])
        starts.append(start + index % n * step[dim - 1])
    return strided(alias(x._held), sizes, steps, starts)


@handles("__getitem__")
def getitem(x, index):
    index = index if isinstance(index, tuple) else (index,)
    if index == (Ellipsis,):
        return x._like(alias(x._held))
    first = index[0] if index else None
    if isinstance(first, int) and not isinstance(first, bool):
        part = select(x, 0, first)
        return part[index[1:]] if len(index) > 1 else part
    raise NotImplementedError(
        "Could not run 'aten::slice' with arguments from the 'NestedTensorCPU' backend: a nested tensor is indexed by an integer "
        "first, x[0, ...]; of several, take the list: x.unbind()[a:b]"
    )


@handles("__setitem__")
def setitem(x, index, value):
    getitem(x, index).copy_(value if isinstance(value, Tensor) else rl.tensor(value))


@handles("transpose", "swapaxes", "swapdims")
def transpose(x, dim0, dim1):
    a, b = wrapped(dim0, x.dim()), wrapped(dim1, x.dim())
    if a == b:
        return x._like(alias(x._held))
    if 0 in (a, b):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")

    def swapped(row):
        row = list(row)
        row[a - 1], row[b - 1] = row[b - 1], row[a - 1]
        return tuple(row)

    return _each(x, lambda size, step: (swapped(size), swapped(step)))


@handles("_mT", "mT", "_mH")
def matrix_transpose(x):
    return transpose(x, -2, -1)


@handles("squeeze")
def squeeze(x, dim=None):
    if dim is None:
        raise RuntimeError(
            "For nested tensors, squeeze without the dim argument set is not supported: it depends on the data. Name the "
            "dimension: squeeze(dim)"
        )
    at = wrapped(dim, x.dim())
    if at == 0:
        raise RuntimeError(
            "For nested tensors, squeezing dimension 0 is not supported at the moment. If you need it, squeeze its unbind()."
        )
    if x.dim() == 2:
        raise RuntimeError(
            "For nested tensors, squeezing a nested tensor of singleton tensors is not supported: rl.stack(x.unbind())"
        )
    if any(size[at - 1] != 1 for size in x._sizes):
        return x._like(alias(x._held))
    return _each(x, lambda size, step: (size[: at - 1] + size[at:], step[: at - 1] + step[at:]))


@handles("unsqueeze")
def unsqueeze(x, dim):
    at = wrapped(dim, x.dim() + 1)
    if at == 0:
        raise RuntimeError(
            "For nested tensors, unsqueezing dimension 0 is not supported at the moment: the batch is its dimension 0"
        )

    def grown(size, step):
        own = size[at - 1] * step[at - 1] if at - 1 < len(size) else 1
        return (*size[: at - 1], 1, *size[at - 1 :]), (*step[: at - 1], own, *step[at - 1 :])

    return _each(x, grown)


def _sizes_for(x, shape, word):
    """The size that each tensor has in a view of the given shape."""
    if not x._sizes:
        raise RuntimeError("empty nested tensor cannot be reshaped")
    if not shape:
        raise RuntimeError("shape '[]' is invalid for a nested tensor: its dimension 0 is the batch")
    if shape[0] != len(x._sizes):
        raise RuntimeError(
            f"{word}: For now nested {word} cannot change or infer the implicit batch dimension: expected "
            f"{len(x._sizes)} first, got {list(shape)}"
        )
    if sum(n == -1 for n in shape[1:]) > 1:
        raise RuntimeError("only one dimension can be inferred")
    sizes = []
    for size in x._sizes:
        given = list(shape[1:])
        known, numel = math.prod(n for n in given if n != -1), math.prod(size)
        if -1 in given:
            at = given.index(-1)
            # An inferred dimension in an old place is inherited.
            if at < len(size) and known * size[at] == numel:
                given[at] = size[at]
            elif known and numel % known == 0:
                given[at] = numel // known
        if -1 in given or math.prod(given) != numel:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
        sizes.append(tuple(given))
    return sizes


def _shape_of(shape):
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


@handles("view", "_unsafe_view")
def view(x, *shape, **kwargs):
    shape = _shape_of(shape) or tuple(kwargs.get("size", ()))
    if len(shape) == 1 and isinstance(shape[0], rl.dtype):
        raise NotImplementedError(refusal("view.dtype"))
    sizes = _sizes_for(x, shape, "view")
    parts = [_part(x.detach(), i).view(size) for i, size in enumerate(sizes)]
    return strided(alias(x._held), sizes, [p.stride() for p in parts], x._starts)


@handles("reshape")
def reshape(x, *shape, **kwargs):
    shape = _shape_of(shape) or tuple(kwargs.get("shape", ()))
    sizes = _sizes_for(x, shape, "reshape")
    try:
        return view(x, shape)
    except RuntimeError:
        return strided(contiguous(x)._held, sizes)


@handles("reshape_as", "view_as")
def reshape_as(x, other):
    return strided(contiguous(x)._held, other._sizes)


@handles("unflatten")
def unflatten(x, dim, sizes):
    at = wrapped(dim, x.dim())
    if at == 0:
        raise RuntimeError("unflatten: the batch of a nested tensor cannot be divided")
    return strided_of([t.unflatten(at - 1, sizes) for t in x.unbind()])


def _last(x, dim, word):
    if wrapped(dim, x.dim()) != x.dim() - 1 or x.dim() < 2:
        raise RuntimeError(f"{word} for nested tensors is currently only supported for the last dimension.")
    name = word[0].lower() + word[1:]
    if not x.is_contiguous():
        raise RuntimeError(f"{name} expects `self` to be contiguous.")


class _NoBackward(rl.autograd.Function):
    """A view of a buffer that refuses a gradient, as PyTorch does."""

    @staticmethod
    def forward(ctx, held):
        return held.view_as(held)

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError(
            "Nested Strided Tensor doesn't support chunk backward. Use the jagged layout, or split_with_sizes, instead."
        )


@handles("chunk")
def chunk(x, chunks, dim=0):
    _last(x, dim, "Chunk")
    if any(size[-1] % chunks for size in x._sizes):
        raise RuntimeError(
            "Chunk for nested tensors is only supported for nested tensors with trailing dimension divisible by chunks."
        )
    held = _NoBackward.apply(x._held) if x.requires_grad else x._held.detach()
    made = []
    for i in range(chunks):
        sizes = [(*size[:-1], size[-1] // chunks) for size in x._sizes]
        starts = [start + i * size[-1] for start, size in zip(x._starts, sizes, strict=True)]
        made.append(strided(held, sizes, x._steps, starts))
    return tuple(made)


@handles("split_with_sizes", "unsafe_split_with_sizes")
def split_with_sizes(x, split_sizes, dim=0):
    _last(x, dim, "split_with_sizes")
    for size in x._sizes:
        if sum(split_sizes) != size[-1]:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {size[-1]} (input tensor's size at dimension -1), but "
                f"got split_sizes={list(split_sizes)}"
            )
    made, at = [], 0
    for n in split_sizes:
        sizes = [(*size[:-1], n) for size in x._sizes]
        made.append(strided(alias(x._held), sizes, x._steps, [start + at for start in x._starts]))
        at += n
    return tuple(made)


@handles("split")
def split(x, split_size, dim=0):
    if not isinstance(split_size, int):
        return split_with_sizes(x, split_size, dim)
    _last(x, dim, "split")
    n = x.size(-1)
    return split_with_sizes(x, [min(split_size, n - at) for at in range(0, n, split_size)], dim)


@handles("narrow")
def narrow(x, dim, start, length):
    if wrapped(dim, x.dim()) != 0:
        raise RuntimeError(f"narrow(): only dim=0 supported for nested tensors, but got dim={dim}")
    if not x.is_contiguous():
        raise RuntimeError("narrow(): only contiguous nested tensors supported")
    n = len(x._sizes)
    start = start + n if start < 0 else start
    if not 0 <= start <= start + length <= n:
        raise IndexError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    numels = [math.prod(size) for size in x._sizes]
    sizes = x._sizes[start : start + length]
    part = x._held.narrow(0, sum(numels[:start]), sum(numels[start : start + length]))
    return strided(part, sizes)


@handles("cat", "concat", "concatenate")
def cat(tensors, dim=0):
    if not all(isinstance(t, Nested) for t in tensors):
        raise RuntimeError("cat(): expected each tensor in given list to be nested")
    dims = tensors[0].dim()
    at = wrapped(dim, dims)
    if not all(t.is_contiguous() for t in tensors):
        raise RuntimeError("cat(): only contiguous nested tensors are supported")
    if at == 0:
        parts = [part for t in tensors for part in t.unbind()]
        return strided_of(parts, tensors[0].dtype)
    outside = [[size[: at - 1] + size[at:] for size in t._sizes] for t in tensors]
    if any(t.dim() != dims for t in tensors) or any(o != outside[0] for o in outside):
        raise RuntimeError(
            "cat(): expected all nested tensors to have matching ragged structures outside of the concatenated dim"
        )
    for t in tensors:
        if any(len({size[d] for size in t._sizes}) > 1 for d in range(1, dims - 1)):
            raise RuntimeError(
                "cat(): only nested tensors with a single ragged dim next to the batch dim are supported when "
                "concatenating along another dimension than the batch"
            )
    return strided_of([rl.cat(parts, at - 1) for parts in zip(*(t.unbind() for t in tensors), strict=True)])


@handles("contiguous")
def contiguous(x, memory_format=rl.contiguous_format):
    if memory_format not in (rl.contiguous_format, rl.preserve_format):
        raise RuntimeError("contiguous() of nested tensors knows torch.contiguous_format only")
    return x if x.is_contiguous() else strided_of(x.unbind(), x.dtype)


@handles("clone")
def clone(x, *, memory_format=None):
    if memory_format not in (None, rl.preserve_format, rl.contiguous_format):
        name = str(memory_format).rpartition(".")[2].title().replace("_", "")
        raise RuntimeError(
            "Nested tensor clone supports Preserve and Contiguous memory formats, called clone with memory format: "
            + name
        )
    if x.is_contiguous() or (memory_format is not rl.contiguous_format and x._held.numel() == x.numel()):
        return x._like(x._held.clone())
    return contiguous(x)


@handles("detach", "alias", "requires_grad_")
def detach(x):
    return x._like(x._held.detach())


@handles("to", "type_as", "cpu", "type")
def to(x, *args, **kwargs):
    args = [a._held if isinstance(a, Nested) else a for a in args]
    if not isinstance(x, Nested):  # a plain tensor, to the type of a nested one
        return x.to(*args, **kwargs)
    held = x._held.to(*args, **{k: v._held if isinstance(v, Nested) else v for k, v in kwargs.items()})
    return x if held is x._held else x._like(held)


@handles("copy_")
def copy_(x, src, non_blocking=False):
    if not isinstance(x, Nested) or not isinstance(src, Nested) or x._sizes != src._sizes:
        raise RuntimeError("copy_ only supports tensors that are the same size for Nested implementations")
    if _same_places(x, src) and x._held.shape == src._held.shape:
        x._held.copy_(src._held)
    else:
        for mine, other in zip(x.unbind(), src.unbind(), strict=True):
            mine.copy_(other)
    return x


@handles("is_same_size")
def is_same_size(x, other):
    if not (isinstance(x, Nested) and isinstance(other, Nested)):
        raise RuntimeError("Expected both self and other to be nested tensors. See is_nested.")
    if isinstance(x, NestedTensor) or isinstance(other, NestedTensor):
        raise ValueError(
            "NestedTensor is_same_size_default(self: jt_all, other: jt_all): expected self to be a jagged layout NestedTensor"
        )
    return x._sizes == other._sizes


@handles("numel", "nelement")
def numel(x):
    return x.numel()


@handles("equal")
def equal(x, other):
    if not (isinstance(x, Nested) and isinstance(other, Nested)) or x._sizes != other._sizes:
        return False
    return all(rl.equal(a, b) for a, b in zip(x.unbind(), other.unbind(), strict=True))


@handles("softmax", "_softmax")
def softmax(x, dim, dtype=None):
    if not x._sizes and x.dim() == 1:
        return x
    at = wrapped(dim, x.dim())
    if at == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return strided_of(
        [rl.softmax(t, at - 1, dtype=dtype if isinstance(dtype, rl.dtype) else None) for t in x.unbind()]
    )


@handles("log_softmax")
def log_softmax(x, dim, dtype=None):
    at = wrapped(dim, x.dim())
    if at == 0:
        raise RuntimeError("Cannot apply log_softmax across nested dimension 0")
    return strided_of([rl.log_softmax(t, at - 1, dtype=dtype) for t in x.unbind()])


@handles("layer_norm")
def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    _need_contiguous(x)
    shape = tuple(normalized_shape)
    inner = x.dim() - len(shape)
    if inner < 2:
        raise RuntimeError(
            f"normalized_shape extends into irregular dimensions for the nested tensor: {list(shape)} of {x.dim()} dimensions"
        )
    for i, n in enumerate(shape):
        sizes = {size[inner - 1 + i] for size in x._sizes}
        if len(sizes) > 1:
            raise RuntimeError(
                f"normalized_shape extends into irregular dimensions for the nested tensor: dimension {inner + i}"
            )
        if sizes and sizes != {n}:
            raise RuntimeError(
                f"The shape at dimension {i} of normalized_shape doesn't match the input: {n} and {sizes.pop()}"
            )
    rows = x._held.reshape(-1, *shape)
    return x._like(rl.layer_norm(rows, shape, weight, bias, eps).reshape(-1))


@handles("rms_norm")
def rms_norm(x, normalized_shape, weight=None, eps=None):
    _need_contiguous(x)
    rows = x._held.reshape(-1, *normalized_shape)
    return x._like(rl.rms_norm(rows, normalized_shape, weight, eps).reshape(-1))


@handles("linear")
def linear(x, weight, bias=None):
    if isinstance(weight, Nested):
        raise RuntimeError("Linear does not support nested weight when input is a nested tensor.")
    if not x.is_contiguous():
        raise RuntimeError("for now linear only supports contiguous nested tensor: call contiguous() first")
    if x.dim() < 3 or weight.dim() != 2:
        raise RuntimeError(
            f"Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: {x.dim()}. Dense tensor dim: "
            f"{weight.dim()}"
        )
    last = {size[-1] for size in x._sizes}
    if len(last) > 1:
        raise RuntimeError(
            f"Expected all tensors in nested tensor to have the same trailing dimension, instead last dimension equals: {sorted(last)}"
        )
    n = last.pop()
    if n != weight.size(1):
        raise RuntimeError(
            f"Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) 'last_dim' to equal 'weight.size(1), but "
            f"got: last_dim = {n}, and weight.size(1) = {weight.size(1)}"
        )
    out = rl.nn.functional.linear(x._held.reshape(-1, n), weight, bias)
    return strided(out.reshape(-1), [(*size[:-1], weight.size(0)) for size in x._sizes])


@handles("bmm")
def bmm(a, b):
    for word, t in (("batch1", a), ("batch2", b)):
        if t.dim() != 3:
            raise RuntimeError(f"{word} must be a 3D tensor")
    n, other = (len(t._sizes) if isinstance(t, Nested) else t.size(0) for t in (a, b))
    if n != other:
        raise RuntimeError(
            f"Expected size for the 1st dimension of batch2 tensor to be: {n} but got: {other}."
        )
    made = []
    for i, (x, y) in enumerate(zip(a.unbind(), b.unbind(), strict=True)):
        if x.size(1) != y.size(0):
            raise RuntimeError(
                f"{i}-th nested matrices in batch cannot be multiplied ({x.size(0)}x{x.size(1)} and {y.size(0)}x{y.size(1)})"
            )
        made.append(x.mm(y))
    return strided_of(made)


@handles("matmul", "__rmatmul__")
def matmul(a, b):
    nested = isinstance(a, Nested), isinstance(b, Nested)
    if nested == (True, False) and b.dim() == 2 and a.dim() >= 3:
        return strided_of([rl.matmul(t, b) for t in a.unbind()])
    if False in nested:
        if a.dim() == b.dim() == 3:
            return bmm(a, b)
        kinds = "nested self and non-nested" if nested[0] else "non-nested self and nested"
        raise RuntimeError(f"Expected both to be nested, but got a {kinds} other")
    for word, t in (("1st", a), ("2nd", b)):
        if t.dim() < 3:
            raise RuntimeError(
                f"matmul: For nested tensors, only inputs with >= 3 dims are currently supported. {word} input has rank: {t.dim()}"
            )
    if len(a._sizes) != len(b._sizes):
        raise RuntimeError(
            f"matmul: Expected size for the 1st dimension of 2nd input tensor to be: {len(a._sizes)} but got: {len(b._sizes)}."
        )
    made = []
    for i, (x, y) in enumerate(zip(a.unbind(), b.unbind(), strict=True)):
        if x.shape[:-2] != y.shape[:-2]:
            raise RuntimeError(
                f"matmul: For nested tensors, batch dimensions must have the same sizes, no broadcasting is currently performed: "
                f"{list(x.shape)} and {list(y.shape)} at {i}"
            )
        if x.size(-1) != y.size(-2):
            raise RuntimeError(
                f"matmul: Nested tensors cannot be matrix multiplied ({x.size(-2)}x{x.size(-1)} and {y.size(-2)}x{y.size(-1)})"
            )
        made.append(rl.matmul(x, y))
    return strided_of(made)


@handles("sum")
def sum_(x, dim=None, keepdim=False, *, dtype=None):
    if dim is None:
        raise NotImplementedError(refusal("sum"))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 1:
        raise RuntimeError("NestedTensor only allows reduction of a single dimension for now.")
    if wrapped(dims[0], x.dim()) != x.dim() - 1 or x.dim() < 2:
        raise RuntimeError(
            "NestedTensor can only be reduced across the last dimension for now "
            f"got dimension {dims[0]} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return strided_of([t.sum(-1, keepdim=True, dtype=dtype) for t in x.unbind()])


@handles("embedding")
def embedding(weight, indices, *args, **kwargs):
    if isinstance(weight, Nested):
        raise RuntimeError("embedding: the weight cannot be a nested tensor")
    _need_contiguous(indices)
    rows = rl._C.ops["embedding"](weight, indices._held, *args, **kwargs)
    return strided(rows.reshape(-1), [(*size, weight.size(1)) for size in indices._sizes])


@handles("to_padded_tensor")
def to_padded_tensor(x, padding, output_size=None):
    if not x.is_contiguous():
        raise RuntimeError(
            "for now to_padded_tensor only supports contiguous nested tensor: call contiguous() first"
        )
    if not x._sizes:
        return rl.empty(0, dtype=x.dtype)
    if x.numel() == 0:
        raise RuntimeError("at least one constituent tensor should have non-zero numel")
    largest = [max(column) for column in zip(*x._sizes, strict=True)]
    if output_size is not None:
        if len(output_size) != x.dim():
            raise RuntimeError(
                f"Length of output_size does not match NestedTensor dims. Broadcasting is not supported: {len(output_size)} and {x.dim()}"
            )
        if any(n < m for n, m in zip(output_size[1:], largest, strict=True)):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
            )
        largest = list(output_size[1:])
    if len({size[1:] for size in x._sizes}) == 1 and x.dim() > 1:  # sequences of rows: all at once
        starts = [start // math.prod(x._sizes[0][1:]) for start in x._starts]
        rows = jagged(x._held.view(-1, *x._sizes[0][1:]), rl.tensor([*starts, starts[-1] + x._sizes[-1][0]]))
        return _pad.to_padded_tensor(rows, padding, (len(x._sizes), *largest))
    padded = []
    for part in x.unbind():
        margins = [n for d in reversed(range(part.dim())) for n in (0, largest[d] - part.size(d))]
        padded.append(rl.nn.functional.pad(part, margins, value=padding) if any(margins) else part)
    return rl.stack(padded)


@handles("scaled_dot_product_attention", table=LAYERS)
def attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    if attn_mask is not None:
        raise RuntimeError(
            "_scaled_dot_product_attention: Nested tensors for query / key are not supported when an explicit attn_mask is set"
        )
    if is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Nested tensors for query / key are not supported when is_causal=True: use the jagged "
            "layout"
        )
    if not all(isinstance(t, Nested) for t in (query, key, value)):
        raise RuntimeError(
            "scaled_dot_product_attention: expected query, key and value to be all nested or all non-nested"
        )
    one = rl.nn.functional.scaled_dot_product_attention
    made = [
        one(q, k, v, None, dropout_p, scale=scale, enable_gqa=enable_gqa)
        for q, k, v in zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
    ]
    return strided_of(made)


@handles("_assign")
def assign(name, x, result):
    return copy_(x, result)


@handles("numpy", "tolist", "__array__")
def numpy(x, *args, **kwargs):
    x.size()


handles("_nested_tensor_size")(lambda x: x._nested_tensor_size())
handles("_nested_tensor_strides")(lambda x: x._nested_tensor_strides())
handles("_nested_tensor_storage_offsets")(lambda x: x._nested_tensor_storage_offsets())
