"""Keypoint R-CNN (He et al., 2017): Faster R-CNN with a heat map for each key point."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn
from rushlight.nn import functional as F

from ..._init import he_fan_out, initialize
from ...ops import MultiScaleRoIAlign
from .._api import entry
from .faster_rcnn import FasterRCNN, resnet50_pyramid, without_eps

__all__ = ["KeypointRCNN"]


class KeypointRCNN(FasterRCNN):
    """Faster R-CNN that finds key points of objects too."""

    def __init__(
        self,
        backbone: Any,
        num_classes: Any = None,
        min_size: Any = None,
        max_size: Any = 1333,
        *,
        keypoint_roi_pool: Any = None,
        keypoint_head: Any = None,
        keypoint_predictor: Any = None,
        num_keypoints: Any = None,
        **kwargs: Any,
    ) -> None:
        pool = keypoint_roi_pool
        if pool is None:
            pool = MultiScaleRoIAlign(["0", "1", "2", "3"], output_size=14, sampling_ratio=2)
        elif not isinstance(pool, MultiScaleRoIAlign):
            raise TypeError(
                f"keypoint_roi_pool should be of type MultiScaleRoIAlign or None instead of {type(pool)}"
            )
        if keypoint_predictor is not None and num_keypoints is not None:
            raise ValueError("num_keypoints should be None when keypoint_predictor is specified")
        min_size = tuple(range(640, 801, 32)) if min_size is None else min_size
        if keypoint_head is None:
            keypoint_head = KeypointRCNNHeads(backbone.out_channels, (512,) * 8)
        if keypoint_predictor is None:
            keypoint_predictor = KeypointRCNNPredictor(512, 17 if num_keypoints is None else num_keypoints)
        super().__init__(backbone, num_classes, min_size, max_size, **kwargs)
        self.roi_heads.keypoint_roi_pool = pool
        self.roi_heads.keypoint_head = keypoint_head
        self.roi_heads.keypoint_predictor = keypoint_predictor


class KeypointRCNNHeads(nn.Sequential):
    """Convolutions of 3 x 3."""

    def __init__(self, in_channels: Any, layers: Any) -> None:
        parts = []
        for out_channels in layers:
            parts += [nn.Conv2d(in_channels, out_channels, 3, stride=1, padding=1), nn.ReLU(inplace=True)]
            in_channels = out_channels
        super().__init__(*parts)
        initialize(self, conv=he_fan_out)


class KeypointRCNNPredictor(nn.Module):
    """A heat map for each key point, at four times the size."""

    def __init__(self, in_channels: Any, num_keypoints: Any) -> None:
        super().__init__()
        self.out_channels, self.up_scale = num_keypoints, 2
        self.kps_score_lowres = nn.ConvTranspose2d(in_channels, num_keypoints, 4, stride=2, padding=1)
        initialize(self, conv=he_fan_out)

    def forward(self, x: Tensor) -> Any:
        return F.interpolate(
            self.kps_score_lowres(x),
            scale_factor=float(self.up_scale),
            mode="bilinear",
            align_corners=False,
            recompute_scale_factor=False,
        )


@entry
def keypointrcnn_resnet50_fpn(
    weights: Any = None, num_classes: int = 2, num_keypoints: int = 17, **kwargs: Any
) -> Any:
    """Keypoint R-CNN on a pyramid of ResNet-50."""
    backbone = resnet50_pyramid(weights, kwargs)
    model = KeypointRCNN(backbone, num_classes=num_classes, num_keypoints=num_keypoints, **kwargs)
    return without_eps(model) if weights is not None else model
