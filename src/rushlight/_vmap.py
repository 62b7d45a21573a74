"""vmap: a function of single samples as a function of batches.

Inside, a mapped tensor looks like one sample (`Batched`, whose value has the batch as its first dimension). Each op
that meets one is given to a rule (rushlight._vmap_rules), which runs it once for the whole batch; an op without a rule
runs once per sample. Composed functions simply run, on batched tensors.
"""

import threading
from contextlib import contextmanager

import rushlight as rl

from . import _C
from .overrides import TorchFunctionMode
from .utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map, tree_unflatten

__all__ = ["vmap"]

Tensor = _C.Tensor
_switch, _select, _detach = (_C.ops[name] for name in ("_set_torch_function", "select", "detach"))
RANDOM = 256  # csrc/ops/registry.h: kRandom


class _Levels(threading.local):
    def __init__(self):
        self.stack = []  # of _Level, outermost first


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


def _through(name):
    """A property that belongs to the value."""
    return property(lambda self: getattr(self._value, name))


class Batched(Tensor):
    """One sample of many. `_value` holds all of them along dimension 0; `_level` is the number of its vmap."""

    _ops_only = True

    requires_grad = property(
        lambda self: self._value.requires_grad, lambda self, on: self._value.requires_grad_(on)
    )
    grad_fn, is_leaf, _version = _through("grad_fn"), _through("is_leaf"), _through("_version")
    data = property(lambda self: self.detach())
    T = property(lambda self: self.permute(*range(self.dim() - 1, -1, -1)))
    mT = property(lambda self: self.transpose(-2, -1))
    H = property(lambda self: self.conj().transpose(-2, -1))
    mH = property(lambda self: self.conj().transpose(-2, -1))
    real = property(lambda self: rl.real(self))
    imag = property(lambda self: rl.imag(self))
    grad = property(
        lambda self: wrap(self._value.grad, self._level) if self._value.grad is not None else None
    )
    item = _refuse("calling .item() on a Tensor")
    tolist = _refuse("calling .tolist() on a Tensor")
    numpy = __array__ = _refuse("converting a Tensor to NumPy")
    __bool__ = is_nonzero = _refuse("attempting to use a Tensor in some data-dependent control flow")
    __int__ = __float__ = __index__ = __complex__ = _refuse("calling .item() on a Tensor")

    def backward(self, *args, **kwargs):
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported: use torch.func.grad or torch.func.vjp "
            "inside, or call backward() on the result of the transform."
        )

    def requires_grad_(self, requires_grad=True):
        self._value.requires_grad_(requires_grad)
        return self

    def detach_(self):
        self._value.detach_()
        return self

    def register_hook(self, hook):
        return self._value.register_hook(hook)

    def __repr__(self, *, tensor_contents=None):
        return f"Batched(level={self._level}, value={self._value!r})"

    def __deepcopy__(self, memo):
        return wrap(self._value.clone(), self._level)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        from ._vmap_rules import apply

        return apply(func, args, kwargs or {})


from . import autograd as _autograd  # noqa: E402
from .autograd import function as _function  # noqa: E402

_autograd._Batched = _function._Batched = Batched  # they meet batched tensors only once this module is loaded


def wrap(value, level):
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


def get_unwrapped(x):
    """All samples of x, as the level below sees them."""
    return x._value if type(x) is Batched else x


def innermost(x):
    """The plain tensor that holds the values of x."""
    while type(x) is Batched:
        x = x._value
    return x


def spread(x):
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


def gradients(roots, wanted, seeds, retain, create_graph, allow_unused, stacked, materialize):
    """autograd.grad of batched tensors: samples do not mix, so one backward of the batch is all of theirs. Where the graph is the same
    for all samples and only what is sent into it is mapped, the samples are a stack of gradients.
    """
    from .autograd import grad

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
            from ._vmap_rules import random

            return random(func, args, kwargs, self.level)
        if kind == _COMPOSED:  # what it calls is seen, too
            from ._vmap_rules import apply

            mapped = any(type(a) is Batched for a in (*args, *kwargs.values()))
            with _Watch(self.level):
                return apply(func, args, kwargs) if mapped else func.__wrapped__(*args, **kwargs)
        return func(*args, **kwargs)


_PLAIN, _DRAWS, _COMPOSED = range(3)
_kinds: dict = {}  # of functions


def _kind(func):
    if getattr(func, "_flags", 0) & RANDOM:
        return _DRAWS
    return _COMPOSED if hasattr(func, "__wrapped__") else _PLAIN


def _flat_dims(func, in_dims, spec, leaves):
    where = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not leaves:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs, which is not supported."
        )
    prefix = in_dims if isinstance(in_dims, int) else tuple(in_dims)
    dims = _broadcast_to_and_flatten(prefix, spec, is_leaf=lambda d: d is None)
    if dims is None:
        raise ValueError(
            f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(prefix)[1]} but inputs has structure {spec}."
        )
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{where}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap "
                "over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{leaf.dim()} so expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
    return dims


def _name(func):
    return getattr(func, "__name__", None) or repr(func)


def _batch_size(leaves, dims):
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over, got None for every in_dim")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, "
            f"got sizes {sizes} for the mapped dimension"
        )
    return sizes[0]


def _map(func, leaves, dims, spec, size, kwargs, out_dims, randomness):
    """One run of func on the whole batch: (results, their dims, spec)."""
    with inside(size, randomness) as number:
        mapped = [
            leaf if dim is None else wrap(leaf.movedim(dim, 0), number)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        flat, out_spec = tree_flatten(func(*tree_unflatten(mapped, spec), **kwargs))
        targets = _out_dims(func, out_dims, out_spec)
        results = [_leave(func, value, dim, number, size) for value, dim in zip(flat, targets, strict=True)]
    return results, targets, out_spec


def _out_dims(func, out_dims, spec):
    if not isinstance(out_dims, (int, tuple, list, dict, type(None))):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "that says where in the outputs the mapped dimension should appear."
        )
    targets = _broadcast_to_and_flatten(out_dims, spec, is_leaf=lambda d: d is None)
    if targets is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return targets


def _leave(func, value, dim, number, size):
    if dim is None:
        if batched_at(value, number):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None: each sample "
                "has its own."
            )
        return value
    if not isinstance(value, Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(value)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    full = physical(value, number, size)
    if not -full.dim() <= dim < full.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-full.dim()}, {full.dim() - 1}], but got {dim}): out_dims "
            f"of vmap({_name(func)}, ...)"
        )
    return full.movedim(0, dim)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that maps func over a dimension of its inputs, all samples at once.

    Args:
        in_dims, out_dims: where the batch is, one for all or one per input or output; None is not mapped.
        randomness: "error" refuses random functions inside, "different" and "same" say what samples get.
        chunk_size: so many samples at a time, to bound the memory.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    def wrapper(*args, **kwargs):
        leaves, spec = tree_flatten(args)
        dims = _flat_dims(func, in_dims, spec, leaves)
        size = _batch_size(leaves, dims)
        if chunk_size is None or chunk_size >= size:
            results, _, out_spec = _map(func, leaves, dims, spec, size, kwargs, out_dims, randomness)
            return tree_unflatten(results, out_spec)
        state = rl.get_rng_state() if randomness == "same" else None
        parts = []
        for at in range(0, size, chunk_size):
            if state is not None:
                rl.set_rng_state(state)
            length = min(chunk_size, size - at)
            piece = [
                leaf if dim is None else leaf.narrow(dim, at, length)
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
            parts.append(_map(func, piece, dims, spec, length, kwargs, out_dims, randomness))
        joined = [
            column[0] if dim is None else rl.cat(column, dim)
            for dim, *column in zip(parts[0][1], *(p[0] for p in parts), strict=True)
        ]
        return tree_unflatten(joined, parts[0][2])

    return wrapper
