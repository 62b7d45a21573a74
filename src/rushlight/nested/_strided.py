"""Ops on nested tensors of layout torch.strided, by the name of the op: on the buffer where all lie in order, else tensor
by tensor."""

import math

import rushlight as rl
from rushlight._C import Tensor
from rushlight.nested._tensor import Nested, NestedTensor, alias, strided, strided_of, wrapped

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


def _same_layout(a, b):
    return a._steps == b._steps and a._starts == b._starts


# They take a second operand, though they are not one kernel of two.
_BINARY_TOO = frozenset(("true_divide", "rsub", "where", "masked_fill", "fill", "zero"))


def _is_binary(func, base):
    traits = getattr(func, "traits", None)
    return (traits is not None and traits.operands == 2) or base in _BINARY_TOO


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
    if not all(_same_layout(first, other) for other in nested[1:]):
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
    if len(nested) == 1 and not _is_binary(func, base) and not base.startswith("__r") and base != "dropout":
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
    """func with plain tensors instead of nested ones."""
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
    if _same_layout(x, src) and x._held.shape == src._held.shape:
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


@handles("_assign")
def assign(name, x, result):
    return copy_(x, result)


@handles("numpy", "tolist", "__array__")
def numpy(x, *args, **kwargs):
    x.size()


handles("_nested_tensor_size")(lambda x: x._nested_tensor_size())
handles("_nested_tensor_strides")(lambda x: x._nested_tensor_strides())
handles("_nested_tensor_storage_offsets")(lambda x: x._nested_tensor_storage_offsets())
