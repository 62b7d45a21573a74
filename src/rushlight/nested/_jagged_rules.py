"""All rules of the layout torch.jagged: its modules fill the tables as they are loaded."""

from rushlight.nested import _jagged_matmul, _jagged_reduce, _jagged_views  # noqa: F401
from rushlight.nested._jagged import HANDLERS, LAYERS, pointwise, refusal

__all__ = ["HANDLERS", "LAYERS", "pointwise", "refusal"]
