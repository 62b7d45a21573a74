"""What a nested tensor is: a Tensor that shows a type and a number of dimensions, with the elements beside it.

The elements are one plain tensor (`_held`): all values along the ragged dimension (torch.jagged), or one flat buffer
(torch.strided). Autograd knows that tensor alone, so that gradients need no rule of their own; every op arrives at
__torch_function__ and is computed on it (_calls.py).
"""

from __future__ import annotations

import math

import rushlight as rl
from rushlight._C import Tensor
from rushlight.nested import _ragged_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_ZEROS: dict = {}  # of each type and device one, which all nested tensors show as their memory
_switch = rl._C.ops["_set_torch_function"]


def _body(cls, held, dims):
    """A tensor of a class with `dims` dimensions, the first of them of the given size, without elements of its own."""
    key = (held.dtype, held.device)
    zero = _ZEROS.get(key)
    if zero is None:
        with rl.inference_mode(False), rl.no_grad():
            zero = _ZEROS[key] = rl.zeros((), dtype=held.dtype, device=held.device)
    before = _switch(False)
    try:
        made = zero.expand(dims).as_subclass(cls)
    finally:
        _switch(before)
    made._held = held
    return made


def alias(t):
    """Another tensor with the memory and the history of t."""
    return t.view_as(t) if t.requires_grad else t.detach()


class Nested(Tensor):
    """What both layouts share."""

    _ops_only = True
    is_nested = True
    _held: Any  # the plain tensor with all elements
    # Of one of the two layouts:
    _like: Any
    _ordered_as: Any
    _sizes: Any
    _steps: Any
    _starts: Any
    _spans: Any
    _batch: Any
    _offsets: Any
    _lengths: Any
    _ragged_idx: Any
    _metadata_cache: Any

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from rushlight.nested._calls import call

        return call(func, args, kwargs or {})

    @property
    def requires_grad(self):
        return self._held.requires_grad

    @requires_grad.setter
    def requires_grad(self, on):
        self._held.requires_grad = on

    _parent: Tensor | None = None  # whose view this is

    @property
    def _base(self):
        return self._parent

    def _is_view(self):
        return self._parent is not None

    def _seen_as_view_of(self, other):
        self._parent = other if other._base is None else other._base
        return self

    def _view_func(self, new_base):
        """The same view of another tensor."""
        if isinstance(new_base, Nested):
            new_base = new_base._held
        held = self._held
        made = self._like(new_base.as_strided(held.shape, held.stride(), held.storage_offset()))
        return made._seen_as_view_of(new_base)

    def requires_grad_(self, requires_grad=True):
        self._held.requires_grad_(requires_grad)
        return self

    is_leaf = property(lambda self: self._held.is_leaf)
    grad_fn = property(lambda self: self._held.grad_fn)
    retains_grad = property(lambda self: self._held.retains_grad)
    output_nr = property(lambda self: self._held.output_nr)
    _version = property(lambda self: self._held._version)

    @property
    def grad(self):
        grad = self._held.grad
        if grad is None:
            return None
        seen = self.__dict__.get("_shown_grad")
        if seen is None or seen._held is not grad:
            seen = self._shown_grad = self._like(grad)
        return seen

    @grad.setter
    def grad(self, value):
        if value is not None and not isinstance(value, Nested):
            raise RuntimeError("assigned grad has data of a different type: expected a nested tensor")
        self._held.grad = None if value is None else value._ordered_as(self)

    @grad.deleter
    def grad(self):
        self._held.grad = None

    @property
    def data(self):
        return self._like(self._held.detach())

    @data.setter
    def data(self, other):
        if type(other) is not type(self):
            raise RuntimeError(
                "incompatible tensor type: data of a nested tensor is a nested tensor of its layout"
            )
        held = self._held
        self.__dict__.update(other.__dict__)
        self._held = held
        held.data = other._held

    def retain_grad(self):
        self._held.retain_grad()

    def register_hook(self, hook):
        def on_elements(grad):
            given = hook(self._like(grad))
            return None if given is None else given._held

        return self._held.register_hook(on_elements)

    def detach_(self):
        self._held.detach_()
        return self

    def data_ptr(self):
        return self._held.data_ptr()

    def apply_(self, callable):
        self._held.detach().apply_(callable)  # without a trace in the graph, as in PyTorch
        return self

    def storage_offset(self):
        return self._held.storage_offset()

    def nelement(self):
        return self.numel()

    def __iter__(self):
        return iter(self.unbind())

    def item(self):
        n = self.numel()
        if n != 1:
            raise RuntimeError(f"a Tensor with {n} elements cannot be converted to Scalar")
        return self.unbind()[0].item()

    def __bool__(self):
        if self.numel() > 1:
            raise RuntimeError(
                "Boolean value of Tensor with more than one value is ambiguous: say which is meant, .any() or .all() of "
                "its values()"
            )
        return bool(self.item())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __array__(self, *args, **kwargs):
        return self.numpy()

    nbytes = property(lambda self: self.numel() * self.itemsize)  # type: ignore[assignment]

    def const_data_ptr(self):
        return self._held.const_data_ptr()

    mutable_data_ptr = data_ptr

    def is_inference(self):
        return self._held.is_inference()

    def as_subclass(self, cls):
        if not issubclass(cls, type(self)):
            raise RuntimeError(
                f"as_subclass: a nested tensor cannot be seen as {cls.__name__}, which has no ragged dimension: take values() or "
                "to_padded_tensor()"
            )
        return Tensor.as_subclass(self, cls)

    def is_shared(self):
        return self._held.is_shared()

    def share_memory_(self):
        self._held.share_memory_()
        return self

    def is_pinned(self, device=None):
        return False

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment: "
                "use detach() first"
            )
        copied = self._like(self._held.detach().clone().requires_grad_(self.requires_grad))
        memo[id(self)] = copied
        return copied

    def __dir__(self):
        return sorted(set(super().__dir__()))


rl.autograd.function._Nested = Nested  # it meets them only once this module is loaded


class StridedNested(Nested):
    """torch.strided: tensors of any sizes, each a view of one buffer. `_sizes`, `_steps` (strides) and `_starts` list them."""

    _plain_in_pytorch = True  # no class of its own there: nobody is asked about it (overrides.py)
    _sizes: list
    _steps: list
    _starts: list

    @property
    def layout(self):
        return rl.strided

    def _like(self, held):
        return strided(held, self._sizes, self._steps, self._starts)

    def _ordered_as(self, other):
        """The buffer, in the order of another one of the same sizes."""
        if (self._sizes, self._steps, self._starts) == (other._sizes, other._steps, other._starts):
            return self._held
        held = other._held.detach().new_zeros(other._held.shape)
        for part, to in zip(
            self.unbind(), strided(held, other._sizes, other._steps, other._starts).unbind(), strict=True
        ):
            to.copy_(part)
        return held

    @property
    def shape(self):
        return self.size()

    def size(self, dim=None):
        if dim is None:
            raise RuntimeError(
                "Internal error: NestedTensorImpl doesn't support sizes. Each of its tensors has a size of its own: "
                "[t.shape for t in x.unbind()], or x.size(dim) of a dimension that is the same in all"
            )
        dims = self.dim()
        dim = wrapped(dim, dims)
        if dim == 0:
            return len(self._sizes)
        found = {size[dim - 1] for size in self._sizes}
        if len(found) > 1:
            raise RuntimeError(
                f"Given dimension {dim} is irregular and does not have a size. Look at the tensors in it: x.unbind()"
            )
        return found.pop()

    def stride(self, dim=None):
        raise RuntimeError(
            "Internal error: NestedTensorImpl doesn't support strides. Each of its tensors has strides of its own: "
            "[t.stride() for t in x.unbind()]"
        )

    def numel(self):
        return sum(map(math.prod, self._sizes))

    def __len__(self):
        self.size()

    def is_contiguous(self, memory_format=rl.contiguous_format):
        if memory_format is not rl.contiguous_format:
            raise RuntimeError(
                "is_contiguous of nested tensors is only known for torch.contiguous_format, got "
                + str(memory_format)
            )
        at = 0
        for size, step, start in zip(self._sizes, self._steps, self._starts, strict=True):
            if start != at or step != steps_of(size):
                return False
            at += math.prod(size)
        return at == self._held.numel()

    def values(self):
        if not self.is_contiguous():
            raise RuntimeError("NestedTensor must be contiguous to get buffer. Call contiguous() first.")
        return alias(self._held)

    def _nested_tensor_size(self):
        return _matrix(self._sizes)

    def _nested_tensor_strides(self):
        return _matrix(self._steps)

    def _nested_tensor_storage_offsets(self):
        return rl.tensor(self._starts, dtype=rl.int64)

    def __repr__(self, *, tensor_contents=None):
        from rushlight.nested._text import describe_strided

        return describe_strided(self)

    __str__ = __repr__

    def __reduce_ex__(self, protocol):
        from rushlight import _utils

        return _utils._rebuild_nested_tensor, nested_parts(self)


def nested_parts(t: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What files have of a nested tensor: its buffer, and where its tensors lie in it."""
    parts = t._nested_tensor_size(), t._nested_tensor_strides(), t._nested_tensor_storage_offsets()
    return (t._held.detach(), *parts)


def _matrix(rows):
    return rl.tensor([list(row) for row in rows], dtype=rl.int64) if rows else rl.empty(0, dtype=rl.int64)


def wrapped(dim, dims):
    dim = dim.__index__()
    if not -max(dims, 1) <= dim < max(dims, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-dims}, {dims - 1}], but got {dim})"
        )
    return dim % max(dims, 1)


def steps_of(size):
    """The strides of a contiguous tensor."""
    steps, step = [], 1
    for n in reversed(size):
        steps.append(step)
        step *= max(n, 1)
    return tuple(reversed(steps))


def strided(held: Any, sizes: Any, steps: Any = None, starts: Any = None) -> Any:
    """A nested tensor of parts of a flat buffer; contiguous ones if it is not said where they lie."""
    sizes = [tuple(size) for size in sizes]
    if steps is None:
        steps, starts, at = [], [], 0
        for size in sizes:
            steps.append(steps_of(size))
            starts.append(at)
            at += math.prod(size)
    dims = len(sizes[0]) if sizes else 0
    made = _body(StridedNested, held, (len(sizes), *(1,) * dims))
    made._sizes, made._steps, made._starts = sizes, steps, starts
    return made


def strided_of(tensors, dtype=None):
    """A contiguous nested tensor of tensors, with their history."""
    if not tensors:
        return strided(rl.empty(0, dtype=dtype), [])
    return strided(rl.cat([t.reshape(-1) for t in tensors]), [t.shape for t in tensors])


class NestedTensor(Nested):
    """torch.jagged: `values` with all sequences one behind the other along one dimension, and where each begins."""

    _offsets: Tensor
    _lengths: Tensor | None
    _ragged_idx: int
    _metadata_cache: dict

    def __new__(cls, values, offsets, *, lengths=None, **kwargs):
        cache = kwargs.get("_metadata_cache")
        made = jagged(alias(values), offsets, lengths, kwargs.get("_ragged_idx", 1), cache, cls)
        return made.requires_grad_() if kwargs.get("requires_grad") else made

    def __init__(self, *args, **kwargs):
        pass

    @property
    def layout(self):
        return rl.jagged

    @property
    def _values(self):
        return self._held

    def values(self):
        return alias(self._held)

    def offsets(self):
        return self._offsets

    def lengths(self):
        return self._lengths

    def _like(self, held):
        """Other values with the same sequences."""
        return jagged(held, self._offsets, self._lengths, self._ragged_idx, self._metadata_cache)

    def _ordered_as(self, other):
        if self._held.shape != other._held.shape or self._ragged_idx != other._ragged_idx:
            raise RuntimeError(
                f"Mismatch in shape: a gradient of {self.size()} for a tensor of {other.size()}: expected the same sequences"
            )
        return self._held

    @property
    def _ragged_size(self):
        return _ragged_size.size_of(self._offsets if self._lengths is None else self._lengths)

    def _batch(self):
        return self._offsets.numel() - 1

    def size(self, dim=None):
        if dim is not None:
            return self.size()[wrapped(dim, self.dim())]
        sizes, at = list(self._held.shape), self._ragged_idx - 1
        sizes[at] = self._ragged_size
        return rl.Size([self._batch(), *sizes])

    @property
    def shape(self):
        return self.size()

    _size = shape

    def stride(self, dim=None):
        own = self._held.stride()
        strides = (own[self._ragged_idx - 1] * self._ragged_size, *own)
        return strides if dim is None else strides[wrapped(dim, self.dim())]

    _strides = property(lambda self: self.stride())

    def numel(self):
        if self._lengths is None:
            return self._held.numel()
        at = self._ragged_idx - 1
        rest = math.prod(n for d, n in enumerate(self._held.shape) if d != at)
        return int(self._lengths.sum()) * rest

    def is_contiguous(self, memory_format=rl.contiguous_format):
        if memory_format is not rl.contiguous_format and memory_format is not rl.preserve_format:
            raise RuntimeError("is_contiguous of nested tensors is only known for torch.contiguous_format")
        return self._lengths is None and self._held.is_contiguous()

    def _spans(self):
        """[(begin, length)] of the sequences."""
        starts = self._offsets.tolist()
        if self._lengths is None:
            return [(a, b - a) for a, b in zip(starts, starts[1:], strict=False)]
        return list(zip(starts, self._lengths.tolist(), strict=False))

    def _sequence_lengths(self):
        return self._offsets.diff() if self._lengths is None else self._lengths

    def _extreme(self, key, choose):
        if key not in self._metadata_cache:
            lengths = self._sequence_lengths()
            self._metadata_cache[key] = choose(lengths.tolist()) if lengths.numel() else 0
        return self._metadata_cache[key]

    def _get_max_seqlen(self):
        return self._extreme("max_seqlen", max)

    def _get_min_seqlen(self):
        return self._extreme("min_seqlen", min)

    _max_seqlen, _min_seqlen = property(_get_max_seqlen), property(_get_min_seqlen)
    _maybe_max_seqlen = property(lambda self: self._metadata_cache.get("max_seqlen"))
    _maybe_min_seqlen = property(lambda self: self._metadata_cache.get("min_seqlen"))

    def __repr__(self, *, tensor_contents=None):
        from rushlight.nested._text import describe_jagged

        return describe_jagged(self)

    __str__ = __repr__

    def __reduce_ex__(self, protocol):
        from rushlight.nested._internal.nested_tensor import _rebuild_njt

        return _rebuild_njt, (jagged_state(self),)


def jagged_state(t: Any) -> dict[str, Any]:
    """What files have of a jagged tensor. PyTorch keeps the least and largest length as sizes of empty tensors."""
    cache = {
        key: rl.empty(n, 0) for key, n in t._metadata_cache.items() if key in ("min_seqlen", "max_seqlen")
    }
    return {
        "values": t._held.detach(), "offsets": t._offsets, "lengths": t._lengths, "_ragged_idx": t._ragged_idx,
        "_metadata_cache": cache, "requires_grad": t.requires_grad,
    }  # fmt: skip


def jagged(
    held: Any,
    offsets: Any,
    lengths: Any = None,
    ragged_idx: int = 1,
    cache: Any = None,
    cls: Any = NestedTensor,
) -> Any:
    """A jagged tensor of parts that are known to fit."""
    made = _body(cls, held, (max(offsets.numel() - 1, 0), *(1,) * held.dim()))
    made._offsets, made._lengths, made._ragged_idx = offsets, lengths, ragged_idx
    made._metadata_cache = {} if cache is None else cache
    return made
