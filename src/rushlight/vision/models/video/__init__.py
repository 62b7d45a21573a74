"""Models that classify videos (N, C, T, H, W)."""

from .mvit import *
from .resnet import *
from .s3d import *
from .swin_transformer import *
from rushlight._core.unsupported import teach as _teach

__getattr__ = _teach(__name__)
