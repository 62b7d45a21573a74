"""Models that find objects: Faster R-CNN and Mask R-CNN."""

from .faster_rcnn import *
from .mask_rcnn import *
from rushlight._missing import teach as _teach

__getattr__ = _teach(__name__)
