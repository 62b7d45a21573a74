"""autograd.Function of nested tensors: the graph sees their elements, forward and backward see the tensors."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.nested._tensor import Nested


def _elements(t):
    return t._held if isinstance(t, Nested) else t


class _Context:
    """A context that keeps nested tensors as their elements."""

    def __init__(self, ctx):
        self.__dict__["_ctx"] = ctx

    def __getattr__(self, name):
        return getattr(self._ctx, name)

    def __setattr__(self, name, value):
        setattr(self._ctx, name, value)

    def save_for_backward(self, *tensors):
        self._ctx._nested_saved = [t.detach() if isinstance(t, Nested) else None for t in tensors]
        self._ctx.save_for_backward(*map(_elements, tensors))

    @property
    def saved_tensors(self):
        given = zip(self._ctx.saved_tensors, self._ctx._nested_saved, strict=True)
        return tuple(t if like is None else like._like(t) for t, like in given)

    def mark_dirty(self, *tensors):
        self._ctx.mark_dirty(*map(_elements, tensors))

    def mark_non_differentiable(self, *tensors):
        self._ctx.mark_non_differentiable(*map(_elements, tensors))


def call_nested(cls: Any, args: Any, kwargs: Any) -> Any:
    """cls.apply(*args): recorded as a Function of the elements."""
    separate = cls.setup_context is not rl.autograd.Function.setup_context
    likes = [a if isinstance(a, Nested) else None for a in args]
    outputs: list = []

    class Plain(rl.autograd.Function):
        @staticmethod
        def forward(ctx, *plain):
            seen = _Context(ctx)
            given = [p if like is None else like._like(p) for p, like in zip(plain, likes, strict=True)]
            if separate:
                result = cls.forward(*given, **kwargs)
                cls.setup_context(seen, tuple(given), result)
            else:
                result = cls.forward(seen, *given, **kwargs)
            several = isinstance(result, (tuple, list))
            outputs.extend(
                [
                    several,
                    [
                        r.detach() if isinstance(r, Nested) else None
                        for r in (result if several else (result,))
                    ],
                ]
            )
            return tuple(map(_elements, result)) if several else _elements(result)

        @staticmethod
        def backward(ctx, *grads):
            given = (
                g if like is None or g is None else like._like(g)
                for g, like in zip(grads, outputs[1], strict=True)
            )
            found = cls.backward(_Context(ctx), *given)
            return tuple(map(_elements, found)) if isinstance(found, (tuple, list)) else _elements(found)

    Plain.__name__ = Plain.__qualname__ = cls.__name__
    result = Plain.apply(*map(_elements, args))
    flat = result if isinstance(result, tuple) else (result,)
    wrapped = tuple(
        r if like is None or not isinstance(r, Tensor) else like._like(r)
        for r, like in zip(flat, outputs[1], strict=True)
    )
    return wrapped if outputs[0] else wrapped[0]
