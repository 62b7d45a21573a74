"""Models that classify videos (N, C, T, H, W)."""

from .mvit import *
from .resnet import *
from .s3d import *
from .swin_transformer import *
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__getattr__ = _unsupported_attribute(__name__)
