"""torch._foreach_*: one operation on lists of tensors, as optimizers published elsewhere use them.

Each name maps to an operation of single tensors; lists, scalars and tensors of one element may follow
the first list.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl

_UNARY = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "frac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "zero",
]
_BINARY = ("add", "sub", "mul", "div", "pow", "clamp_min", "clamp_max", "maximum", "minimum", "copy", "lerp")
_TERNARY = ("addcmul", "addcdiv")


def _row(value, i):
    """The i-th of a list, or the one value for all."""
    return value[i] if isinstance(value, (list, tuple)) else value


def _apply(op, in_place, tensors, args, kwargs):
    name = {"maximum": "clamp_min", "minimum": "clamp_max"}.get(op, op) if in_place else op
    out = []
    with rl.no_grad() if in_place else _as_is():
        for i, t in enumerate(tensors):
            row = [_row(a, i) for a in args]
            named = {k: _row(v, i) for k, v in kwargs.items()}
            if op in _TERNARY and len(row) == 3:
                named["value"] = row.pop()
            for key in ("value", "alpha"):
                if isinstance(named.get(key), rl.Tensor):
                    named[key] = named[key].item()
            if op in ("maximum", "minimum") and row and not isinstance(row[0], rl.Tensor):
                result = getattr(t, ("clamp_min" if op == "maximum" else "clamp_max") + "_" * in_place)(*row)
            else:
                result = getattr(t, name + "_" if in_place else name)(*row, **named)
            out.append(result)
    return None if in_place else out


class _as_is:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


def _scale(tensors, factor):
    """All tensors times a number in one call; False when they need one each."""
    fast: Any = rl._C.ops.get("_optim.scale_")
    return bool(fast) and fast(list(tensors), float(factor))


def _make(op, in_place):
    def foreach(tensors, *args, **kwargs):
        if not len(tensors):
            raise RuntimeError("Tensor list must have at least one tensor.")
        for other in args:
            if isinstance(other, (list, tuple)) and len(other) != len(tensors):
                raise RuntimeError(
                    f"Tensor lists must have the same number of tensors, got {len(tensors)} and {len(other)}"
                )
        if op == "zero" and not in_place:
            return [rl.zeros_like(t) for t in tensors]
        if op == "copy" and not in_place:
            return [o.clone() for o in args[0]]
        if op == "mul" and in_place and isinstance(args[0], (int, float)) and _scale(tensors, args[0]):
            return None
        return _apply(op, in_place, tensors, args, kwargs)

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{op}{'_' * in_place}"
    return foreach


for _op in (*_UNARY, *_BINARY, *_TERNARY):
    for _in_place in (False, True):
        _function = _make(_op, _in_place)
        globals()[_function.__name__] = _function


def _foreach_norm(tensors, ord=2, dtype=None):
    """The norm of each tensor."""
    fast = (
        rl._C.ops.get("_optim.norms") if dtype is None and not any(t.requires_grad for t in tensors) else None
    )
    norms = list(fast(list(tensors), float(ord))) if fast else []
    if norms:
        return norms
    return [rl.linalg.vector_norm(t, ord, dtype=dtype) for t in tensors]


def _foreach_max(tensors):
    return [t.max() for t in tensors]


def _foreach_pow(tensors, exponent):
    """tensors ** exponent, or a number ** tensors."""
    if isinstance(tensors, (int, float)):
        return [tensors**e for e in exponent]
    return [t ** _row(exponent, i) for i, t in enumerate(tensors)]


__all__ = [name for name in globals() if name.startswith("_foreach_")]
