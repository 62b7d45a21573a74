"""Transforms of samples: images, videos, masks, boxes and points at once (rushlight.vision.tv_tensors says which is which)."""

from .._interpolation import InterpolationMode
from ..autoaugment import AutoAugmentPolicy
from . import functional
from ._transform import Transform
from ._augment import CutMix, JPEG, MixUp, RandomErasing
from ._auto_augment import AugMix, AutoAugment, RandAugment, TrivialAugmentWide
from ._color import (
    ColorJitter,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
    RGB,
)
from ._container import Compose, RandomApply, RandomChoice, RandomOrder
from ._geometry import (
    CenterCrop,
    ElasticTransform,
    FiveCrop,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomIoUCrop,
    RandomPerspective,
    RandomResize,
    RandomResizedCrop,
    RandomRotation,
    RandomShortestSize,
    RandomVerticalFlip,
    RandomZoomOut,
    Resize,
    ScaleJitter,
    TenCrop,
)
from ._misc import (
    ClampBoundingBoxes,
    ClampKeyPoints,
    ConvertBoundingBoxFormat,
    ConvertImageDtype,
    GaussianBlur,
    GaussianNoise,
    Identity,
    Lambda,
    LinearTransformation,
    Normalize,
    PILToTensor,
    SanitizeBoundingBoxes,
    SanitizeKeyPoints,
    SetClampingMode,
    ToDtype,
    ToImage,
    ToPILImage,
    ToPureTensor,
    ToTensor,
    UniformTemporalSubsample,
)
from ._utils import check_type, get_bounding_boxes, get_keypoints, has_all, has_any, query_chw, query_size
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__getattr__ = _unsupported_attribute(__name__)
