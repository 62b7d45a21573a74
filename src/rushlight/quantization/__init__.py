"""torch.quantization: the older address of torch.ao.quantization."""

from rushlight._core.unsupported import teach as _teach
from rushlight.ao.quantization import *  # noqa: F403

__getattr__ = _teach(__name__)
