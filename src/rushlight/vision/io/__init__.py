"""Files of images as tensors (C, H, W) of bytes, and back, by Pillow."""

from .image import *
from rushlight._core.unsupported import teach as _teach

__getattr__ = _teach(__name__)
