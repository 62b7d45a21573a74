"""Rules of ops that go element by element, but not always: those that always do say so by their flag."""

import rushlight as rl
from rushlight._C import Tensor

from ..batched import batched_at, wrap
from .registry import _given, own_sizes, pointwise, rule


@rule("to", "type_as")
def _to(func, args, kwargs, level):
    x, *rest = args
    rest = [r._value if batched_at(r, level.number) else r for r in rest]
    if not batched_at(x, level.number):
        return func(x, *rest, **kwargs)
    return wrap(func(x._value, *rest, **kwargs), level.number)


@rule("clone")
def _clone(func, args, kwargs, level):
    order = kwargs.get("memory_format", args[1] if len(args) > 1 else None)
    if order not in (None, rl.preserve_format, rl.contiguous_format):
        raise RuntimeError(
            "NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format torch.preserve_format or "
            f"torch.contiguous_format (got {order})"
        )
    return wrap(func(args[0]._value, *args[1:], **kwargs), level.number)


@rule("where")
def _where(func, args, kwargs, level):
    if len(args) + len(kwargs) == 1:
        return own_sizes(func, args, kwargs, level)
    return pointwise(func, args, kwargs, level)


@rule("masked_fill")
def _masked_fill(func, args, kwargs, level):
    given = _given(("input", "mask", "value"), args, kwargs)
    value = given["value"]
    if not isinstance(value, Tensor) or not batched_at(value, level.number) or value.dim():
        return pointwise(func, args, kwargs, level)
    return rl.where(given["mask"], value.to(given["input"].dtype), given["input"])
