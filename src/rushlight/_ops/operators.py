"""Names of operators and methods that differ from the ops behind them."""

from .._C import Tensor
from .._tensor import attach

attach(
    where=Tensor._where_method,
    __div__=Tensor.__truediv__,
    __rdiv__=Tensor.__rtruediv__,
    __idiv__=Tensor.__itruediv__,
)
