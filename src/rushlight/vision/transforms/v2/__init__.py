"""Transforms of samples: pictures, videos, masks and boxes at once (rushlight.vision.tv_tensors says which is which)."""

from ..autoaugment import AutoAugmentPolicy
from .._interpolation import InterpolationMode
from ._auto import AugMix, AutoAugment, RandAugment, TrivialAugmentWide
from ._base import Transform, query_chw, query_size
from ._color import (
    ColorJitter,
    GaussianBlur,
    GaussianNoise,
    Grayscale,
    JPEG,
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
from ._geometry import (
    CenterCrop,
    ClampBoundingBoxes,
    ConvertBoundingBoxFormat,
    ElasticTransform,
    FiveCrop,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomResize,
    RandomResizedCrop,
    RandomRotation,
    RandomShortestSize,
    RandomVerticalFlip,
    RandomZoomOut,
    Resize,
    SanitizeBoundingBoxes,
    ScaleJitter,
    TenCrop,
)
from ._misc import (
    Compose,
    ConvertImageDtype,
    CutMix,
    Identity,
    Lambda,
    LinearTransformation,
    MixUp,
    Normalize,
    PILToTensor,
    RandomApply,
    RandomChoice,
    RandomErasing,
    RandomOrder,
    ToDtype,
    ToImage,
    ToPILImage,
    ToPureTensor,
    ToTensor,
)
from . import functional
from rushlight._missing import teach as _teach

__getattr__ = _teach(__name__)
