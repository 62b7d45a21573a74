"""Models that find objects: Faster R-CNN, Mask R-CNN and Keypoint R-CNN."""

from .faster_rcnn import *
from .keypoint_rcnn import *
from .mask_rcnn import *
from rushlight._missing import teach as _teach

__getattr__ = _teach(__name__)
