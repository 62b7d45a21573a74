"""Mask R-CNN (He et al., 2017)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from rushlight import nn

from ..._init import he_fan_out, initialize
from ...ops.misc import Conv2dNormActivation
from ...ops.poolers import MultiScaleRoIAlign
from .._api import entry
from .faster_rcnn import FasterRCNN, resnet50_pyramid, resnet50_v2_parts, without_eps

__all__ = ["MaskRCNN"]


class MaskRCNN(FasterRCNN):
    """Faster R-CNN that draws a mask of each object too: targets have "masks" (N, H, W), results "masks" (N, 1, H, W)."""

    def __init__(
        self,
        backbone: Any,
        num_classes: Any = None,
        *args: Any,
        mask_roi_pool: Any = None,
        mask_head: Any = None,
        mask_predictor: Any = None,
        **kwargs: Any,
    ) -> None:
        if num_classes is not None and mask_predictor is not None:
            raise ValueError("num_classes should be None when mask_predictor is specified")
        width = backbone.out_channels
        pool = mask_roi_pool or MultiScaleRoIAlign(["0", "1", "2", "3"], output_size=14, sampling_ratio=2)
        mask_head = mask_head or MaskRCNNHeads(width, (256, 256, 256, 256), 1)
        mask_predictor = mask_predictor or MaskRCNNPredictor(256, 256, num_classes)
        super().__init__(backbone, num_classes, *args, **kwargs)
        self.roi_heads.mask_roi_pool = pool
        self.roi_heads.mask_head = mask_head
        self.roi_heads.mask_predictor = mask_predictor


class MaskRCNNHeads(nn.Sequential):
    """Convolutions on a region."""

    _version = 2

    def __init__(self, in_channels: Any, layers: Any, dilation: Any, norm_layer: Any = None) -> None:
        blocks, width = [], in_channels
        for out in layers:
            blocks.append(
                Conv2dNormActivation(
                    width,
                    out,
                    kernel_size=3,
                    stride=1,
                    padding=dilation,
                    dilation=dilation,
                    norm_layer=norm_layer,
                )
            )
            width = out
        super().__init__(*blocks)
        initialize(self, conv=he_fan_out)

    def _load_from_state_dict(self, state_dict: Any, prefix: Any, local_metadata: Any, *args: Any) -> None:
        if local_metadata.get("version", None) is None or local_metadata["version"] < 2:
            for i in range(len(self)):  # files of the first version call them mask_fcn1, mask_fcn2 ...
                for kind in ("weight", "bias"):
                    old = f"{prefix}mask_fcn{i + 1}.{kind}"
                    if old in state_dict:
                        state_dict[f"{prefix}{i}.0.{kind}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class MaskRCNNPredictor(nn.Sequential):
    """Twice the size, then a plane for each class."""

    def __init__(self, in_channels: Any, dim_reduced: Any, num_classes: int) -> None:
        super().__init__(
            OrderedDict(
                conv5_mask=nn.ConvTranspose2d(in_channels, dim_reduced, 2, 2, 0),
                relu=nn.ReLU(inplace=True),
                mask_fcn_logits=nn.Conv2d(dim_reduced, num_classes, 1, 1, 0),
            )
        )
        for name, parameter in self.named_parameters():
            if "weight" in name:
                nn.init.kaiming_normal_(parameter, mode="fan_out", nonlinearity="relu")


@entry
def maskrcnn_resnet50_fpn(weights: Any = None, num_classes: int = 91, **kwargs: Any) -> Any:
    """Mask R-CNN on a pyramid of ResNet-50."""
    model = MaskRCNN(resnet50_pyramid(weights, kwargs), num_classes=num_classes, **kwargs)
    return without_eps(model) if weights is not None else model


@entry
def maskrcnn_resnet50_fpn_v2(weights: Any = None, num_classes: int = 91, **kwargs: Any) -> MaskRCNN:
    """Mask R-CNN with more and normalized layers in its heads."""
    backbone, parts = resnet50_v2_parts(weights, kwargs)
    head = MaskRCNNHeads(backbone.out_channels, [256, 256, 256, 256], 1, norm_layer=nn.BatchNorm2d)
    return MaskRCNN(backbone, num_classes=num_classes, mask_head=head, **parts, **kwargs)
