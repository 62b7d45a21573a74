"""`biject_to` and `transform_to`: from unconstrained values into a constraint."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


_F = TypeVar("_F", bound=Callable[..., Any])


class ConstraintRegistry:
    """Gives a transform from unconstrained values onto a constraint: `registry(constraint)`.

    biject_to gives one-to-one transforms, transform_to those that are best for optimizing.

    Example:
        >>> f = torch.distributions.biject_to(torch.distributions.constraints.positive)
        >>> f, torch.distributions.transform_to(torch.distributions.constraints.simplex)
        (ComposeTransform(
            ExpTransform(),
            AffineTransform()
        ), SoftmaxTransform())
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Registers factory(constraint) for a constraint's type; without a factory, as a decorator."""
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, constraints.Constraint):
            raise TypeError(
                f"Expected constraint to be a Constraint or a class of them, but got {constraint}"
            )

        def enter(function: Any) -> Any:
            self._registry[kind] = function
            return function

        return enter if factory is None else enter(factory)

    def __call__(self, constraint: Any) -> Any:
        """The transform onto a constraint."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register_both(constraint: Any) -> Callable[[_F], _F]:
    def decorate(factory: _F) -> _F:
        biject_to.register(constraint, factory)
        transform_to.register(constraint, factory)
        return factory

    return decorate


@_register_both(constraints.real)
def _real(constraint: Any) -> Any:
    return transforms.identity_transform


def _for_each(constraint: Any) -> Callable[[_F], _F]:
    """Registers make(registry, constraint) with both: what is made of constraints asks the same registry for them."""

    def decorate(make: _F) -> _F:
        for registry in (biject_to, transform_to):
            registry.register(constraint, functools.partial(make, registry))
        return make

    return decorate


@_for_each(constraints.independent)
def _independent(registry: Any, constraint: Any) -> Any:
    return transforms.IndependentTransform(
        registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims
    )


@_for_each(constraints.cat)
def _cat(registry: Any, constraint: Any) -> Any:
    parts = [registry(c) for c in constraint.cseq]
    return transforms.CatTransform(parts, constraint.dim, constraint.lengths)


@_for_each(constraints.stack)
def _stack(registry: Any, constraint: Any) -> Any:
    return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


@_register_both(constraints.positive)
@_register_both(constraints.nonnegative)
def _greater(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_register_both(constraints.less_than)
def _less(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_register_both(constraints.interval)
@_register_both(constraints.half_open_interval)
def _interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low == 0 and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


# The bijection onto the simplex loses a dimension, which transform_to need not.
for _registry, _constraint, _transform in (
    (biject_to, constraints.simplex, transforms.StickBreakingTransform),
    (transform_to, constraints.simplex, transforms.SoftmaxTransform),
    (transform_to, constraints.lower_cholesky, transforms.LowerCholeskyTransform),
    (transform_to, constraints.positive_definite, transforms.PositiveDefiniteTransform),
    (transform_to, constraints.positive_semidefinite, transforms.PositiveDefiniteTransform),
    (biject_to, constraints.corr_cholesky, transforms.CorrCholeskyTransform),
    (transform_to, constraints.corr_cholesky, transforms.CorrCholeskyTransform),
):
    _registry.register(_constraint, lambda _, made=_transform: made())
