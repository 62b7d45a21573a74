"""Models that classify videos (N, C, T, H, W)."""

from .resnet import *
from .s3d import *
from rushlight._missing import teach as _teach

__getattr__ = _teach(__name__)
