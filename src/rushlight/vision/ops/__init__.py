"""Operators and building blocks of vision models."""

from . import _utils
from .boxes import *
from .deform_conv import DeformConv2d as DeformConv2d, deform_conv2d as deform_conv2d
from .drop_block import (
    DropBlock2d as DropBlock2d,
    DropBlock3d as DropBlock3d,
    drop_block2d as drop_block2d,
    drop_block3d as drop_block3d,
)
from .feature_pyramid_network import FeaturePyramidNetwork as FeaturePyramidNetwork
from .losses import (
    complete_box_iou_loss as complete_box_iou_loss,
    distance_box_iou_loss as distance_box_iou_loss,
    generalized_box_iou_loss as generalized_box_iou_loss,
    sigmoid_focal_loss as sigmoid_focal_loss,
)
from .misc import (
    MLP as MLP,
    Conv2dNormActivation as Conv2dNormActivation,
    Conv3dNormActivation as Conv3dNormActivation,
    FrozenBatchNorm2d as FrozenBatchNorm2d,
    Permute as Permute,
    SqueezeExcitation as SqueezeExcitation,
)
from .poolers import MultiScaleRoIAlign as MultiScaleRoIAlign
from .roi import (
    PSRoIAlign as PSRoIAlign,
    PSRoIPool as PSRoIPool,
    RoIAlign as RoIAlign,
    RoIPool as RoIPool,
    ps_roi_align as ps_roi_align,
    ps_roi_pool as ps_roi_pool,
    roi_align as roi_align,
    roi_pool as roi_pool,
)
from .stochastic_depth import StochasticDepth as StochasticDepth, stochastic_depth as stochastic_depth
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__getattr__ = _unsupported_attribute(__name__)
