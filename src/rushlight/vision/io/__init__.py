"""Files of images as tensors (C, H, W) of bytes, and back, by Pillow."""

from .image import *
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__getattr__ = _unsupported_attribute(__name__)
