"""Operators and building blocks of vision models."""

from . import _utils
from .boxes import *
from .deform_conv import DeformConv2d, deform_conv2d
from .drop_block import DropBlock2d, DropBlock3d, drop_block2d, drop_block3d
from .feature_pyramid_network import FeaturePyramidNetwork
from .losses import (
    complete_box_iou_loss,
    distance_box_iou_loss,
    generalized_box_iou_loss,
    sigmoid_focal_loss,
)
from .misc import (
    MLP,
    Conv2dNormActivation,
    Conv3dNormActivation,
    FrozenBatchNorm2d,
    Permute,
    SqueezeExcitation,
)
from .poolers import MultiScaleRoIAlign
from .roi import (
    PSRoIAlign,
    PSRoIPool,
    RoIAlign,
    RoIPool,
    ps_roi_align,
    ps_roi_pool,
    roi_align,
    roi_pool,
)
from .stochastic_depth import StochasticDepth, stochastic_depth
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__getattr__ = _unsupported_attribute(__name__)
