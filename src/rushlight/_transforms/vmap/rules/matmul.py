"""Rules of products of matrices and vectors."""

import rushlight as rl

from ..batched import batched_at, wrap
from .registry import _given, _name, rule

RANKS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "vdot": (1, 1)}


@rule("matmul", "mm", "bmm", "linalg.matmul", "mv", "dot", "vdot")
def _matmul(func, args, kwargs, level):
    if kwargs or len(args) != 2:
        return NotImplemented
    a, b = args
    ranks = RANKS.get(_name(func))
    if ranks is not None and (a.dim(), b.dim()) != ranks:
        raise RuntimeError(
            f"Shape mismatch: Got incorrect dims for {_name(func)}(a, b). a has dim {a.dim()} and b has dim {b.dim()} "
            f"but expected them to have dim {ranks[0]} and dim {ranks[1]}"
        )
    left, right = a.dim() == 1, b.dim() == 1
    if a.shape[-1] != b.shape[-1 if right else -2]:
        shapes = [tuple(t.shape) for t in args]
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({_by(shapes[0])} and {_by(shapes[1], right)})"
        )
    rank = max(a.dim() + left, b.dim() + right)
    v, w = (t._value if batched_at(t, level.number) else t for t in args)
    if _name(func) == "vdot":
        v = v.conj()
    v = _padded(v.unsqueeze(-2) if left else v, rank, batched_at(a, level.number))
    w = _padded(w.unsqueeze(-1) if right else w, rank, batched_at(b, level.number))
    y = rl.matmul(v, w)
    y = y.squeeze(-1) if right else y
    return wrap(y.squeeze(-1 if right else -2) if left else y, level.number)


def _by(shape, column=False):
    """A matrix's sizes as they are told in errors; of a vector, as a row or a column."""
    rows, columns = shape[-2:] if len(shape) > 1 else (shape[0], 1) if column else (1, shape[0])
    return f"{rows}x{columns}"


def _padded(v, rank, mapped):
    """v with `rank` dimensions behind its batch."""
    missing = rank + 1 - v.dim()
    return v.reshape(v.shape[0], *(1,) * missing, *v.shape[1:]) if mapped and missing > 0 else v


@rule("nn.functional.linear")
def _linear(func, args, kwargs, level):
    given = _given(("input", "weight", "bias"), args, kwargs)
    x, w, b = given["input"], given["weight"], given.get("bias")
    number = level.number
    shared = not batched_at(w, number) and w.dim() == 2
    if shared and (b is None or not batched_at(b, number)):
        return wrap(func(x._value, w, b), number)
    if shared and not batched_at(x, number):
        y = func(x, w)
    elif w.dim() == 2:
        if x.shape[-1] != w.shape[1]:
            raise RuntimeError(
                f"mat1 and mat2 shapes cannot be multiplied ({_by(tuple(x.shape))} and {w.shape[1]}x{w.shape[0]})"
            )
        single = x.dim() == 1
        v, full = (t._value if batched_at(t, number) else t for t in (x, w))
        v = v.unsqueeze(-2) if single else v
        rank = max(x.dim(), 2)
        v = _padded(v, rank, batched_at(x, number))
        y = rl.matmul(v, _padded(full, rank, batched_at(w, number)).mT)
        y = wrap(y.squeeze(-2) if single else y, number)
    else:
        y = rl.matmul(x, w)
    return y if b is None else y + b


@rule("addmm", "addmv", "baddbmm", "addr")
def _addmm(func, args, kwargs, level):
    name = _name(func)
    alpha, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
    if len(args) != 3:
        return NotImplemented
    product = rl.outer(args[1], args[2]) if name == "addr" else rl.matmul(args[1], args[2])
    return product.mul(alpha) + args[0].mul(beta) if (alpha, beta) != (1, 1) else product + args[0]


@rule("outer", "ger")
def _outer(func, args, kwargs, level):
    return args[0].unsqueeze(-1) * args[1].unsqueeze(-2)


# indexing
