"""Kullback-Leibler divergences: a registry by the types of both distributions.

The formulas themselves are in `_kl_same` (both of one family) and `_kl_cross`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from rushlight import Tensor
from rushlight.distributions.distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

_F = TypeVar("_F", bound=Callable[..., Any])

_KL_REGISTRY: dict[Any, Any] = {}
_KL_MEMOIZE: dict[Any, Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[_F], _F]:
    """Decorator: the function gives KL(p || q) for two classes of distributions and their subclasses.

    Among several that fit, kl_divergence takes the most specific one.

    Args:
        type_p (type): the class of p.
        type_q (type): the class of q.

    Example:
        >>> class Point(torch.distributions.Normal):
        ...     pass
        >>> @torch.distributions.register_kl(Point, Point)
        ... def kl(p, q):
        ...     return (p.loc - q.loc).abs()
        >>> torch.distributions.kl_divergence(Point(0.0, 1.0), Point(2.0, 1.0))
        tensor(2.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(fun: _F) -> _F:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


def _nearest(kind: Any, candidates: Any) -> Any:
    """Of the classes that kind derives from, the one it meets first."""
    order = kind.__mro__
    return min(candidates, key=lambda c: order.index(c) if c in order else len(order))


def _dispatch_kl(type_p: type, type_q: type) -> Callable[..., Tensor]:
    """The most specific registered function, or NotImplemented."""
    fits = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not fits:
        result: Callable[..., Tensor] = NotImplemented
        return result
    # The first type decides, and among equals the second; then the other way round. They should agree.
    by_p = _nearest(type_p, [p for p, _ in fits])
    by_p = by_p, _nearest(type_q, [q for p, q in fits if p is by_p])
    by_q = _nearest(type_q, [q for _, q in fits])
    by_q = _nearest(type_p, [p for p, q in fits if q is by_q]), by_q
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}): "
            f"register_kl({by_p[0].__name__}, {by_q[1].__name__}) would settle it",
            RuntimeWarning,
            stacklevel=3,
        )
    out: Callable[..., Tensor] = _KL_REGISTRY[by_p]
    return out


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence KL(p || q) = E_p[log p(x) - log q(x)], for each element of the batch.

    Args:
        p (Distribution): from which x is drawn.
        q (Distribution): the other one.

    Raises:
        NotImplementedError: no formula is registered for the two classes.

    Example:
        >>> p = torch.distributions.Normal(0.0, 1.0)
        >>> torch.distributions.kl_divergence(p, torch.distributions.Normal(1.0, 1.0))
        tensor(0.5000)
    """
    key = type(p), type(q)
    fun = _KL_MEMOIZE.get(key)
    if fun is None:
        fun = _KL_MEMOIZE[key] = _dispatch_kl(*key)
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for {type(p).__name__} and {type(q).__name__}; register_kl adds one"
        )
    return fun(p, q)


def __getattr__(name: str) -> Any:
    if name == "_kl_expfamily_expfamily":
        from ._kl_same import _exponential_family

        return _exponential_family
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
