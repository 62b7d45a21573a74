"""All rules of the layout torch.strided: its modules fill the tables as they are loaded."""

from rushlight.nested import _strided_layers, _strided_views  # noqa: F401
from rushlight.nested._strided import HANDLERS, LAYERS, pointwise, refusal

__all__ = ["HANDLERS", "LAYERS", "pointwise", "refusal"]
