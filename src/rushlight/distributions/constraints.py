"""Constraints: the sets that parameters and values of distributions must lie in.

`check(value)` returns one bool per event: per element, vector or matrix, as `event_dim` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import rushlight as rl

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A set that parameters or values of a distribution must lie in.

    `check(value)` returns one bool for each event: element, vector or matrix, as `event_dim` says;
    `is_discrete` tells whether the set is one of integers.

    Example:
        >>> class Even(torch.distributions.constraints.Constraint):
        ...     is_discrete = True
        ...     def check(self, value):
        ...         return value % 2 == 0
        >>> Even().check(torch.arange(3))
        tensor([ True, False,  True])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: rl.Tensor) -> rl.Tensor:
        """Whether the set holds a value.

        Args:
            value (Tensor): of any batch shape.

        Returns:
            One bool for each event.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """Depends on other parameters: known only for an instance of a distribution."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]  # as in PyTorch, a variable of its base
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        result: bool = self._is_discrete
        return result

    @property
    def event_dim(self) -> int:  # type: ignore[override]  # as in PyTorch, a variable of its base
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        result: int = self._event_dim
        return result

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> Any:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


dependent = _Dependent()


def is_dependent(constraint: object) -> bool:
    """Tells whether a constraint is known only for an instance of a distribution.

    Args:
        constraint (Constraint): any.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> constraints.is_dependent(constraints.dependent), constraints.is_dependent(constraints.real)
        (True, False)
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """Decorator of a property that depends on parameters: a constraint on an instance, a dependent one on the class.

    Args:
        fn (callable): the method that gives the constraint. Default: None
        is_discrete (bool): of the constraints, if it is always the same. Default: unknown
        event_dim (int): likewise. Default: unknown

    Example:
        >>> constraints = torch.distributions.constraints
        >>> class Below:
        ...     high = 3.0
        ...     @constraints.dependent_property(is_discrete=False, event_dim=0)
        ...     def support(self):
        ...         return constraints.interval(0.0, self.high)
        >>> Below().support, constraints.is_dependent(Below.support)
        (Interval(lower_bound=0.0, upper_bound=3.0), True)
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> Any:  # type: ignore[override]  # it decorates
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


dependent_property = _DependentProperty


def _need_dims(value: rl.Tensor, count: int) -> None:
    if value.dim() < count:
        raise ValueError(f"Expected value.dim() >= {count} but got {value.dim()}")


def _all_of_last(checks: rl.Tensor, dims: int) -> rl.Tensor:
    """Whether all are true over the last so many dimensions."""
    return checks.flatten(checks.dim() - dims).all(-1) if dims else checks


class _IndependentConstraint(Constraint):
    """Takes the last dimensions of another constraint together as one event, which is in if all of it is.

    Args:
        base_constraint (Constraint): of the parts.
        reinterpreted_batch_ndims (int): how many dimensions.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> constraints.independent(constraints.positive, 1).check(torch.tensor([[1.0, 2.0], [1.0, -2.0]]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value: rl.Tensor) -> rl.Tensor:
        _need_dims(value, self.event_dim)
        each = self.base_constraint.check(value)
        return _all_of_last(each, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


independent = _IndependentConstraint


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: its components' support, with their dimension taken out.

    Args:
        base_constraint (Constraint): the support of the components.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> constraints.MixtureSameFamilyConstraint(constraints.positive).check(torch.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value: rl.Tensor) -> rl.Tensor:
        _need_dims(value, self.event_dim)
        each = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))  # (..., components)
        return _all_of_last(each, each.dim() - (value.dim() - self.event_dim))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: rl.Tensor) -> rl.Tensor:
        return (value == 0) | (value == 1)


boolean = _Boolean()


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: rl.Tensor) -> rl.Tensor:
        ones = value == 1
        return (ones | (value == 0)).all(-1) & (ones.sum(-1) == 1)


one_hot = _OneHot()


def _is_whole(value: rl.Tensor) -> rl.Tensor:
    return value % 1 == 0


class _Bounded(Constraint):
    """Base of constraints between bounds; the repr shows them."""

    _names: tuple[str, ...] = ()
    lower_bound: Any
    upper_bound: Any

    def __init__(self, *bounds: Any, **named: Any) -> None:
        given = dict(zip(self._names, bounds, strict=False)) | named
        if len(bounds) + len(named) != len(self._names) or given.keys() != set(self._names):
            raise TypeError(
                f"{type(self).__name__[1:]}() takes {', '.join(self._names)}; got {bounds} and {named}"
            )
        for name, bound in given.items():
            setattr(self, name, bound)

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={getattr(self, name)}" for name in self._names)
        return f"{type(self).__name__[1:]}({bounds})"


class _IntegerInterval(_Bounded):
    """The integers from lower_bound to upper_bound, both included.

    Args:
        *bounds (Tensor or int): lower_bound and upper_bound.
        **named (Tensor or int): the same, by name.

    Example:
        >>> torch.distributions.constraints.integer_interval(0, 2).check(torch.tensor([0.0, 2.0, 1.5, 3.0]))
        tensor([ True,  True, False, False])
    """

    is_discrete = True
    _names = ("lower_bound", "upper_bound")

    def check(self, value: rl.Tensor) -> rl.Tensor:
        out: rl.Tensor = _is_whole(value) & (self.lower_bound <= value) & (value <= self.upper_bound)
        return out


integer_interval = _IntegerInterval


class _IntegerLessThan(_Bounded):
    is_discrete = True
    _names = ("upper_bound",)

    def check(self, value: rl.Tensor) -> rl.Tensor:
        out: rl.Tensor = _is_whole(value) & (value <= self.upper_bound)
        return out


class _IntegerGreaterThan(_Bounded):
    is_discrete = True
    _names = ("lower_bound",)

    def check(self, value: rl.Tensor) -> rl.Tensor:
        out: rl.Tensor = _is_whole(value) & (value >= self.lower_bound)
        return out


nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)


class _Real(Constraint):
    def check(self, value: rl.Tensor) -> rl.Tensor:
        return value == value  # anything but NaN


real = _Real()
real_vector = independent(real, 1)


class _GreaterThan(_Bounded):
    """The numbers above lower_bound.

    Args:
        *bounds (Tensor or float): lower_bound.
        **named (Tensor or float): the same, by name.

    Example:
        >>> torch.distributions.constraints.greater_than(1.0).check(torch.tensor([1.0, 2.0]))
        tensor([False,  True])
    """

    _names = ("lower_bound",)

    def check(self, value: rl.Tensor) -> rl.Tensor:
        out: rl.Tensor = self.lower_bound < value
        return out


positive = _GreaterThan(0.0)
greater_than = _GreaterThan


class _GreaterThanEq(_Bounded):
    """The numbers from lower_bound on.

    Args:
        *bounds (Tensor or float): lower_bound.
        **named (Tensor or float): the same, by name.

    Example:
        >>> torch.distributions.constraints.greater_than_eq(1.0).check(torch.tensor([1.0, 0.0]))
        tensor([ True, False])
    """

    _names = ("lower_bound",)

    def check(self, value: rl.Tensor) -> rl.Tensor:
        out: rl.Tensor = self.lower_bound <= value
        return out


nonnegative = _GreaterThanEq(0.0)
greater_than_eq = _GreaterThanEq


class _LessThan(_Bounded):
    """The numbers below upper_bound.

    Args:
        *bounds (Tensor or float): upper_bound.
        **named (Tensor or float): the same, by name.

    Example:
        >>> torch.distributions.constraints.less_than(1.0).check(torch.tensor([1.0, 0.0]))
        tensor([False,  True])
    """

    _names = ("upper_bound",)

    def check(self, value: rl.Tensor) -> rl.Tensor:
        out: rl.Tensor = value < self.upper_bound
        return out


less_than = _LessThan


class _Interval(_Bounded):
    """The numbers from lower_bound to upper_bound, both included.

    Args:
        *bounds (Tensor or float): lower_bound and upper_bound.
        **named (Tensor or float): the same, by name.

    Example:
        >>> torch.distributions.constraints.interval(0.0, 1.0).check(torch.tensor([1.0, 2.0]))
        tensor([ True, False])
    """

    _names = ("lower_bound", "upper_bound")

    def check(self, value: rl.Tensor) -> rl.Tensor:
        out: rl.Tensor = (self.lower_bound <= value) & (value <= self.upper_bound)
        return out


unit_interval = _Interval(0.0, 1.0)
interval = _Interval


class _HalfOpenInterval(_Bounded):
    """The numbers from lower_bound on that are below upper_bound.

    Args:
        *bounds (Tensor or float): lower_bound and upper_bound.
        **named (Tensor or float): the same, by name.

    Example:
        >>> torch.distributions.constraints.half_open_interval(0.0, 1.0).check(torch.tensor([0.0, 1.0]))
        tensor([ True, False])
    """

    _names = ("lower_bound", "upper_bound")

    def check(self, value: rl.Tensor) -> rl.Tensor:
        out: rl.Tensor = (self.lower_bound <= value) & (value < self.upper_bound)
        return out


half_open_interval = _HalfOpenInterval


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: rl.Tensor) -> rl.Tensor:
        off = (1 - value.sum(-1)).abs()
        return (off < 1e-6) & (value >= 0).all(-1)


simplex = _Simplex()


class _Multinomial(Constraint):
    """Vectors of integers from 0 on that sum to upper_bound.

    Args:
        upper_bound (Tensor or int): the sum.

    Example:
        >>> torch.distributions.constraints.multinomial(3).check(torch.tensor([[1.0, 2.0], [1.0, 1.0]]))
        tensor([True, True])
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: rl.Tensor) -> rl.Tensor:
        in_bound = value.sum(-1) <= self.upper_bound
        out: rl.Tensor = in_bound & (value >= 0).all(-1)
        return out


multinomial = _Multinomial


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: rl.Tensor) -> rl.Tensor:
        return _all_of_last(value.tril() == value, 2)


lower_triangular = _LowerTriangular()


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: rl.Tensor) -> rl.Tensor:
        return _LowerTriangular().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


lower_cholesky = _LowerCholesky()


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices: lower, positive diagonal, rows of length one."""

    event_dim = 2

    def check(self, value: rl.Tensor) -> rl.Tensor:
        # the rounding of a row's norm grows with its length
        tolerance = rl.finfo(value.dtype).eps * value.size(-1) * 10
        row_norm = rl.linalg.norm(value.detach(), dim=-1)
        unit = (row_norm - 1.0).abs().le(tolerance).all(-1)
        return _LowerCholesky().check(value) & unit


corr_cholesky = _CorrCholesky()


class _Square(Constraint):
    event_dim = 2

    def check(self, value: rl.Tensor) -> rl.Tensor:
        square = value.shape[-2] == value.shape[-1]
        return rl.full(tuple(value.shape[:-2]), square, dtype=rl.bool, device=value.device)


square = _Square()


class _Symmetric(_Square):
    def check(self, value: rl.Tensor) -> rl.Tensor:
        fine = super().check(value)
        if bool(fine.all()):
            fine = _all_of_last(value.isclose(value.mT, atol=1e-6), 2)
        return fine


symmetric = _Symmetric()


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: rl.Tensor) -> rl.Tensor:
        fine = super().check(value)
        return (rl.linalg.eigvalsh(value) >= 0).all(-1) if bool(fine.all()) else fine


positive_semidefinite = _PositiveSemidefinite()


class _PositiveDefinite(_Symmetric):
    def check(self, value: rl.Tensor) -> rl.Tensor:
        fine = super().check(value)
        return rl.linalg.cholesky_ex(value).info == 0 if bool(fine.all()) else fine


positive_definite = _PositiveDefinite()


class _Cat(Constraint):
    """Constraints side by side along a dimension, each on some of its elements.

    Args:
        cseq (list of Constraint): in their order.
        dim (int): the dimension. Default: 0
        lengths (list of ints): how many elements each takes; None means 1. Default: None

    Example:
        >>> constraints = torch.distributions.constraints
        >>> both = constraints.cat([constraints.positive, constraints.real], lengths=[1, 2])
        >>> both.check(torch.tensor([-1.0, -1.0, 1.0]))
        tensor([False,  True,  True])
    """

    def __init__(
        self, cseq: Iterable[Constraint], dim: int = 0, lengths: Iterable[int] | None = None
    ) -> None:
        self.cseq = list(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.dim = dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))

    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value: rl.Tensor) -> rl.Tensor:
        if not -value.dim() <= self.dim < value.dim():
            raise ValueError(f"Expected a value with dimension {self.dim}, got shape {tuple(value.shape)}")
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return rl.cat(checks, self.dim)


cat = _Cat


class _Stack(Constraint):
    """Constraints along a dimension, one for each of its indices.

    Args:
        cseq (list of Constraint): in their order.
        dim (int): the dimension. Default: 0

    Example:
        >>> constraints = torch.distributions.constraints
        >>> both = constraints.stack([constraints.positive, constraints.real])
        >>> both.check(torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]))
        tensor([[False,  True],
                [ True,  True]])
    """

    def __init__(self, cseq: Iterable[Constraint], dim: int = 0) -> None:
        self.cseq = list(cseq)
        self.dim = dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))

    @property
    def event_dim(self) -> int:  # type: ignore[override]  # as in PyTorch, a variable of its base
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: rl.Tensor) -> rl.Tensor:
        parts = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        return rl.stack([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


stack = _Stack
