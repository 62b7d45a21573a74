"""The base class of distributions: shapes, validation, what is derived from what."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .utils import broadcast_all, lazy_property

__all__ = ["Distribution"]


def _size(shape: Any) -> rl.Size:
    return rl.Size(tuple(shape) if not isinstance(shape, int) else (shape,))


class Distribution:
    """The base of all distributions: a batch of distributions, each over values of one shape.

    `batch_shape` counts independent distributions, `event_shape` is the shape of one draw; sample(n) has the
    shape n + batch_shape + event_shape, log_prob the shape of the batch.

    Args:
        batch_shape (Size): how many independent distributions there are. Default: ()
        event_shape (Size): the shape of one draw. Default: ()
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Dirichlet(torch.ones(5, 3))
        >>> m.batch_shape, m.event_shape, m.sample((2,)).shape
        (torch.Size([5]), torch.Size([3]), torch.Size([2, 5, 3]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions check their arguments by default.

        Args:
            value (bool): True unless Python runs with -O.
        """
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = _size(batch_shape), _size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _set_parameters(self, validate_args: bool | None, **parameters: Any) -> None:
        """Sets attributes to the parameters, broadcast against each other: the whole __init__ of most families."""
        tensors = broadcast_all(*parameters.values())
        self.__dict__.update(zip(parameters, tensors, strict=True))
        Distribution.__init__(self, tensors[0].shape, validate_args=validate_args)

    def _check(self, value: rl.Tensor) -> None:
        """Refuses a value outside the support, where arguments are checked at all."""
        if self._validate_args:
            self._validate_sample(value)

    def _check_parameters(self) -> None:
        try:
            known = self.arg_constraints
        except NotImplementedError:
            known = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for name, constraint in known.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property):
                continue  # derived from the parameter that was given
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                    f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid "
                    f"values:\n{value}"
                )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """The same distribution with a larger batch shape.

        Args:
            batch_shape (Size): the shape that the present one is broadcast to.
        """
        raise NotImplementedError

    @property
    def batch_shape(self) -> rl.Size:
        """How many independent distributions there are, as a shape."""
        return self._batch_shape

    @property
    def event_shape(self) -> rl.Size:
        """The shape of one draw."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraint of each parameter, by its name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that values satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> rl.Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> rl.Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> rl.Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> rl.Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        """A draw, without gradient.

        Args:
            sample_shape (Size): how many draws. Default: ()

        Returns:
            A tensor of shape sample_shape + batch_shape + event_shape.
        """
        with rl.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        """A reparametrized draw: differentiable with respect to the parameters.

        Args:
            sample_shape (Size): how many draws. Default: ()
        """
        raise NotImplementedError

    def sample_n(self, n: int) -> rl.Tensor:
        """n draws. Deprecated: sample((n,)) does the same.

        Args:
            n (int): how many.
        """
        warnings.warn("sample_n(n) will be deprecated. Use .sample((n,)) instead.", UserWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        """The logarithm of the density or mass at a value.

        Args:
            value (Tensor): of a shape that broadcasts with batch_shape + event_shape.
        """
        raise NotImplementedError

    def cdf(self, value: rl.Tensor) -> rl.Tensor:
        """The probability of values up to this one.

        Args:
            value (Tensor): the bound.
        """
        raise NotImplementedError

    def icdf(self, value: rl.Tensor) -> rl.Tensor:
        """The value that a draw is below with this probability: the inverse of cdf.

        Args:
            value (Tensor): a probability.
        """
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> rl.Tensor:
        """All values of a discrete distribution along a new first dimension.

        Args:
            expand (bool): whether the batch dimensions are filled in; False leaves them at size 1. Default:
                True
        """
        raise NotImplementedError

    def entropy(self) -> rl.Tensor:
        """The entropy, in nats: E[-log p(x)]."""
        raise NotImplementedError

    def perplexity(self) -> rl.Tensor:
        """The exponential of the entropy."""
        return rl.exp(self.entropy())

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> rl.Size:
        return _size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value: rl.Tensor) -> None:
        if not isinstance(value, rl.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = len(value.shape) - len(self._event_shape)
        if tuple(value.shape[max(start, 0) :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.shape), reversed(expected)):  # noqa: B905  broadcasting: ranks may differ
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be "
                "within "
                f"the support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method "
                "must "
                "also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _expanded(
        self,
        cls: Any,
        batch_shape: Sequence[int],
        names: Sequence[str],
        event_shape: Sequence[int] | None = None,
        _instance: Any = None,
    ) -> Any:
        """A copy whose parameters `names` are expanded to the new batch shape, each with its own event dims."""
        new = self._get_checked_instance(cls, _instance)
        batch_shape = _size(batch_shape)
        old_rank = len(self._batch_shape)
        for name in names:
            if name not in self.__dict__:
                continue
            value = self.__dict__[name]
            new.__dict__[name] = value.expand(batch_shape + _size(value.shape[old_rank:]))
        event_shape = self._event_shape if event_shape is None else event_shape
        parent: Any = super(cls, new)
        parent.__init__(batch_shape, event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _copied(self, cls: Any, batch_shape: Sequence[int], _instance: Any, **attributes: Any) -> Any:
        """A copy of another batch shape with these attributes; cls is the class whose expand() makes it."""
        new = self._get_checked_instance(cls, _instance)
        new.__dict__.update(attributes)
        parent: Any = super(cls, new)
        parent.__init__(_size(batch_shape), self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        parts = []
        for name in names:
            value = self.__dict__[name]
            parts.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(parts)})"
