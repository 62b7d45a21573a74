"""Models that classify videos (N, C, T, H, W)."""

from __future__ import annotations

from .mvit import *
from .resnet import *
from .s3d import *
from .swin_transformer import *
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

TYPE_CHECKING = False
if (
    TYPE_CHECKING
):  # builders, and the enumerations of their weights, are entered while their modules are loaded
    from typing import Any

    def __getattr__(name: str) -> Any: ...
else:
    __getattr__ = _unsupported_attribute(__name__)
