"""Views of strided nested tensors, and what joins them."""

import math

import rushlight as rl
from rushlight.nested._strided import _part, contiguous, handles, refusal
from rushlight.nested._tensor import Nested, alias, strided, strided_of, wrapped


def _each(x, steps_like):
    """A view: the sizes and strides of each tensor changed."""
    pairs = [steps_like(size, step) for size, step in zip(x._sizes, x._steps, strict=True)]
    return strided(alias(x._held), [p[0] for p in pairs], [tuple(p[1]) for p in pairs], x._starts)


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
            # An inferred dimension of an old index is inherited.
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
