"""Models that find objects: by proposals (Faster R-CNN, Mask R-CNN, Keypoint R-CNN) or at once (FCOS, RetinaNet, SSD)."""

from .faster_rcnn import *
from .fcos import *
from .keypoint_rcnn import *
from .mask_rcnn import *
from .retinanet import *
from .ssd import *
from .ssdlite import *
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__getattr__ = _unsupported_attribute(__name__)
