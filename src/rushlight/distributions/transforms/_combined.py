"""Transforms made of transforms: one after another, side by side, over more dimensions."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any, cast

import rushlight as rl
from rushlight.distributions import constraints
from rushlight.distributions.transforms._base import Transform, need_dims
from rushlight.distributions.utils import _sum_rightmost


def _widened(constraint: constraints.Constraint, event_dim: int) -> constraints.Constraint:
    """The constraint on events of at least that many dimensions."""
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


class ComposeTransform(Transform):
    """Transforms one after another: y = f_n(... f_2(f_1(x))). `identity_transform` is one without parts.

    Args:
        parts (list of Transform): f_1 to f_n.
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> D = torch.distributions
        >>> f = D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.ExpTransform()])
        >>> f(torch.tensor(0.5)), torch.tensor(2.0).exp(), D.identity_transform(torch.tensor(3.0))
        (tensor(7.3891), tensor(7.3891), tensor(3.))
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) if cache_size else part for part in parts]

    def _arguments(self) -> Any:
        return (self.parts,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and other.parts == self.parts

    __hash__ = None

    def _shown(self) -> str:
        return "\n    " + ",\n    ".join(repr(part) for part in self.parts) + "\n"

    def _event_dims(self) -> list[int]:
        """Of the values before each part and after the last: the fewest dimensions that serve all parts."""
        dims = [part.domain.event_dim for part in self.parts]
        dims.append(self.parts[-1].codomain.event_dim)
        gains = [part.codomain.event_dim - part.domain.event_dim for part in self.parts]
        # A part that works on more dimensions than those before it widens the events of all of them.
        excess = max(dims[i] - dims[0] - sum(gains[:i]) for i in range(len(dims)))
        return [dims[0] + excess + sum(gains[:i]) for i in range(len(dims))]

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return _widened(self.parts[0].domain, self._event_dims()[0]) if self.parts else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return _widened(self.parts[-1].codomain, self._event_dims()[-1]) if self.parts else constraints.real

    bijective = property(lambda self: all(part.bijective for part in self.parts))
    sign = property(lambda self: math.prod(part.sign for part in self.parts))

    def _make_inverse(self) -> Transform:
        inverse = ComposeTransform([part.inv for part in self.parts[::-1]])
        inverse._inv = weakref.ref(self)
        return inverse

    def __call__(self, x: rl.Tensor) -> rl.Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        total = None
        dims = self._event_dims() if self.parts else ()
        for i, part in enumerate(self.parts):
            following = part(x) if i + 1 < len(self.parts) else y
            term = _sum_rightmost(part.log_abs_det_jacobian(x, following), dims[i] - part.domain.event_dim)
            total = term if total is None else total + term
            x = following
        return rl.zeros_like(x) if total is None else total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in self.parts[::-1]:
            shape = part.inverse_shape(shape)
        return shape


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """Takes the last dimensions of another transform's input together as one event, so that its determinants multiply.

    Args:
        base_transform (Transform): what is computed.
        reinterpreted_batch_ndims (int): how many dimensions.
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> f = torch.distributions.IndependentTransform(torch.distributions.ExpTransform(), 1)
        >>> f.log_abs_det_jacobian(torch.ones(4, 3), torch.ones(4, 3).exp())
        tensor([3., 3., 3., 3.])
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.base_transform = base_transform.with_cache(cache_size)

    def _arguments(self) -> Any:
        return self.base_transform, self.reinterpreted_batch_ndims

    def _shown(self) -> str:
        return f"{self.base_transform!r}, {self.reinterpreted_batch_ndims}"

    def _over_more(self, constraint: constraints.Constraint) -> constraints.Constraint:
        return constraints.independent(constraint, self.reinterpreted_batch_ndims)

    domain = constraints.dependent_property(
        lambda self: self._over_more(self.base_transform.domain), is_discrete=False
    )
    codomain = constraints.dependent_property(
        lambda self: self._over_more(self.base_transform.codomain), is_discrete=False
    )
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        need_dims(x.shape, self.domain.event_dim)
        out: rl.Tensor = self.base_transform(x)
        return out

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        need_dims(y.shape, self.codomain.event_dim)
        out: rl.Tensor = self.base_transform.inv(y)
        return out

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        parts = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(parts, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class _SideBySide(Transform):
    """Transforms of the parts of a value along `dim`. Subclasses say how a value is cut and joined."""

    _constraint = None  # constraints.cat or constraints.stack
    _join: Any

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size)
        self.dim = dim
        self.transforms = [t.with_cache(cache_size) for t in tseq]

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _cut(self, value: rl.Tensor) -> Sequence[rl.Tensor]:
        """The parts of a value, one a transform; ValueError if it has not so many."""
        raise NotImplementedError

    def _call(self, x: rl.Tensor) -> rl.Tensor:
        out: rl.Tensor = self._join([t(part) for t, part in zip(self.transforms, self._cut(x), strict=True)])
        return out

    def _inverse(self, y: rl.Tensor) -> rl.Tensor:
        out: rl.Tensor = self._join(
            [t.inv(part) for t, part in zip(self.transforms, self._cut(y), strict=True)]
        )
        return out

    def _terms(self, x: rl.Tensor, y: rl.Tensor) -> list[rl.Tensor]:
        """log |det| of each part."""
        rows = zip(self.transforms, self._cut(x), self._cut(y), strict=True)
        return [t.log_abs_det_jacobian(a, b) for t, a, b in rows]

    def _mismatch(self, count: int, value: rl.Tensor) -> ValueError:
        return ValueError(
            f"{type(self).__name__}: {count} elements along dimension {self.dim} are expected, "
            f"got shape {tuple(value.shape)}"
        )


class CatTransform(_SideBySide):
    """Transforms side by side along a dimension, each of some of its elements.

    Args:
        tseq (list of Transform): in their order.
        dim (int): the dimension. Default: 0
        lengths (list of ints): how many elements each takes; None means 1. Default: None
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> D = torch.distributions
        >>> f = D.CatTransform([D.ExpTransform(), D.identity_transform], lengths=[1, 2])
        >>> f(torch.zeros(3))
        tensor([1., 0., 0.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1 for _ in self.transforms] if lengths is None else list(lengths)

    def _arguments(self) -> Any:
        return self.transforms, self.dim, self.lengths

    length = property(lambda self: sum(self.lengths))
    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    domain = constraints.dependent_property(
        lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)
    )
    codomain = constraints.dependent_property(
        lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)
    )

    def _cut(self, value: rl.Tensor) -> Sequence[rl.Tensor]:
        if not -value.dim() <= self.dim < value.dim() or value.size(self.dim) != self.length:
            raise self._mismatch(self.length, value)
        return value.split(self.lengths, self.dim)

    def _join(self, parts: Sequence[rl.Tensor]) -> rl.Tensor:
        return rl.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        wide = self.event_dim
        terms = [
            _sum_rightmost(term, wide - t.event_dim)
            for t, term in zip(self.transforms, self._terms(x, y), strict=True)
        ]
        # Events that include the dimension of the parts have one number in all.
        from_end = self.dim if self.dim < 0 else self.dim - x.dim()
        return rl.cat(terms, from_end + wide) if from_end + wide < 0 else cast(rl.Tensor, sum(terms))


class StackTransform(_SideBySide):
    """Transforms along a dimension, one for each of its indices.

    Args:
        tseq (list of Transform): in their order.
        dim (int): the dimension. Default: 0
        cache_size (int): 0 or 1, see Transform. Default: 0

    Example:
        >>> D = torch.distributions
        >>> f = D.StackTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)])
        >>> f(torch.zeros(2, 3))
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _arguments(self) -> Any:
        return self.transforms, self.dim

    domain = constraints.dependent_property(
        lambda self: constraints.stack([t.domain for t in self.transforms], self.dim)
    )
    codomain = constraints.dependent_property(
        lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim)
    )

    def _cut(self, value: rl.Tensor) -> Sequence[rl.Tensor]:
        if value.size(self.dim) != len(self.transforms):
            raise self._mismatch(len(self.transforms), value)
        return value.unbind(self.dim)

    def _join(self, parts: Sequence[rl.Tensor]) -> rl.Tensor:
        return rl.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
        return self._join(self._terms(x, y))
