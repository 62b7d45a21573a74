"""Models that find objects: by proposals (Faster R-CNN, Mask R-CNN, Keypoint R-CNN) or at once (FCOS, RetinaNet, SSD)."""

from __future__ import annotations

from .faster_rcnn import *
from .fcos import *
from .keypoint_rcnn import *
from .mask_rcnn import *
from .retinanet import *
from .ssd import *
from .ssdlite import *
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

TYPE_CHECKING = False
if (
    TYPE_CHECKING
):  # builders, and the enumerations of their weights, are entered while their modules are loaded
    from typing import Any

    def __getattr__(name: str) -> Any: ...
else:
    __getattr__ = _unsupported_attribute(__name__)
