from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from rushlight import Tensor

from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution: the sum of the squares of df standard normal variables.

    Args:
        df (Tensor or float): the degrees of freedom, above 0.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.Chi2(3.0)
        >>> m.mean, m.variance, m.log_prob(torch.tensor(1.0))
        (tensor(3.), tensor(6.), tensor(-1.4189))
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))

    df = property(lambda self: 2 * self.concentration, doc="The degrees of freedom.")
