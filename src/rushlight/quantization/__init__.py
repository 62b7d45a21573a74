"""torch.quantization: the older address of torch.ao.quantization."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.ao.quantization import *  # noqa: F403

__getattr__ = _unsupported_attribute(__name__)
