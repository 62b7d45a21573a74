"""RetinaNet (Lin et al., 2017)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import rushlight as rl
from rushlight import nn

from ...ops.feature_pyramid_network import LastLevelP6P7
from ...ops.losses import sigmoid_focal_loss
from ...ops.misc import Conv2dNormActivation
from .._api import entry
from ..resnet import resnet50
from ._boxes import BoxCoder, Matcher
from ._one_stage import IMAGENET_MEAN, IMAGENET_STD, OneStageDetector, box_loss, by_position, init_normal
from .anchor_utils import AnchorGenerator
from .backbone_utils import _resnet_fpn_extractor, check_backbone
from .faster_rcnn import resnet50_pyramid, trainable_resnet50, without_eps
from .transform import GeneralizedRCNNTransform

__all__ = ["RetinaNet"]


def _default_anchorgen() -> AnchorGenerator:
    sizes = tuple((x, int(x * 2 ** (1.0 / 3)), int(x * 2 ** (2.0 / 3))) for x in (32, 64, 128, 256, 512))
    return AnchorGenerator(sizes, ((0.5, 1.0, 2.0),) * len(sizes))


class RetinaNetHead(nn.Module):
    """Classes and boxes of anchors, each by its own convolutions."""

    def __init__(self, in_channels: Any, num_anchors: Any, num_classes: int, norm_layer: Any = None) -> None:
        super().__init__()
        sizes, norm = (in_channels, num_anchors), {"norm_layer": norm_layer}
        self.classification_head = RetinaNetClassificationHead(*sizes, num_classes, **norm)
        self.regression_head = RetinaNetRegressionHead(*sizes, **norm)

    def compute_loss(
        self, targets: Any, head_outputs: Any, anchors: Any, matched_idxs: Any
    ) -> dict[str, float]:
        classes = self.classification_head.compute_loss(targets, head_outputs, matched_idxs)
        boxes = self.regression_head.compute_loss(targets, head_outputs, anchors, matched_idxs)
        return {"classification": classes, "bbox_regression": boxes}

    def forward(self, x: rl.Tensor) -> Any:
        return {"cls_logits": self.classification_head(x), "bbox_regression": self.regression_head(x)}


class _Tower(nn.Module):
    """Four convolutions; files of the first version have no normalization and other indices."""

    _version = 2

    def __init__(self, in_channels: Any, norm_layer: Any) -> None:
        super().__init__()
        layers = [Conv2dNormActivation(in_channels, in_channels, norm_layer=norm_layer) for _ in range(4)]
        self.conv = nn.Sequential(*layers)

    def _load_from_state_dict(self, state_dict: Any, prefix: Any, local_metadata: Any, *args: Any) -> None:
        if local_metadata.get("version", None) is None or local_metadata["version"] < 2:
            for kind in ("weight", "bias"):
                for i in range(4):
                    old = f"{prefix}conv.{2 * i}.{kind}"
                    if old in state_dict:
                        state_dict[f"{prefix}conv.{i}.0.{kind}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class RetinaNetClassificationHead(_Tower):
    """The classes of anchors."""

    def __init__(
        self,
        in_channels: Any,
        num_anchors: Any,
        num_classes: int,
        prior_probability: float = 0.01,
        norm_layer: Any = None,
    ) -> None:
        super().__init__(in_channels, norm_layer)
        init_normal(self.conv.modules())
        self.cls_logits = nn.Conv2d(in_channels, num_anchors * num_classes, 3, stride=1, padding=1)
        nn.init.normal_(self.cls_logits.weight, std=0.01)
        nn.init.constant_(self.cls_logits.bias, -math.log((1 - prior_probability) / prior_probability))
        self.num_classes, self.num_anchors = num_classes, num_anchors
        self.BETWEEN_THRESHOLDS = Matcher.BETWEEN_THRESHOLDS

    def compute_loss(self, targets: Any, head_outputs: Any, matched_idxs: Any) -> float:
        """Focal loss of all anchors but those between object and background, over the number of objects."""
        losses = []
        for target, logits, matched in zip(targets, head_outputs["cls_logits"], matched_idxs):
            objects = matched >= 0
            wanted = rl.zeros_like(logits)
            wanted[objects, target["labels"][matched[objects]]] = 1.0
            valid = matched != self.BETWEEN_THRESHOLDS
            loss = sigmoid_focal_loss(logits[valid], wanted[valid], reduction="sum")
            losses.append(loss / max(1, int(objects.sum())))
        return sum(losses) / len(targets)

    def forward(self, x: rl.Tensor) -> Any:
        return rl.cat([by_position(self.cls_logits(self.conv(f)), self.num_classes) for f in x], dim=1)


class RetinaNetRegressionHead(_Tower):
    """The boxes of anchors."""

    def __init__(self, in_channels: Any, num_anchors: Any, norm_layer: Any = None) -> None:
        super().__init__(in_channels, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, 3, stride=1, padding=1)
        init_normal([self.bbox_reg])
        init_normal(self.conv.modules())
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self._loss_type = "l1"

    def compute_loss(self, targets: Any, head_outputs: Any, anchors: Any, matched_idxs: Any) -> float:
        losses = []
        parts = zip(targets, head_outputs["bbox_regression"], anchors, matched_idxs)
        for target, regression, boxes, matched in parts:
            objects = rl.where(matched >= 0)[0]
            truth = target["boxes"][matched[objects]]
            loss = box_loss(self._loss_type, self.box_coder, boxes[objects], truth, regression[objects])
            losses.append(loss / max(1, len(objects)))
        return sum(losses) / max(1, len(targets))

    def forward(self, x: rl.Tensor) -> Any:
        return rl.cat([by_position(self.bbox_reg(self.conv(f)), 4) for f in x], dim=1)


class RetinaNet(OneStageDetector):
    """Anchors on a pyramid, classified with focal loss. Targets and results are those of FasterRCNN."""

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
        proposal_matcher: Any = None,
        score_thresh: float = 0.05,
        nms_thresh: float = 0.5,
        detections_per_img: int = 300,
        fg_iou_thresh: float = 0.5,
        bg_iou_thresh: float = 0.4,
        topk_candidates: int = 1000,
        **kwargs: Any,
    ) -> None:
        check_backbone(backbone)
        if not isinstance(anchor_generator, (AnchorGenerator, type(None))):
            raise TypeError(
                f"anchor_generator should be of type AnchorGenerator or None instead of {type(anchor_generator)}"
            )
        super().__init__(backbone)
        self.anchor_generator = anchor_generator or _default_anchorgen()
        per_position = self.anchor_generator.num_anchors_per_location()[0]
        self.head = head or RetinaNetHead(backbone.out_channels, per_position, num_classes)
        self.proposal_matcher = proposal_matcher or Matcher(
            fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True
        )
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        mean, std = image_mean or IMAGENET_MEAN, image_std or IMAGENET_STD
        self.transform = GeneralizedRCNNTransform(min_size, max_size, mean, std, **kwargs)
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img, self.topk_candidates = detections_per_img, topk_candidates

    def compute_loss(self, targets: Any, head_outputs: Any, anchors: Any) -> Any:
        return self.head.compute_loss(targets, head_outputs, anchors, self._matches(targets, anchors))

    def _scores(self, outputs: Any) -> rl.Tensor:
        return rl.sigmoid(outputs["cls_logits"])

    def _decoded(self, regression: Any, anchors: Any) -> rl.Tensor:
        return self.box_coder.decode_single(regression, anchors)


@entry
def retinanet_resnet50_fpn(weights: Any = None, num_classes: int = 91, **kwargs: Any) -> Any:
    """RetinaNet on a pyramid of ResNet-50."""
    backbone = resnet50_pyramid(
        weights, kwargs, returned_layers=[2, 3, 4], extra_blocks=lambda: LastLevelP6P7(256, 256)
    )
    model = RetinaNet(backbone, num_classes, **kwargs)
    return without_eps(model) if weights is not None else model


@entry
def retinanet_resnet50_fpn_v2(weights: Any = None, num_classes: int = 91, **kwargs: Any) -> RetinaNet:
    """RetinaNet with normalized heads and a loss of overlaps (Li et al., 2021)."""
    first, layers = trainable_resnet50(weights, kwargs)
    backbone = _resnet_fpn_extractor(
        resnet50(weights=first), layers, returned_layers=[2, 3, 4], extra_blocks=LastLevelP6P7(2048, 256)
    )
    anchors = _default_anchorgen()
    per_position = anchors.num_anchors_per_location()[0]
    head = RetinaNetHead(
        backbone.out_channels, per_position, num_classes, norm_layer=partial(nn.GroupNorm, 32)
    )
    head.regression_head._loss_type = "giou"
    return RetinaNet(backbone, num_classes, anchor_generator=anchors, head=head, **kwargs)
