"""What all transforms share: the cache of the last pair, the inverse, and how one is made again with a cache."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from rushlight import Tensor
from rushlight.distributions import constraints


class Transform:
    """The base of invertible transforms y = f(x), with log |det dy/dx|.

    A subclass defines `_call`, `_inverse` and `log_abs_det_jacobian`, with `domain`, `codomain` and
    `bijective`. `f.inv` is the inverse.

    Args:
        cache_size (int): 1 remembers the last (x, y), so that inverting what was just computed is exact.
            Default: 0

    Example:
        >>> f = torch.distributions.ExpTransform()
        >>> x = torch.tensor([0.0, 1.0])
        >>> f(x), f.inv(f(x)), f.log_abs_det_jacobian(x, f(x))
        (tensor([1.0000, 2.7183]), tensor([0., 1.]), tensor([0., 1.]))
    """

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size != 0 and cache_size != 1:
            raise ValueError(f"cache_size must be 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()  # of a further base, as in `class Flow(Transform, nn.Module)`

    def __getstate__(self) -> Any:
        return {**self.__dict__, "_inv": None}  # a weak reference cannot be pickled

    # Compared by identity unless a subclass knows better; equal transforms may be different objects.
    def __eq__(self, other: object) -> bool:
        return other is self

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown()})"

    def _shown(self) -> str:
        return ""

    def _arguments(self) -> Any:
        """What the constructor needs besides cache_size; None: not known, a subclass came with its own."""
        return () if type(self).__init__ is Transform.__init__ else None

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with another size of the cache.

        Args:
            cache_size (int): 0 or 1. Default: 1
        """
        if cache_size == self._cache_size:
            return self
        arguments = self._arguments()
        if arguments is None:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        kind: Any = type(self)
        return kind(*arguments, cache_size=cache_size)

    @property
    def event_dim(self) -> int:
        """How many of the last dimensions make one value, where that is the same on both sides."""
        before, after = self.domain.event_dim, self.codomain.event_dim
        if before != after:
            raise ValueError(
                "Please use either .domain.event_dim or .codomain.event_dim: "
                f"{type(self).__name__} has {before} and {after}"
            )
        return before

    @property
    def inv(self) -> Transform:
        """The inverse transform; its `inv` is this one."""
        known = None if self._inv is None else self._inv()
        if known is not None:
            result: Transform = known
            return result
        made = self._make_inverse()
        self._inv = weakref.ref(made)  # weak: the inverse holds this one
        return made

    def _make_inverse(self) -> Transform:
        return _InverseTransform(self)

    @property
    def sign(self) -> Any:
        """The sign of dy/dx of a monotonic transform."""
        raise NotImplementedError

    def __call__(self, x: Tensor) -> Tensor:
        return self._through_cache(0, self._call, x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._through_cache(1, self._inverse, y)

    def _through_cache(self, side: int, function: Callable[[Tensor], Tensor], value: Tensor) -> Tensor:
        """function(value), or the other side of the remembered pair if `value` is that pair's own."""
        if not self._cache_size:
            return function(value)
        pair = self._cached_x_y
        if pair[side] is value:
            out: Tensor = pair[1 - side]
            return out
        result = function(value)
        self._cached_x_y = (value, result) if side == 0 else (result, value)
        return result

    def _call(self, x: Tensor) -> Tensor:
        """y of x."""
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        """x of y."""
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx| of each value."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """The shape of y for an x of that shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of x for a y of that shape."""
        return shape


class _InverseTransform(Transform):
    """x of y, held by the transform's `inv`."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    domain = constraints.dependent_property(lambda self: self._inv.codomain, is_discrete=False)
    codomain = constraints.dependent_property(lambda self: self._inv.domain, is_discrete=False)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._inv == self._inv

    __hash__ = None

    def _shown(self) -> str:
        return repr(self._inv)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._inv.with_cache(cache_size).inv

    def __call__(self, x: Tensor) -> Tensor:
        out: Tensor = self._inv._inv_call(x)
        return out

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        out: Tensor = self._inv.log_abs_det_jacobian(y, x).neg()
        return out

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


class Plain(Transform):
    """Transforms without parameters: all instances of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = None


def need_dims(shape: Sequence[int], count: int) -> None:
    if len(shape) < count:
        raise ValueError(f"Too few dimensions on input: {count} are needed, got shape {tuple(shape)}")
