"""Transforms of samples: images, videos, masks, boxes and points at once (rushlight.vision.tv_tensors says which is which)."""

from .._interpolation import InterpolationMode as InterpolationMode
from ..autoaugment import AutoAugmentPolicy as AutoAugmentPolicy
from . import functional as functional
from ._transform import Transform as Transform
from ._augment import CutMix as CutMix, JPEG as JPEG, MixUp as MixUp, RandomErasing as RandomErasing
from ._auto_augment import (
    AugMix as AugMix,
    AutoAugment as AutoAugment,
    RandAugment as RandAugment,
    TrivialAugmentWide as TrivialAugmentWide,
)
from ._color import (
    ColorJitter as ColorJitter,
    Grayscale as Grayscale,
    RandomAdjustSharpness as RandomAdjustSharpness,
    RandomAutocontrast as RandomAutocontrast,
    RandomChannelPermutation as RandomChannelPermutation,
    RandomEqualize as RandomEqualize,
    RandomGrayscale as RandomGrayscale,
    RandomInvert as RandomInvert,
    RandomPhotometricDistort as RandomPhotometricDistort,
    RandomPosterize as RandomPosterize,
    RandomSolarize as RandomSolarize,
    RGB as RGB,
)
from ._container import (
    Compose as Compose,
    RandomApply as RandomApply,
    RandomChoice as RandomChoice,
    RandomOrder as RandomOrder,
)
from ._geometry import (
    CenterCrop as CenterCrop,
    ElasticTransform as ElasticTransform,
    FiveCrop as FiveCrop,
    Pad as Pad,
    RandomAffine as RandomAffine,
    RandomCrop as RandomCrop,
    RandomHorizontalFlip as RandomHorizontalFlip,
    RandomIoUCrop as RandomIoUCrop,
    RandomPerspective as RandomPerspective,
    RandomResize as RandomResize,
    RandomResizedCrop as RandomResizedCrop,
    RandomRotation as RandomRotation,
    RandomShortestSize as RandomShortestSize,
    RandomVerticalFlip as RandomVerticalFlip,
    RandomZoomOut as RandomZoomOut,
    Resize as Resize,
    ScaleJitter as ScaleJitter,
    TenCrop as TenCrop,
)
from ._misc import (
    ClampBoundingBoxes as ClampBoundingBoxes,
    ClampKeyPoints as ClampKeyPoints,
    ConvertBoundingBoxFormat as ConvertBoundingBoxFormat,
    ConvertImageDtype as ConvertImageDtype,
    GaussianBlur as GaussianBlur,
    GaussianNoise as GaussianNoise,
    Identity as Identity,
    Lambda as Lambda,
    LinearTransformation as LinearTransformation,
    Normalize as Normalize,
    PILToTensor as PILToTensor,
    SanitizeBoundingBoxes as SanitizeBoundingBoxes,
    SanitizeKeyPoints as SanitizeKeyPoints,
    SetClampingMode as SetClampingMode,
    ToDtype as ToDtype,
    ToImage as ToImage,
    ToPILImage as ToPILImage,
    ToPureTensor as ToPureTensor,
    ToTensor as ToTensor,
    UniformTemporalSubsample as UniformTemporalSubsample,
)
from ._utils import (
    check_type as check_type,
    get_bounding_boxes as get_bounding_boxes,
    get_keypoints as get_keypoints,
    has_all as has_all,
    has_any as has_any,
    query_chw as query_chw,
    query_size as query_size,
)
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__getattr__ = _unsupported_attribute(__name__)
