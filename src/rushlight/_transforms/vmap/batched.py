"""What tensors are inside vmap.

A mapped tensor looks like one sample (`Batched`, whose value has the batch as its first dimension). Each op
that meets one is given to a rule (rushlight._transforms.vmap.rules), which runs it once for the whole batch; an op without a rule
runs once per sample. Composed functions simply run, on batched tensors.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from typing import Any

import rushlight as rl
from rushlight import _C
from rushlight.overrides import TorchFunctionMode
from rushlight.utils._pytree import tree_map

Tensor = _C.Tensor
_switch, _select, _detach = (_C.ops[name] for name in ("_set_torch_function", "select", "detach"))
RANDOM = _C.OpFlags.RANDOM


class _Levels(threading.local):
    def __init__(self):
        self.stack = []  # of _Level, outermost first
        self.nested = False  # inside a function that is mapped over a nested tensor


class _Level:
    def __init__(self, number, size, randomness):
        self.number, self.size, self.randomness = number, size, randomness


_levels = _Levels()


_DATA = (
    "vmap: It looks like you're {}. We don't support vmap over it, please try to rewrite what you're doing to not "
    "need the values of single samples."
)


class SampleValueError(RuntimeError):
    """A function asked for the value of a single sample."""


def _refuse(what):
    def method(self, *args, **kwargs):
        raise SampleValueError(_DATA.format(what))

    return method


def _refuse_data(text):
    def method(self, *args):
        raise RuntimeError(text)

    return method


def _through(name):
    """A property that belongs to the value."""
    return property(lambda self: getattr(self._value, name))


class Batched(Tensor):
    """One sample of many. `_value` holds all of them along dimension 0; `_level` is the number of its vmap."""

    _ops_only = True
    _value: Any
    _level: int

    requires_grad = property(
        lambda self: self._value.requires_grad, lambda self, on: self._value.requires_grad_(on)
    )
    grad_fn, is_leaf, _version = _through("grad_fn"), _through("is_leaf"), _through("_version")
    data = property(
        _refuse_data("accessing `data` under vmap transform is not allowed: use detach()"),
        _refuse_data("mutating directly with `.data` under vmap transform is not allowed: use copy_()"),
    )
    T = property(lambda self: self.permute(*range(self.dim() - 1, -1, -1)))
    mT = property(lambda self: self.transpose(-2, -1))
    H = property(lambda self: self.conj().transpose(-2, -1))
    mH = property(lambda self: self.conj().transpose(-2, -1))
    real = property(lambda self: rl.real(self))  # type: ignore[misc]
    imag = property(lambda self: rl.imag(self))  # type: ignore[misc]
    grad = property(
        lambda self: wrap(self._value.grad, self._level) if self._value.grad is not None else None
    )
    item = _refuse("calling .item() on a Tensor")
    tolist = _refuse("calling .tolist() on a Tensor")
    numpy = __array__ = _refuse("converting a Tensor to NumPy")
    __bool__ = is_nonzero = _refuse("attempting to use a Tensor in some data-dependent control flow")
    __int__ = __float__ = __index__ = __complex__ = _refuse("calling .item() on a Tensor")

    def backward(self, *args, **kwargs):
        _autograd.backward(self)  # which refuses

    def requires_grad_(self, requires_grad=True):
        self._value.requires_grad_(requires_grad)
        return self

    def is_contiguous(self, memory_format=rl.contiguous_format):
        if memory_format != rl.contiguous_format:
            raise RuntimeError(
                f"NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format, got "
                f"{memory_format}"
            )
        return Tensor.is_contiguous(self)

    def detach_(self):
        self._value.detach_()
        return self

    def register_hook(self, hook):
        return self._value.register_hook(hook)

    def __repr__(self, *, tensor_contents=None):
        return f"BatchedTensor(lvl={self._level}, bdim=0, value={self._value!r})"

    def __deepcopy__(self, memo):
        return wrap(self._value.clone(), self._level)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from .rules import apply

        return apply(func, args, kwargs or {})


from rushlight import autograd as _autograd  # noqa: E402
from rushlight.autograd import function as _function  # noqa: E402

_autograd._Batched = _function._Batched = Batched  # they meet batched tensors only once this module is loaded


def wrap(value: Any, level: Any) -> Any:
    """value, with the batch as dimension 0, seen as one sample."""
    before = _switch(
        False
    )  # here, a Batched is the plain tensor that it is made of: one sample's shape and type
    try:
        if len(value):
            sample = _select(_detach(value), 0, 0)
        else:
            sample = _C.ops["zeros"](value.shape[1:], dtype=value.dtype, device=value.device)
        sample = sample.as_subclass(Batched)
    finally:
        _switch(before)
    sample._value, sample._level = value, level
    return sample


def batched_at(x, level):
    return type(x) is Batched and x._level == level


def physical(x, level, size):
    """All samples of x along dimension 0, also where x is the same for all."""
    if batched_at(x, level):
        return x._value
    return x.unsqueeze(0).expand(size, *x.shape)


def is_batchedtensor(x):
    """Whether x is one sample of a vmap."""
    return type(x) is Batched


def get_unwrapped(x: Any) -> Any:
    """All samples of x, as the level below sees them."""
    return x._value if type(x) is Batched else x


def innermost(x: Any) -> Any:
    """The plain tensor that holds the values of x."""
    while type(x) is Batched:
        x = x._value
    return x


def spread(x: Any) -> Any:
    """x as a tensor of its own for each sample of every vmap that is running: what a gradient per sample needs."""
    for level in _levels.stack:
        if not any(batched_at(y, level.number) for y in _chain(x)):
            x = _inserted(x, level)
    return x


def _chain(x):
    while type(x) is Batched:
        yield x
        x = x._value


def _inserted(x, level):
    """x batched at `level`, below the levels further in that it already has."""
    if type(x) is Batched and x._level > level.number:
        inner = _inserted(x._value.movedim(0, -1), level)
        return wrap(inner.movedim(-1, 0), x._level)
    return wrap(physical(x, level.number, level.size), level.number)


def gradients(
    roots: Any,
    wanted: Any,
    seeds: Any,
    retain: Any,
    create_graph: Any,
    allow_unused: Any,
    stacked: Any,
    materialize: Any,
) -> Any:
    """autograd.grad of batched tensors: samples do not mix, so one backward of the batch is all of theirs. Where the graph is the same
    for all samples and only what is sent into it is mapped, the samples are a stack of gradients.
    """
    from rushlight.autograd import grad

    number = max(x._level for x in (*roots, *wanted, *(seeds or ())) if type(x) is Batched)
    (level,) = [v for v in _levels.stack if v.number == number] or [None]
    if level is None:
        raise RuntimeError("vmap: a batched tensor was used after its vmap had ended")
    mapped = any(batched_at(x, number) for x in roots)
    if mapped and not all(batched_at(x, number) for x in wanted):
        raise RuntimeError(
            "vmap: autograd.grad by a tensor that is the same for all samples: its gradient per sample is not "
            "recorded. Use torch.func.grad, or pass the tensor as a mapped argument."
        )
    full = []
    for k, root in enumerate(roots):
        seed = None if seeds is None else seeds[k]
        if seed is None:
            if root.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            seed = rl.ones_like(root).detach()
        seed = physical(seed, number, level.size)
        if stacked:  # (samples, rows, ...)
            seed = seed.movedim(0, 1) if mapped else seed.flatten(0, 1)
        full.append(seed)
    roots = [physical(x, number, level.size) for x in roots] if mapped else roots
    inputs = [x._value if batched_at(x, number) else x for x in wanted]
    found = grad(roots, inputs, full, retain, create_graph, True, allow_unused, stacked or not mapped)

    def one(g, x):
        if g is None:
            return rl.zeros_like(x) if materialize else None
        if stacked:
            g = g.movedim(1, 0) if mapped else g.unflatten(0, (level.size, -1))
        return wrap(g, number)

    return tuple(map(one, found, wanted))


@contextmanager
def inside(size, randomness="error"):
    """A vmap over `size` samples for the time of the block; its number."""
    level = _Level(len(_levels.stack) + 1, size, randomness)
    _levels.stack.append(level)
    try:
        with _Watch(level):
            yield level.number
    finally:
        _levels.stack.pop()


def call_stacked(function, args, rows):
    """function(*args) in a backward of stacked gradients: tensors in args are mapped over the rows, and so are the results."""
    with inside(rows) as number:
        args = tree_map(lambda x: wrap(x, number) if isinstance(x, Tensor) else x, args)
        return tree_map(lambda x: physical(x, number, rows) if isinstance(x, Tensor) else x, function(*args))


class _Watch(TorchFunctionMode):
    """Sees the random functions that are called inside: those without a tensor reach no rule."""

    _ops_only = True

    def __init__(self, level):
        super().__init__()
        self.level = level

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        kind = _kinds.get(func)
        if kind is None:
            kind = _kinds[func] = _kind(func)
        if kind == _DRAWS:
            from .rules import random

            return random(func, args, kwargs, self.level)
        if kind == _COMPOSED:  # what it calls is seen, too
            from .rules import apply

            mapped = any(type(a) is Batched for a in (*args, *kwargs.values()))
            with _Watch(self.level):
                return apply(func, args, kwargs) if mapped else func.__wrapped__(*args, **kwargs)
        return func(*args, **kwargs)


class _NoDraws(TorchFunctionMode):
    """Refuses the random functions that are called inside."""

    _ops_only = True

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if _kind(func) == _DRAWS:
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                "'different' randomness flags on vmap or perform the randomness operation out of vmap"
            )
        return func(*args, **(kwargs or {}))


def random_as(randomness: str) -> Any:
    """A block for a function that runs once for all columns of a Jacobian, by the rule of vmap that PyTorch takes for
    them: "error" refuses random functions, else all columns see the same draw."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    return _NoDraws() if randomness == "error" else nullcontext()


_PLAIN, _DRAWS, _COMPOSED = range(3)
_kinds: dict = {}  # of functions


_RANDOM_TOO = ("_standard_gamma", "_sample_dirichlet")


def _kind(func):
    if getattr(func, "_flags", 0) & RANDOM or getattr(func, "__name__", "") in _RANDOM_TOO:
        return _DRAWS
    return _COMPOSED if hasattr(func, "__wrapped__") else _PLAIN
