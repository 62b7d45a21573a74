"""Functions in forward mode: a `jvp` of the user's takes the tangents of the inputs to those of the outputs."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from . import forward_ad
from .function import Function


def tangents_of(cls: Any, args: Any) -> Any:
    """The tangents of the arguments, None for those without; None altogether if the graph is to find the outputs'."""
    tangents = [forward_ad._own_tangent(a) if isinstance(a, rl.Tensor) else None for a in args]
    if all(t is None for t in tangents):
        return None
    if cls.jvp is not Function.jvp:
        return tangents
    if cls.backward is Function.backward and cls.vjp is Function.vjp:
        raise RuntimeError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )
    return None  # by backward, twice


def apply_dual(cls: Any, separate: Any, args: Any, kwargs: dict[str, Any], tangents: Any) -> Any:
    """Function.apply with inputs that have tangents."""
    primals = tuple(
        forward_ad.unpack_dual(a).primal if t is not None else a for a, t in zip(args, tangents, strict=True)
    )
    with forward_ad._set_fwd_grad_enabled(False):
        ctx, outputs = cls._run(separate, primals, kwargs)
        many = isinstance(outputs, tuple)
        results = outputs if many else (outputs,)
        versions = [None if t is None else t._version for t in tangents]
        ctx._to_save = ctx.__dict__.get("saved_for_forward", ())  # jvp finds them as ctx.saved_tensors
        try:
            pushed = cls.jvp(ctx, *_filled(ctx, args, tangents))
        finally:
            ctx.__dict__.pop("_to_save", None)
        pushed = pushed if isinstance(pushed, tuple) else (pushed,)
    if len(pushed) != len(results):
        raise RuntimeError(
            f"{cls.__name__}.jvp returned an incorrect number of forward gradients (expected {len(results)}, got "
            f"{len(pushed)})"
        )
    tangents = [_Tangent(t, v) for t, v in zip(tangents, versions, strict=True)]
    duals = tuple(
        _dual(cls, i, y, t, args, primals, tangents)
        for i, (y, t) in enumerate(zip(results, pushed, strict=True))
    )
    return duals if many else duals[0]


class _Tangent:
    """The tangent of an input, and the version that it had before jvp ran."""

    def __init__(self, value: Any, version: Any) -> None:
        self.value, self.version = value, version


def _filled(ctx: Any, args: Any, tangents: Any) -> Any:
    """With zeros for the tensors that do not move, unless the context wants None."""
    if not ctx.materialize_grads:
        return tangents
    return [
        rl.zeros_like(a).detach()
        if t is None and isinstance(a, rl.Tensor) and (a.is_floating_point() or a.is_complex())
        else t
        for a, t in zip(args, tangents, strict=True)
    ]


def _dual(cls: Any, i: Any, y: Any, tangent: Any, args: Any, primals: Any, tangents: Any) -> Any:
    """Output i with its tangent."""
    if not isinstance(y, rl.Tensor) or tangent is None:
        return y
    if not (y.is_floating_point() or y.is_complex()) or _marked_constant(y, primals):
        raise RuntimeError(
            f"{cls.__name__}.jvp returned a gradient for output {i}, which is not differentiable (its type is not, or "
            "forward marked it so). You should return None at that position instead"
        )
    for a, x, t in zip(args, primals, tangents, strict=True):
        if t.value is not None and y is x:
            if tangent is not t.value or t.value._version == t.version:
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients inplace: its jvp function must "
                    "modify the corresponding gradient inplace, and return it."
                )
            return a
    _check_view(y, tangent, primals, tangents)
    return forward_ad._begin(forward_ad._levels[-1], y, tangent)


def _marked_constant(y: Any, primals: Any) -> Any:
    wants = rl.is_grad_enabled() and any(isinstance(x, rl.Tensor) and x.requires_grad for x in primals)
    return wants and not y.requires_grad


def _check_view(y: Any, tangent: Any, primals: Any, tangents: Any) -> None:
    """An output that is a view of an input needs a tangent that is the same view of the input's."""
    for x, t in zip(primals, (t.value for t in tangents), strict=True):
        if not isinstance(x, rl.Tensor) or y.untyped_storage().data_ptr() != x.untyped_storage().data_ptr():
            continue
        if t is None or not x.numel():
            continue
        if tangent is t or not tangent._is_view():
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
            )
        base = t._base if t._is_view() else t
        if tangent._base is not base:
            which = "of the same base as the given gradient" if t._is_view() else "of the given gradient"
            raise RuntimeError(
                f"A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view "
                f"{which}."
            )
