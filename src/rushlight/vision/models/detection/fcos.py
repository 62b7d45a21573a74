"""FCOS: fully convolutional one-stage detection (Tian et al., 2019)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F

from ...ops.feature_pyramid_network import LastLevelP6P7
from ...ops.losses import generalized_box_iou_loss, sigmoid_focal_loss
from .._api import entry
from ._one_stage import IMAGENET_MEAN, IMAGENET_STD, OneStageDetector, by_position, init_normal
from ._utils import BoxLinearCoder
from .anchor_utils import AnchorGenerator
from .backbone_utils import check_backbone
from .faster_rcnn import resnet50_pyramid
from .transform import GeneralizedRCNNTransform

__all__ = ["FCOS"]


class FCOSHead(nn.Module):
    """At every position: the class, the distances to the four sides, and how near the middle it is."""

    def __init__(self, in_channels: Any, num_anchors: Any, num_classes: int, num_convs: int = 4) -> None:
        super().__init__()
        self.box_coder = BoxLinearCoder(normalize_by_size=True)
        self.classification_head = FCOSClassificationHead(in_channels, num_anchors, num_classes, num_convs)
        self.regression_head = FCOSRegressionHead(in_channels, num_anchors, num_convs)

    def compute_loss(
        self, targets: Any, head_outputs: Any, anchors: Any, matched_idxs: Any
    ) -> dict[str, Any]:
        """Losses over the number of pixels inside of objects."""
        logits, regression, centred = (
            head_outputs[k] for k in ("cls_logits", "bbox_regression", "bbox_ctrness")
        )
        classes, truths = [], []
        for target, matched in zip(targets, matched_idxs):
            if len(target["labels"]) == 0:
                classes.append(target["labels"].new_zeros((len(matched),)))
                truths.append(target["boxes"].new_zeros((len(matched), 4)))
            else:
                classes.append(target["labels"][matched.clip(min=0)])
                truths.append(target["boxes"][matched.clip(min=0)])
            classes[-1] = classes[-1].masked_fill(matched < 0, -1)
        classes, truths, anchors = rl.stack(classes), rl.stack(truths), rl.stack(anchors)
        inside = classes >= 0
        count = max(1, int(inside.sum()))
        wanted = rl.zeros_like(logits)
        wanted[inside, classes[inside]] = 1.0
        boxes = self.box_coder.decode(regression, anchors)
        box_loss = generalized_box_iou_loss(boxes[inside], truths[inside], reduction="sum")
        sides = self.box_coder.encode(truths, anchors)  # a middle has equal distances to opposite sides
        across, down = sides[..., [0, 2]], sides[..., [1, 3]]
        if across.shape[1] == 0:
            middle = across.new_zeros(across.shape[:-1])
        else:
            ratios = (pair.min(dim=-1).values / pair.max(dim=-1).values for pair in (across, down))
            middle = rl.sqrt(math.prod(ratios))
        centre_loss = F.binary_cross_entropy_with_logits(
            centred.squeeze(dim=2)[inside], middle[inside], reduction="sum"
        )
        return {
            "classification": sigmoid_focal_loss(logits, wanted, reduction="sum") / count,
            "bbox_regression": box_loss / count,
            "bbox_ctrness": centre_loss / count,
        }

    def forward(self, x: rl.Tensor) -> Any:
        regression, centred = self.regression_head(x)
        return {
            "cls_logits": self.classification_head(x),
            "bbox_regression": regression,
            "bbox_ctrness": centred,
        }


def _tower(channels: Any, count: Any, norm_layer: Any) -> Any:
    layers = []
    for _ in range(count):
        layers += [nn.Conv2d(channels, channels, 3, stride=1, padding=1), norm_layer(channels), nn.ReLU()]
    return nn.Sequential(*layers)


class FCOSClassificationHead(nn.Module):
    """The class at every position."""

    def __init__(
        self,
        in_channels: Any,
        num_anchors: Any,
        num_classes: int,
        num_convs: int = 4,
        prior_probability: float = 0.01,
        norm_layer: Any = None,
    ) -> None:
        super().__init__()
        self.num_classes, self.num_anchors = num_classes, num_anchors
        self.conv = _tower(in_channels, num_convs, norm_layer or partial(nn.GroupNorm, 32))
        init_normal(self.conv.children())
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, 3, stride=1, padding=1)
        nn.init.normal_(self.cls_logits.weight, std=0.01)
        nn.init.constant_(self.cls_logits.bias, -math.log((1 - prior_probability) / prior_probability))

    def forward(self, x: rl.Tensor) -> Any:
        return rl.cat([by_position(self.cls_logits(self.conv(f)), self.num_classes) for f in x], dim=1)


class FCOSRegressionHead(nn.Module):
    """The sides, and how near the middle a position is."""

    def __init__(
        self, in_channels: Any, num_anchors: Any, num_convs: int = 4, norm_layer: Any = None
    ) -> None:
        super().__init__()
        self.conv = _tower(in_channels, num_convs, norm_layer or partial(nn.GroupNorm, 32))
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, 3, stride=1, padding=1)
        self.bbox_ctrness = nn.Conv2d(in_channels, num_anchors, 3, stride=1, padding=1)
        init_normal([self.bbox_reg, self.bbox_ctrness])
        init_normal(self.conv.children())

    def forward(self, x: rl.Tensor) -> Any:
        seen = [self.conv(f) for f in x]
        sides = rl.cat([by_position(F.relu(self.bbox_reg(f)), 4) for f in seen], dim=1)
        return sides, rl.cat([by_position(self.bbox_ctrness(f), 1) for f in seen], dim=1)


class FCOS(OneStageDetector):
    """Every position of a pyramid says what it is in, and how far the sides are. Targets and results are those of FasterRCNN."""

    def __init__(
        self,
        backbone: Any,
        num_classes: int,
        min_size: Any = 800,
        max_size: Any = 1333,
        image_mean: Any = None,
        image_std: Any = None,
        anchor_generator: Any = None,
        head: Any = None,
        center_sampling_radius: float = 1.5,
        score_thresh: float = 0.2,
        nms_thresh: float = 0.6,
        detections_per_img: int = 100,
        topk_candidates: int = 1000,
        **kwargs: Any,
    ) -> None:
        check_backbone(backbone)
        if not isinstance(anchor_generator, (AnchorGenerator, type(None))):
            raise TypeError(
                f"anchor_generator should be of type AnchorGenerator or None, instead got {type(anchor_generator)}"
            )
        super().__init__(backbone)
        if anchor_generator is None:
            anchor_generator = AnchorGenerator(((8,), (16,), (32,), (64,), (128,)), ((1.0,),) * 5)
        per_position = anchor_generator.num_anchors_per_location()[0]
        if per_position != 1:
            raise ValueError(
                f"anchor_generator.num_anchors_per_location()[0] should be 1 instead of {per_position}"
            )
        self.anchor_generator = anchor_generator
        self.head = head or FCOSHead(backbone.out_channels, per_position, num_classes)
        self.box_coder = BoxLinearCoder(normalize_by_size=True)
        mean, std = image_mean or IMAGENET_MEAN, image_std or IMAGENET_STD
        self.transform = GeneralizedRCNNTransform(min_size, max_size, mean, std, **kwargs)
        self.center_sampling_radius = center_sampling_radius
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates

    def _losses(self, targets: Any, outputs: Any, anchors: Any, positions: Any) -> Any:
        return self.compute_loss(targets, outputs, anchors, positions)

    def compute_loss(self, targets: Any, head_outputs: Any, anchors: Any, num_anchors_per_level: Any) -> Any:
        matched = [
            self._assigned(boxes, target["boxes"], num_anchors_per_level)
            for boxes, target in zip(anchors, targets)
        ]
        return self.head.compute_loss(targets, head_outputs, anchors, matched)

    def _assigned(self, anchors: Any, truth: Any, per_level: Any) -> Any:
        """For each pixel the smallest truth of its level's sizes whose middle is near, or -1."""
        if truth.numel() == 0:
            return rl.full((len(anchors),), -1, dtype=rl.int64)
        middles, positions = (truth[:, :2] + truth[:, 2:]) / 2, (anchors[:, :2] + anchors[:, 2:]) / 2
        size = anchors[:, 2] - anchors[:, 0]
        away = (positions[:, None] - middles[None]).abs().max(dim=2).values
        match = away < self.center_sampling_radius * size[:, None]
        sides = rl.cat(
            (positions[:, None] - truth[None, :, :2], truth[None, :, 2:] - positions[:, None]), dim=2
        )
        match &= sides.min(dim=2).values > 0
        lower, upper = size * 4, size * 8
        lower[: per_level[0]] = 0
        upper[-per_level[-1] :] = float("inf")
        furthest = sides.max(dim=2).values
        match &= (furthest > lower[:, None]) & (furthest < upper[:, None])
        area = (truth[:, 2] - truth[:, 0]) * (truth[:, 3] - truth[:, 1])
        best, index = (match.to(rl.float32) * (1e8 - area[None])).max(dim=1)
        index[best < 1e-5] = -1
        return index

    def _scores(self, outputs: Any) -> rl.Tensor:
        return rl.sqrt(rl.sigmoid(outputs["cls_logits"]) * rl.sigmoid(outputs["bbox_ctrness"]))

    def _decoded(self, regression: Any, anchors: Any) -> Any:
        return self.box_coder.decode(regression, anchors)


@entry
def fcos_resnet50_fpn(weights: Any = None, num_classes: int = 91, **kwargs: Any) -> FCOS:
    """FCOS on a pyramid of ResNet-50."""
    backbone = resnet50_pyramid(
        weights, kwargs, returned_layers=[2, 3, 4], extra_blocks=lambda: LastLevelP6P7(256, 256)
    )
    return FCOS(backbone, num_classes, **kwargs)
