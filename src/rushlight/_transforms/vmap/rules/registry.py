"""What a batched tensor does with a call: the rule of the op, if there is one, or one run per sample."""

from __future__ import annotations

import rushlight as rl
from rushlight import _C
from rushlight.utils._pytree import tree_flatten, tree_unflatten

from ..batched import (
    _RANDOM_TOO,
    RANDOM,
    Batched,
    SampleValueError,
    _levels,
    _switch,
    batched_at,
    physical,
    wrap,
)

Tensor, OpFlags = _C.Tensor, _C.OpFlags
_WRITES = OpFlags.ELEMENTWISE | OpFlags.DIRECT  # element by element, in place too
RULES: dict = {}
_names: dict = {}  # callable -> its name in the table of ops


def rule(*names):
    def register(function):
        for name in names:
            RULES[name] = function
        return function

    return register


def _name(func):
    if not _names:
        _names.update({f: n for n, f in reversed(_C.ops.items())})
        for n, f in vars(Tensor).items():
            if isinstance(f, _C.OpMethod | type(Tensor.__getitem__)):
                _names.setdefault(f, n)
    return _names.get(func, getattr(func, "__name__", ""))


def _tensors(args, kwargs):
    for a in (*args, *kwargs.values()):
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, list | tuple):
            yield from (b for b in a if isinstance(b, Tensor))


class _Plan:
    """What is known of a function before its arguments are."""

    def __init__(self, func):
        self.name = name = _name(func)
        flags = getattr(func, "_flags", 0)
        self.random = bool(flags & RANDOM) or name in _RANDOM_TOO
        self.rule = RULES.get(name)
        self.in_place = self.rule is None and name.endswith("_") and not name.endswith("__")
        if self.rule is None and flags & (OpFlags.ELEMENTWISE | OpFlags.BATCHABLE):
            self.rule = pointwise
        self.composed = getattr(func, "__wrapped__", None)  # of other functions


_plans: dict = {}


def _highest(values, number):
    """The highest level among tensors, lists and tuples of them, and `number`."""
    for a in values:
        if type(a) is Batched:
            if a._level > number:
                number = a._level
        elif isinstance(a, list | tuple):
            number = _highest(a, number)
    return number


def apply(func, args, kwargs):
    number = _highest(args, 0)
    if kwargs:
        number = _highest(kwargs.values(), number)
        if kwargs.get("out") is not None:
            raise RuntimeError(
                f"Batching rule not implemented for aten::{_name(func)}; the fallback path doesn't work on out= or "
                "view ops: an out= argument cannot hold the results of all samples"
            )
    stack = _levels.stack
    # Levels are numbered from 1 in the order of the stack.
    if not 0 < number <= len(stack):
        raise RuntimeError(
            "vmap: your tensor may have escaped from inside a function being vmapped: it was used after its vmap had "
            "ended. Return it from the function instead"
        )
    level = stack[number - 1]
    plan = _plans.get(func)
    if plan is None:
        plan = _plans[func] = _Plan(func)
    if plan.random:
        from .random import random

        return random(func, args, kwargs, level)
    if plan.in_place:
        return _in_place(func, plan.name, args, kwargs, level)
    if plan.rule is not None:
        result = plan.rule(func, args, kwargs, level)
        if result is not NotImplemented:
            return result
    if plan.composed is not None:
        try:
            return plan.composed(*args, **kwargs)
        except SampleValueError:  # it looks at values: at those of one sample after the other
            pass
    return per_sample(func, args, kwargs, level)


def _wrapped(result, level):
    if isinstance(result, Tensor):
        return wrap(result, level.number)
    if isinstance(result, tuple) and hasattr(type(result), "n_fields"):  # a named tuple
        return type(result)([_wrapped(r, level) for r in result])
    if isinstance(result, tuple | list):
        return type(result)(_wrapped(r, level) for r in result)
    return result


class fallback:
    """Whether functions without a rule may run sample by sample (torch._C._functorch switches it), and warn."""

    enabled, warns = True, False


def per_sample(func, args, kwargs, level):
    """Right for every function that does not mix samples, and as slow as a loop."""
    if not fallback.enabled:
        raise RuntimeError(
            f"Fallback disabled: vmap has no rule for {_name(func)}, which runs sample by sample"
        )
    if fallback.warns:
        import warnings

        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for aten::{_name(func)}: "
            "it runs sample by sample.",
            UserWarning,
            stacklevel=3,
        )
    leaves, spec = tree_flatten((args, kwargs))
    runs = []
    for i in range(level.size or 1):
        sample = []
        for x in leaves:
            if batched_at(x, level.number):
                x = x._value.select(0, i) if level.size else x._value.new_zeros(x.shape)
            sample.append(x)
        a, k = tree_unflatten(sample, spec)
        runs.append(func(*a, **k))

    def join(results):
        first = results[0]
        if isinstance(first, Tensor):
            stacked = rl.stack(results)
            return wrap(stacked if level.size else stacked[:0], level.number)
        if isinstance(first, tuple | list):
            parts = [join(column) for column in zip(*results, strict=True)]
            return type(first)(parts) if hasattr(type(first), "n_fields") else type(first)(p for p in parts)
        if any(r != first for r in results):
            raise SampleValueError(
                f"vmap: {_name(func)} gives a Python value for each sample, and they differ: {results[:4]}"
            )
        return first

    return join(runs)


def own_sizes(func, args, kwargs, level):
    """The rule of functions whose results have as many elements as the values say."""
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"aten::{_name(func)}: each sample would have a result of its own size."
    )


@rule("equal")
def one_answer(func, args, kwargs, level):
    """The rule of functions that give one Python value, where each sample would have its own."""
    raise RuntimeError(
        f"Batching rule not implemented for aten::{_name(func)}: it gives a Python value, and each sample has one of "
        "its own. Use (a == b).all()"
    )


def _aligned(x, rank, level):
    """The values of x with `rank` dimensions behind the batch, so that they broadcast as samples would."""
    if not batched_at(x, level.number):
        return x
    v = x._value
    missing = rank - (v.dim() - 1)
    return v.reshape(v.shape[0], *(1,) * missing, *v.shape[1:]) if missing > 0 else v


def pointwise(func, args, kwargs, level):
    rank = max(t.dim() for t in _tensors(args, kwargs))
    new = [_aligned(a, rank, level) if isinstance(a, Tensor) else a for a in args]
    named = {k: _aligned(a, rank, level) if isinstance(a, Tensor) else a for k, a in kwargs.items()}
    if (
        len({t.dtype for t in _tensors(args, kwargs)}) > 1
        and not getattr(func, "_flags", 0) & OpFlags.OWN_TYPE
    ):
        new, named = _promoted(args, kwargs, new, named)
    return _wrapped(func(*new, **named), level)


def _promoted(args, kwargs, new, named):
    """The values, cast where promotion among samples, some of which have no dimensions, gives another type than among
    the values, which all have the batch's."""
    before = _switch(False)  # a Batched is then a tensor of one sample's shape
    try:
        logical = [
            a for a in (*args, *kwargs.values()) if isinstance(a, Tensor | bool | int | float | complex)
        ]
        want = _joint_type(logical)
    finally:
        _switch(before)
    if want == _joint_type(
        [a for a in (*new, *named.values()) if isinstance(a, Tensor | bool | int | float | complex)]
    ):
        return new, named

    def cast(a):
        return a.to(want) if isinstance(a, Tensor) and a.dtype != want else a

    return [cast(a) for a in new], {k: cast(a) for k, a in named.items()}


def _joint_type(values):
    tensors = [v for v in values if isinstance(v, Tensor)]
    with_dims = [t.dtype for t in tensors if t.dim()]
    kinds = [with_dims, [t.dtype for t in tensors if not t.dim()]]
    probe = None
    for group, shape in zip(kinds, ((1,), ()), strict=True):
        joint = None
        for dtype in group:
            joint = dtype if joint is None else rl.promote_types(joint, dtype)
        if joint is not None:
            part = rl.empty(shape, dtype=joint, device="meta")
            joint = joint if probe is None else rl.result_type(probe, part)
            probe = part if probe is None else rl.empty((1,), dtype=joint, device="meta")
    assert probe is not None  # a call without tensors needs no rule
    return probe.dtype


def _in_place(func, name, args, kwargs, level):
    target, *rest = args
    base = name[:-1]
    if base in TURNING and batched_at(target, level.number):
        return _turn(func, target, rest, kwargs)
    op = _C.ops.get(base) or _C.ops.get("nn.functional." + base)
    if not batched_at(target, level.number):
        raise RuntimeError(
            f"vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
            f"extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
            f"`self` not being vmapped over: `{name}` would write one value per sample into one element. Use the "
            f"out-of-place form, `{base}`."
        )
    if base == "fill" and rest and batched_at(rest[0], level.number):
        value = rest[0]._value
        target._value.copy_(value.reshape(-1, *(1,) * target.dim()))
        return target
    simple = base == "copy" or (op is not None and op._flags & _WRITES == _WRITES)
    if simple and all(t.dim() <= target.dim() for t in _tensors(rest, kwargs)):
        new = [_aligned(a, target.dim(), level) if isinstance(a, Tensor) else a for a in rest]
        func(target._value, *new, **kwargs)
        return target
    result = (op or getattr(rl, base))(target, *rest, **kwargs)
    target._value.copy_(physical(result, level.number, level.size))
    return target


# Functions that turn a tensor in place, and leave its values where they are.
TURNING = frozenset(["transpose", "swapaxes", "swapdims", "t", "squeeze", "unsqueeze"])


def _turn(func, target, rest, kwargs):
    rank = target.dim()
    before = _switch(False)
    try:
        value = target._value
        if func.__name__ == "t_":
            value.transpose_(1, min(rank, 2))
        elif func.__name__ == "squeeze_" and not rest and not kwargs:
            for d in range(rank, 0, -1):
                value.squeeze_(d)
        else:
            more = func.__name__ == "unsqueeze_"
            func(
                value,
                *(_shifts(d, rank + more) for d in rest),
                **{k: _shifts(d, rank + more) for k, d in kwargs.items()},
            )
        func(target, *rest, **kwargs)  # the sample that stands for all
    finally:
        _switch(before)
    return target


def _given(names, args, kwargs):
    """Arguments by name; NumPy's spellings count."""
    found = dict(zip(names, args, strict=False))
    for k, v in kwargs.items():
        found[{"axis": "dim", "keepdims": "keepdim", "self": "input", "x": "input"}.get(k, k)] = v
    return found


def _shift(dim, rank):
    """A dimension of a sample as one of the batch."""
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(rank, 1)}, {max(rank, 1) - 1}], but got {dim})"
        )
    return dim % max(rank, 1) + 1


def _shifts(dims, rank):
    return _shift(dims, rank) if isinstance(dims, int) else tuple(_shift(d, rank) for d in dims)
