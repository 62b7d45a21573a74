"""Rules of products of matrices and vectors."""

import rushlight as rl

from .._vmap import batched_at, wrap
from ._apply import _aligned, _given, _name, rule


@rule("matmul", "mm", "bmm", "linalg.matmul", "mv", "dot", "vdot")
def _matmul(func, args, kwargs, level):
    if kwargs or len(args) != 2:
        return NotImplemented
    a, b = args
    left, right = a.dim() == 1, b.dim() == 1
    if _name(func) == "vdot":
        a = a.conj()
    a = a.unsqueeze(-2) if left else a
    b = b.unsqueeze(-1) if right else b
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.shape[-2]}x{a.shape[-1]} and "
                           f"{b.shape[-2]}x{b.shape[-1]})")  # fmt: skip
    rank = max(a.dim(), b.dim())
    y = rl.matmul(_aligned(a, rank, level), _aligned(b, rank, level))
    y = y.squeeze(-1) if right else y
    y = y.squeeze(-1 if right else -2) if left else y
    return wrap(y, level.number)


@rule("nn.functional.linear")
def _linear(func, args, kwargs, level):
    given = _given(("input", "weight", "bias"), args, kwargs)
    x, w, b = given["input"], given["weight"], given.get("bias")
    if batched_at(w, level.number) or w.dim() != 2:
        y = rl.matmul(x, w.transpose(-2, -1) if w.dim() == 2 else w)
    else:
        if b is None or not batched_at(b, level.number):
            return (
                wrap(func(x._value if batched_at(x, level.number) else x, w, b), level.number)
                if batched_at(x, level.number)
                else NotImplemented
            )
        y = func(x, w)
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
