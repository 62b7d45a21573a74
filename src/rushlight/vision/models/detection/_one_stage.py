"""What detectors without proposals share: a backbone, a head on its maps, and anchors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.jit import is_scripting
from rushlight.nn import functional as F

from ...ops import boxes as box_ops
from ...ops.losses import complete_box_iou_loss, distance_box_iou_loss, generalized_box_iou_loss
from .generalized_rcnn import GeneralizedRCNN

IMAGENET_MEAN, IMAGENET_STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def init_normal(layers: Any, std: float = 0.01) -> None:
    """Weights of convolutions from a normal distribution, biases 0."""
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, std=std)
            if layer.bias is not None:
                nn.init.constant_(layer.bias, 0)


def by_position(layer: Any, width: Any) -> Any:
    """(N, A * width, H, W) -> (N, H * W * A, width)"""
    n, _, h, w = layer.shape
    return layer.view(n, -1, width, h, w).permute(0, 3, 4, 1, 2).reshape(n, -1, width)


def box_loss(kind: Any, box_coder: Any, anchors: Any, truth: Any, regression: Any, beta: float = 1.0) -> Any:
    """The summed loss of predicted differences from anchors: of the values themselves, or of the overlap of boxes."""
    if kind in ("l1", "smooth_l1"):
        wanted = box_coder.encode_single(truth, anchors)
        if kind == "l1":
            return F.l1_loss(regression, wanted, reduction="sum")
        return F.smooth_l1_loss(regression, wanted, reduction="sum", beta=beta)
    overlaps = {
        "ciou": complete_box_iou_loss,
        "diou": distance_box_iou_loss,
        "giou": generalized_box_iou_loss,
    }
    if kind not in overlaps:
        raise NotImplementedError(
            f"Unsupported loss {kind}: it is 'l1', 'smooth_l1', 'ciou', 'diou' or 'giou'"
        )
    return overlaps[kind](box_coder.decode_single(regression, anchors), truth, reduction="sum", eps=1e-7)


def best_candidates(scores: Any, threshold: Any, most: Any) -> tuple[Any, rl.Tensor]:
    """(scores, indices) of the best of a flat tensor: above a threshold, at most so many, best first."""
    indices = rl.where(scores > threshold)[0]
    scores, order = scores[indices].topk(min(most, len(indices)))
    return scores, indices[order]


class OneStageDetector(nn.Module):
    """Losses of targets in training, {"boxes", "scores", "labels"} of each image in evaluation."""

    # What each detector has of its own:
    head: Any
    anchor_generator: nn.Module
    transform: Any
    compute_loss: Callable[..., Any]
    proposal_matcher: Callable[..., Any]
    score_thresh: float
    topk_candidates: int
    _scores: Callable[..., Any]
    _decoded: Callable[..., Any]

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, images: Any, targets: Any = None) -> Any:
        if self.training:
            GeneralizedRCNN._check(targets)
        sizes = [(image.shape[-2], image.shape[-1]) for image in images]
        for size in sizes:
            rl._assert(
                len(size) == 2,
                f"expecting the last two dimensions of the Tensor to be H and W instead got {size}",
            )
        images, targets = self.transform(images, targets)
        GeneralizedRCNN._check_sizes(targets)
        features = self.backbone(images.tensors)
        if isinstance(features, rl.Tensor):
            features = OrderedDict([("0", features)])
        features = list(features.values())
        outputs = self.head(features)
        anchors = self.anchor_generator(images, features)
        losses, found = {}, []
        if self.training:
            losses = self._losses(targets, outputs, anchors, [f.shape[2] * f.shape[3] for f in features])
        else:
            found = self._detections(outputs, anchors, images.image_sizes, features)
            found = self.transform.postprocess(found, images.image_sizes, sizes)
        if is_scripting():
            return losses, found
        return losses if self.training else found

    def _losses(self, targets: Any, outputs: Any, anchors: Any, positions: Any) -> Any:
        return self.compute_loss(targets, outputs, anchors)

    def _matches(self, targets: Any, anchors: Any) -> list[Any]:
        """For the anchors of each image the truths that they match, negative for none."""
        found = []
        for boxes, target in zip(anchors, targets):
            if target["boxes"].numel() == 0:
                found.append(rl.full((len(boxes),), -1, dtype=rl.int64))
            else:
                found.append(self.proposal_matcher(box_ops.box_iou(target["boxes"], boxes)))
        return found

    def _detections(self, outputs: Any, anchors: Any, image_sizes: Any, features: Any) -> list[Any]:
        """The best candidates of each level, without those that overlap better ones of their class."""
        positions = [f.shape[2] * f.shape[3] for f in features]
        per_position = outputs["cls_logits"].shape[1] // sum(positions)
        counts = [n * per_position for n in positions]
        levels = {name: output.split(counts, dim=1) for name, output in outputs.items()}
        found = []
        for i, (boxes, size) in enumerate(zip(anchors, image_sizes)):
            parts = []
            for level, cells in enumerate(boxes.split(counts)):
                one = {name: output[level][i] for name, output in levels.items()}
                classes = one["cls_logits"].shape[-1]
                scores, best = best_candidates(
                    self._scores(one).flatten(), self.score_thresh, self.topk_candidates
                )
                where = best // classes
                decoded = self._decoded(one["bbox_regression"][where], cells[where])
                parts.append((box_ops.clip_boxes_to_image(decoded, size), scores, best % classes))
            boxes, scores, labels = (rl.cat(values) for values in zip(*parts))
            found.append(self._kept(boxes, scores, labels))
        return found

    def _kept(self, boxes: Any, scores: Any, labels: Any) -> dict[str, Any]:
        keep = box_ops.batched_nms(boxes, scores, labels, self.nms_thresh)[: self.detections_per_img]
        return {"boxes": boxes[keep], "scores": scores[keep], "labels": labels[keep]}
