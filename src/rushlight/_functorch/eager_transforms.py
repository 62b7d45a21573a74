"""torch._functorch.eager_transforms: derivatives of functions."""

from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.func import grad as grad
from rushlight.func import grad_and_value as grad_and_value
from rushlight.func import hessian as hessian
from rushlight.func import jacfwd as jacfwd
from rushlight.func import jacrev as jacrev
from rushlight.func import jvp as jvp
from rushlight.func import linearize as linearize
from rushlight.func import vjp as vjp


def _slice_argnums(args: tuple, argnums: int | tuple[int, ...], as_tuple: bool = True) -> Any:
    """The arguments at argnums."""
    if not isinstance(argnums, int) and not (
        isinstance(argnums, tuple) and all(isinstance(n, int) for n in argnums)
    ):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    wanted = (argnums,) if isinstance(argnums, int) else argnums
    if not wanted:
        raise RuntimeError("argnums must be non-empty")
    for n in wanted:
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    if len({n % len(args) for n in wanted}) != len(wanted):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    if isinstance(argnums, int):
        return (args[argnums],) if as_tuple else args[argnums]
    return tuple(args[n] for n in wanted)


def _as_tuple(value: Any) -> tuple:
    return value if isinstance(value, tuple) else (value,)


def noop(*args: Any, **kwargs: Any) -> None:
    """Nothing."""


def enable_inplace_requires_grad(enabled: bool) -> Any:
    """A block in which requires_grad_() of a tensor inside a transform is allowed: it always is here."""
    import contextlib

    return contextlib.nullcontext(rl.is_grad_enabled())


__getattr__ = _unsupported_attribute(__name__)
