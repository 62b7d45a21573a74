from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import rushlight as rl

from . import constraints
from .distribution import Distribution
from .gamma import Gamma

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """Fisher's F distribution: the ratio of two chi-squared variables, each divided by its degrees of freedom.

    Args:
        df1 (Tensor or float): the degrees of freedom above.
        df2 (Tensor or float): those below.
        validate_args (bool): whether parameters and values are checked; None means the default. Default: None

    Example:
        >>> m = torch.distributions.FisherSnedecor(2.0, 4.0)
        >>> m.mean, m.log_prob(torch.tensor(1.0))
        (tensor(2.), tensor(-1.2164))
    """

    df1: rl.Tensor
    df2: rl.Tensor

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(
        self, df1: rl.Tensor | float, df2: rl.Tensor | float, validate_args: bool | None = None
    ) -> None:
        self._set_parameters(validate_args, df1=df1, df2=df2)
        # Chi-squared variables over their degrees of freedom.
        self._gamma1, self._gamma2 = (Gamma(df / 2, df) for df in (self.df1, self.df2))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = self._expanded(FisherSnedecor, batch_shape, ("df1", "df2"), _instance=_instance)
        new._gamma1, new._gamma2 = self._gamma1.expand(batch_shape), self._gamma2.expand(batch_shape)
        made: Self = new
        return made

    @property
    def mean(self) -> rl.Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 2, float("nan"))
        return df2 / (df2 - 2)

    @property
    def mode(self) -> rl.Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, float("nan"))

    @property
    def variance(self) -> rl.Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 4, float("nan"))
        mean = df2 / (df2 - 2)
        return 2 * mean * mean * (self.df1 + df2 - 2) / (self.df1 * (df2 - 4))

    def rsample(self, sample_shape: Sequence[int] = ()) -> rl.Tensor:
        shape = self._extended_shape(sample_shape)
        x1 = self._gamma1.rsample(sample_shape).view(shape)
        x2 = self._gamma2.rsample(sample_shape).view(shape)
        tiny = rl.finfo(x2.dtype).tiny
        x2.detach().clamp_(min=tiny)
        y = x1 / x2
        y.detach().clamp_(min=tiny)
        return y

    def log_prob(self, value: rl.Tensor) -> rl.Tensor:
        self._check(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        return (
            (a + b).lgamma()
            - a.lgamma()
            - b.lgamma()
            + a * ratio.log()
            + (a - 1) * rl.log(value)
            - (a + b) * rl.log1p(ratio * value)
        )
