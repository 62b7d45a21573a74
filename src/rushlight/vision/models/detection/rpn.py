"""Region proposals (Ren et al., 2015)."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F

from ..._init import initialize, normal
from ...ops import boxes as box_ops
from ...ops.misc import Conv2dNormActivation
from ._boxes import BalancedPositiveNegativeSampler, BoxCoder, Matcher
from .anchor_utils import AnchorGenerator as AnchorGenerator


class RPNHead(nn.Module):
    """At every position of a feature map: is each anchor an object, and how far off is it."""

    _version = 2

    def __init__(self, in_channels: Any, num_anchors: Any, conv_depth: int = 1) -> None:
        super().__init__()
        convs = [
            Conv2dNormActivation(in_channels, in_channels, kernel_size=3, norm_layer=None)
            for _ in range(conv_depth)
        ]
        self.conv = nn.Sequential(*convs)
        outputs = (num_anchors, 4 * num_anchors)
        self.cls_logits, self.bbox_pred = (nn.Conv2d(in_channels, out, kernel_size=1) for out in outputs)
        initialize(self, conv=normal(0.01))

    def _load_from_state_dict(self, state_dict: Any, prefix: Any, local_metadata: Any, *args: Any) -> None:
        if local_metadata.get("version", None) is None or local_metadata["version"] < 2:
            for kind in ("weight", "bias"):  # files of the first version have one plain convolution
                if f"{prefix}conv.{kind}" in state_dict:
                    state_dict[f"{prefix}conv.0.0.{kind}"] = state_dict.pop(f"{prefix}conv.{kind}")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def forward(self, x: rl.Tensor) -> Any:
        seen = [self.conv(feature) for feature in x]
        return [self.cls_logits(t) for t in seen], [self.bbox_pred(t) for t in seen]


def _by_position(layer: Any, width: Any) -> Any:
    """(N, A * width, H, W) -> (N, H * W * A, width)"""
    n, _, h, w = layer.shape
    return layer.view(n, -1, width, h, w).permute(0, 3, 4, 1, 2).reshape(n, -1, width)


class RegionProposalNetwork(nn.Module):
    """Proposals: the anchors that look most like objects, moved, without those that overlap better ones."""

    def __init__(
        self,
        anchor_generator: Any,
        head: Any,
        fg_iou_thresh: Any,
        bg_iou_thresh: Any,
        batch_size_per_image: Any,
        positive_fraction: Any,
        pre_nms_top_n: Any,
        post_nms_top_n: Any,
        nms_thresh: float,
        score_thresh: float = 0.0,
    ) -> None:
        super().__init__()
        self.anchor_generator = anchor_generator
        self.head = head
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self.proposal_matcher = Matcher(fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True)
        self.fg_bg_sampler = BalancedPositiveNegativeSampler(batch_size_per_image, positive_fraction)
        self._pre_nms_top_n = pre_nms_top_n
        self._post_nms_top_n = post_nms_top_n
        self.nms_thresh = nms_thresh
        self.score_thresh = score_thresh
        self.min_size = 1e-3

    def forward(self, images: Any, features: Any, targets: Any = None) -> Any:
        """(proposals of each image, losses)"""
        features = list(features.values())
        objectness, deltas = self.head(features)
        anchors = self.anchor_generator(images, features)
        per_level = [o[0].numel() for o in objectness]
        objectness = rl.cat([_by_position(o, 1) for o in objectness], dim=1).flatten(0, -2)
        deltas = rl.cat([_by_position(d, 4) for d in deltas], dim=1).reshape(-1, 4)
        proposals = self.box_coder.decode(deltas.detach(), anchors).view(len(anchors), -1, 4)
        boxes = self._filtered(proposals, objectness.detach(), images.image_sizes, per_level)
        if not self.training:
            return boxes, {}
        if targets is None:
            raise ValueError("targets should not be None")
        labels, matched = self.assign_targets_to_anchors(anchors, targets)
        wanted = self.box_coder.encode(matched, anchors)
        return boxes, self._losses(objectness, deltas, labels, wanted)

    def _filtered(self, proposals: Any, objectness: Any, image_sizes: Any, per_level: Any) -> list[Any]:
        mode = "training" if self.training else "testing"
        before, after = self._pre_nms_top_n[mode], self._post_nms_top_n[mode]
        count = len(proposals)
        objectness = objectness.reshape(count, -1)
        levels = rl.cat([rl.full((n,), i, dtype=rl.int64) for i, n in enumerate(per_level)])
        best, offset = [], 0
        for part in objectness.split(per_level, 1):
            n = min(before, part.shape[1])
            best.append(part.topk(n, dim=1).indices + offset)
            offset += part.shape[1]
        best = rl.cat(best, dim=1)
        found = []
        for i in range(count):
            scores, boxes, level = rl.sigmoid(objectness[i, best[i]]), proposals[i, best[i]], levels[best[i]]
            boxes = box_ops.clip_boxes_to_image(boxes, image_sizes[i])
            keep = box_ops.remove_small_boxes(boxes, self.min_size)
            boxes, scores, level = boxes[keep], scores[keep], level[keep]
            keep = rl.where(scores >= self.score_thresh)[0]
            boxes, scores, level = boxes[keep], scores[keep], level[keep]
            found.append(boxes[box_ops.batched_nms(boxes, scores, level, self.nms_thresh)[:after]])
        return found

    def assign_targets_to_anchors(self, anchors: Any, targets: Any) -> tuple[list[Any], list[Any]]:
        """(1 for objects, 0 for background, -1 for neither; boxes of the matched truths) of each image's anchors."""
        labels, matched = [], []
        for boxes, target in zip(anchors, targets):
            truth = target["boxes"]
            if truth.numel() == 0:
                matched.append(rl.zeros_like(boxes))
                labels.append(rl.zeros((boxes.shape[0],)))
                continue
            index = self.proposal_matcher(box_ops.box_iou(truth, boxes))
            matched.append(truth[index.clamp(min=0)])
            label = (index >= 0).float()
            label[index == Matcher.BETWEEN_THRESHOLDS] = -1.0
            labels.append(label)
        return labels, matched

    def _losses(self, objectness: Any, deltas: Any, labels: Any, wanted: Any) -> dict[str, rl.Tensor]:
        positive, negative = self.fg_bg_sampler(labels)
        positive, negative = rl.where(rl.cat(positive))[0], rl.where(rl.cat(negative))[0]
        sampled = rl.cat([positive, negative])
        objectness, labels, wanted = objectness.flatten(), rl.cat(labels), rl.cat(list(wanted))
        box = (
            F.smooth_l1_loss(deltas[positive], wanted[positive], beta=1 / 9, reduction="sum")
            / sampled.numel()
        )
        return {
            "loss_objectness": F.binary_cross_entropy_with_logits(objectness[sampled], labels[sampled]),
            "loss_rpn_box_reg": box,
        }
