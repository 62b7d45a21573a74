"""Linear algebra, as torch.linalg."""

from ._C import LinAlgError
from ._core.compose import functions_of

globals().update(functions_of("linalg"))
__all__ = ["LinAlgError", *functions_of("linalg")]

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
