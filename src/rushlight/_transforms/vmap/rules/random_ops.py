"""Functions that draw numbers."""

import rushlight as rl
from rushlight._C import Tensor

from ..batched import Batched, batched_at, physical, wrap
from .registry import _given, _name, _tensors, _wrapped, per_sample, pointwise

_DROPOUTS = ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "native_dropout")
# Draw an element of the result for each element of their arguments: all samples in one call.
_BY_ELEMENT = ("dropout", "native_dropout", "bernoulli", "normal", "poisson", "binomial")


def random(func, args, kwargs, level):
    """A function that draws values, by the rule of this vmap."""
    name = _name(func)
    if name in _DROPOUTS:
        given = _given(("input", "p", "train"), args, kwargs)
        if not given.get("train", True) or given.get("p", 0.5) == 0:  # nothing is drawn
            return pointwise(func, args, kwargs, level) if type(args[0]) is Batched else func(*args, **kwargs)
    if kwargs.get("out") is not None:
        raise RuntimeError(
            "vmap: We do not support calling out variants of random operations, as out= cannot hold the results of "
            "all samples"
        )
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
            "'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )
    if name.endswith("_"):
        return _in_place(func, name, args, kwargs, level)
    return (_different if level.randomness == "different" else _same)(func, name, args, kwargs, level)


def _no_same(name):
    return RuntimeError(
        "Vmap does not currently support same randomness with a batched tensor input: what "
        f"{name} draws depends on the values of each sample. Use randomness='different'."
    )


def _in_place(func, name, args, kwargs, level):
    target, others = args[0], [t for t in _tensors(args[1:], kwargs) if batched_at(t, level.number)]
    if level.randomness == "same" and others:
        raise _no_same(name)
    if not batched_at(target, level.number):
        if others:
            raise RuntimeError(
                f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
                "that has more elements than `self`: it is mapped and `self` is not. Use the out-of-place form."
            )
        if level.randomness == "different":
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
                "randomness: fill a tensor made from a mapped one, like torch.empty_like(x)."
            )
        return func(*args, **kwargs)
    if level.randomness == "same":  # one draw for all
        one = target._value[0].clone(memory_format=rl.contiguous_format)
        target._value.copy_(func(one, *args[1:], **kwargs))
    else:
        rank = target._value.dim()
        more = [_beside(a, level, rank) for a in args[1:]]
        func(target._value, *more, **{k: _beside(a, level, rank) for k, a in kwargs.items()})
    return target


def _full(a, level):
    return physical(a, level.number, level.size) if isinstance(a, Tensor) else a


def _beside(a, level, rank):
    """All samples of an argument that is broadcast to a target of that rank: the dimension of samples stays in front."""
    full = _full(a, level)
    if not isinstance(a, Tensor) or not 1 <= full.dim() < rank:
        return full
    return full.reshape(full.shape[0], *[1] * (rank - full.dim()), *full.shape[1:])


def _different(func, name, args, kwargs, level):
    tensors = list(_tensors(args, kwargs))
    if not tensors:
        return _drawn(func, name, args, kwargs, level)
    if name in _BY_ELEMENT or name.endswith("_like"):
        full = [_full(a, level) for a in args]
        return _wrapped(func(*full, **{k: _full(a, level) for k, a in kwargs.items()}), level)
    if name == "multinomial":
        rows = _full(args[0], level)
        drawn = func(rows.reshape(-1, rows.shape[-1]), *args[1:], **kwargs)
        return wrap(drawn.reshape(*rows.shape[:-1], drawn.shape[-1]), level.number)
    if any(batched_at(t, level.number) for t in tensors):
        return per_sample(func, args, kwargs, level)
    return _wrapped(rl.stack([func(*args, **kwargs) for _ in range(level.size)]), level)


def _drawn(func, name, args, kwargs, level):
    """A new tensor: all samples in one draw, since larger tensors are drawn in another order."""
    if name in ("rand", "randn") and args:
        size = args if isinstance(args[0], int) else args[0]
        return wrap(func((level.size, *size), **kwargs), level.number)
    if "size" in kwargs:
        return wrap(func(*args, **{**kwargs, "size": (level.size, *kwargs["size"])}), level.number)
    at = next((k for k, a in enumerate(args) if isinstance(a, list | tuple)), None)
    if at is not None:
        return wrap(func(*args[:at], (level.size, *args[at]), *args[at + 1 :], **kwargs), level.number)
    return _wrapped(rl.stack([func(*args, **kwargs) for _ in range(level.size)]), level)


def _same(func, name, args, kwargs, level):
    if not any(batched_at(t, level.number) for t in _tensors(args, kwargs)):
        return func(*args, **kwargs)
    if name.endswith("_like"):
        return func(args[0]._value[0], *args[1:], **kwargs)
    if name == "dropout":
        return args[0] * func(rl.ones_like(args[0]._value[0]), *args[1:], **kwargs)
    if name not in _DROPOUTS:
        raise _no_same(name)
    state = rl.get_rng_state()

    def again(*a, **k):
        rl.set_rng_state(state)
        return func(*a, **k)

    return per_sample(again, args, kwargs, level)
