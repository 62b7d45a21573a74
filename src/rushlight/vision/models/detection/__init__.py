"""Models that find objects: by proposals (Faster R-CNN, Mask R-CNN, Keypoint R-CNN) or at once (FCOS, RetinaNet, SSD)."""

from .faster_rcnn import *
from .fcos import *
from .keypoint_rcnn import *
from .mask_rcnn import *
from .retinanet import *
from .ssd import *
from .ssdlite import *
from rushlight._core.unsupported import teach as _teach

__getattr__ = _teach(__name__)
