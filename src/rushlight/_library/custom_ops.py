"""torch._library.custom_ops: operators made from functions."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.library import CustomOpDef as CustomOpDef
from rushlight.library import custom_op as custom_op

__getattr__ = _unsupported_attribute(__name__)
