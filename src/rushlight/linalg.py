"""Linear algebra, as torch.linalg."""

from ._C import LinAlgError
from ._compose import functions_of

globals().update(functions_of("linalg"))
__all__ = ["LinAlgError", *functions_of("linalg")]
