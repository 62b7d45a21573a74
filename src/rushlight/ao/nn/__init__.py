"""torch.ao.nn: layers for quantization, of which only their float form is here."""

from rushlight.nn import quantized as quantized
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__getattr__ = _unsupported_attribute(__name__)
