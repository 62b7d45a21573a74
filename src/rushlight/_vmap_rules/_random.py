"""Functions that draw numbers."""

import rushlight as rl

from .._vmap import Batched, batched_at, wrap
from ._apply import _given, _name, _tensors, _wrapped, per_sample, pointwise


def random(func, args, kwargs, level):
    """A function that draws numbers, by the rule of this vmap."""
    if _name(func) in (
        "dropout",
        "alpha_dropout",
        "feature_dropout",
        "feature_alpha_dropout",
        "native_dropout",
    ):
        given = _given(("input", "p", "train"), args, kwargs)
        if not given.get("train", True) or given.get("p", 0.5) == 0:  # nothing is drawn
            return pointwise(func, args, kwargs, level) if type(args[0]) is Batched else func(*args, **kwargs)
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
            "'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )
    name, mapped = _name(func), any(batched_at(t, level.number) for t in _tensors(args, kwargs))
    if mapped and level.randomness == "different":
        if name in ("dropout", "native_dropout", "bernoulli", "normal", "poisson") or name.endswith("_like"):
            return pointwise(func, args, kwargs, level)
        if name.endswith("_"):
            func(args[0]._value, *args[1:], **kwargs)
            return args[0]
        return per_sample(func, args, kwargs, level)
    if level.randomness == "different":
        if name.endswith("_"):
            raise RuntimeError(
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
                "randomness: fill a tensor made from a mapped one, like torch.empty_like(x)."
            )
        if name in ("rand", "randn"):  # all samples in one draw: larger ones are drawn in another order
            size = args if args and isinstance(args[0], int) else (args[0] if args else kwargs.pop("size"))
            return wrap(func((level.size, *size), **kwargs), level.number)
        return _wrapped(rl.stack([func(*args, **kwargs) for _ in range(level.size)]), level)
    if not mapped:
        return func(*args, **kwargs)
    if name == "dropout":
        return args[0] * func(rl.ones_like(args[0]._value[0]), *args[1:], **kwargs)
    if name.endswith("_like"):
        return func(args[0]._value[0], *args[1:], **kwargs)
    state, runs = rl.get_rng_state(), []

    def again(*a, **k):
        rl.set_rng_state(state)
        runs.append(None)
        return func(*a, **k)

    return per_sample(again, args, kwargs, level)
