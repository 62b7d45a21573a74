"""Data sets of images, read from their published files. Nothing in a file is ever run."""

from ._optical_flow import *
from ._stereo_matching import *
from .annotated import *
from .celeba import *
from .cifar import *
from .coco import *
from .fakedata import *
from .folder import *
from .imagenet import *
from .labelled import *
from .mnist import *
from .stl10 import *
from .svhn import *
from .usps import *
from .videos import *
from .vision import VisionDataset as VisionDataset
from .voc import *
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

_unsupported = _unsupported_attribute(__name__)


def __getattr__(name):
    if name == "wrap_dataset_for_transforms_v2":
        from rushlight.vision.tv_tensors._dataset_wrapper import wrap_dataset_for_transforms_v2

        return wrap_dataset_for_transforms_v2
    if name in ("samplers", "video_utils"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    return _unsupported(name)
