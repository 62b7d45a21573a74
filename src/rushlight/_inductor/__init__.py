"""The compiler behind torch.compile, of which only the settings are here."""

from rushlight._inductor import config as config
from rushlight._missing import teach as _teach

__getattr__ = _teach(__name__)
