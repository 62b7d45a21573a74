"""Keypoint R-CNN (He et al., 2017): Faster R-CNN with a map of places for each key point."""

from rushlight import nn
from rushlight.nn import functional as F

from ...ops import MultiScaleRoIAlign
from .._api import entry
from .faster_rcnn import FasterRCNN, resnet50_pyramid, without_eps

__all__ = ["KeypointRCNN"]


class KeypointRCNN(FasterRCNN):
    """Faster R-CNN that finds key points of objects too."""

    def __init__(
        self,
        backbone,
        num_classes=None,
        min_size=None,
        max_size=1333,
        *,
        keypoint_roi_pool=None,
        keypoint_head=None,
        keypoint_predictor=None,
        num_keypoints=None,
        **kwargs,
    ):
        if not isinstance(keypoint_roi_pool, (MultiScaleRoIAlign, type(None))):
            raise TypeError(
                f"keypoint_roi_pool should be of type MultiScaleRoIAlign or None instead of {type(keypoint_roi_pool)}"
            )
        min_size = (640, 672, 704, 736, 768, 800) if min_size is None else min_size
        if num_keypoints is not None:
            if keypoint_predictor is not None:
                raise ValueError("num_keypoints should be None when keypoint_predictor is specified")
        else:
            num_keypoints = 17
        if keypoint_roi_pool is None:
            keypoint_roi_pool = MultiScaleRoIAlign(["0", "1", "2", "3"], output_size=14, sampling_ratio=2)
        if keypoint_head is None:
            keypoint_head = KeypointRCNNHeads(backbone.out_channels, (512,) * 8)
        if keypoint_predictor is None:
            keypoint_predictor = KeypointRCNNPredictor(512, num_keypoints)
        super().__init__(backbone, num_classes, min_size, max_size, **kwargs)
        self.roi_heads.keypoint_roi_pool = keypoint_roi_pool
        self.roi_heads.keypoint_head = keypoint_head
        self.roi_heads.keypoint_predictor = keypoint_predictor


class KeypointRCNNHeads(nn.Sequential):
    """Convolutions of 3 x 3."""

    def __init__(self, in_channels, layers):
        parts = []
        for out_channels in layers:
            parts += [nn.Conv2d(in_channels, out_channels, 3, stride=1, padding=1), nn.ReLU(inplace=True)]
            in_channels = out_channels
        super().__init__(*parts)
        for m in self.children():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                nn.init.constant_(m.bias, 0)


class KeypointRCNNPredictor(nn.Module):
    """A map of places for each key point, at four times the size."""

    def __init__(self, in_channels, num_keypoints):
        super().__init__()
        self.kps_score_lowres = nn.ConvTranspose2d(in_channels, num_keypoints, 4, stride=2, padding=1)
        nn.init.kaiming_normal_(self.kps_score_lowres.weight, mode="fan_out", nonlinearity="relu")
        nn.init.constant_(self.kps_score_lowres.bias, 0)
        self.up_scale = 2
        self.out_channels = num_keypoints

    def forward(self, x):
        return F.interpolate(
            self.kps_score_lowres(x),
            scale_factor=float(self.up_scale),
            mode="bilinear",
            align_corners=False,
            recompute_scale_factor=False,
        )


@entry
def keypointrcnn_resnet50_fpn(weights=None, num_classes=2, num_keypoints=17, **kwargs):
    """Keypoint R-CNN on a pyramid of ResNet-50."""
    backbone = resnet50_pyramid(weights, kwargs)
    model = KeypointRCNN(backbone, num_classes=num_classes, num_keypoints=num_keypoints, **kwargs)
    return without_eps(model) if weights is not None else model
