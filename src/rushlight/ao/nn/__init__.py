"""torch.ao.nn: layers for quantization, of which only their float form is here."""

from rushlight.nn import quantized as quantized
from rushlight._core.unsupported import teach as _teach

__getattr__ = _teach(__name__)
