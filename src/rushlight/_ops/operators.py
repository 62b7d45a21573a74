"""Names of operators and methods that differ from the ops behind them."""

from .._C import Tensor

Tensor.where = Tensor._where_method
Tensor.__div__ = Tensor.__truediv__
Tensor.__rdiv__ = Tensor.__rtruediv__
Tensor.__idiv__ = Tensor.__itruediv__
