"""What stands in proposed regions: classes, boxes, masks."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F

from ...ops import boxes as box_ops
from ...ops.roi import roi_align
from ._boxes import BalancedPositiveNegativeSampler, BoxCoder, Matcher
from ._keypoints import heatmaps_to_keypoints as heatmaps_to_keypoints
from ._keypoints import keypointrcnn_inference, keypointrcnn_loss
from ._keypoints import keypoints_to_heatmap as keypoints_to_heatmap


def fastrcnn_loss(
    class_logits: Any, box_regression: Any, labels: Any, regression_targets: Any
) -> tuple[rl.Tensor, Any]:
    """(loss of classes, loss of boxes)"""
    labels, wanted = rl.cat(labels), rl.cat(list(regression_targets))
    positive = rl.where(labels > 0)[0]
    boxes = box_regression.reshape(class_logits.shape[0], -1, 4)[positive, labels[positive]]
    box_loss = F.smooth_l1_loss(boxes, wanted[positive], beta=1 / 9, reduction="sum") / labels.numel()
    return F.cross_entropy(class_logits, labels), box_loss


def maskrcnn_loss(
    mask_logits: Any, proposals: Any, gt_masks: Any, gt_labels: Any, mask_matched_idxs: Any
) -> Any:
    """The loss of masks: of each proposal the plane of its class, against the truth within it."""
    size = mask_logits.shape[-1]
    labels = rl.cat([label[index] for label, index in zip(gt_labels, mask_matched_idxs)])
    targets = []
    for masks, boxes, index in zip(gt_masks, proposals, mask_matched_idxs):
        rois = rl.cat([index[:, None].to(boxes.dtype), boxes], dim=1)
        targets.append(roi_align(masks[:, None].to(boxes.dtype), rois, (size, size), 1.0)[:, 0])
    targets = rl.cat(targets)
    if targets.numel() == 0:
        return mask_logits.sum() * 0
    return F.binary_cross_entropy_with_logits(mask_logits[rl.arange(labels.shape[0]), labels], targets)


def _grown(boxes: Any, scale: Any) -> rl.Tensor:
    middle, half = (boxes[:, :2] + boxes[:, 2:]) * 0.5, (boxes[:, 2:] - boxes[:, :2]) * 0.5 * scale
    return rl.cat((middle - half, middle + half), dim=1)


def paste_masks_in_image(masks: Any, boxes: Any, img_shape: Any, padding: int = 1) -> Any:
    """Masks (N, 1, m, m) of boxes as masks (N, 1, H, W) of the image."""
    height, width = img_shape
    size = masks.shape[-1]
    masks = F.pad(masks, (padding,) * 4)
    boxes = _grown(boxes, float(size + 2 * padding) / size).to(rl.int64)
    out = []
    for mask, (x1, y1, x2, y2) in zip(masks[:, 0], boxes.tolist()):
        w, h = max(x2 - x1 + 1, 1), max(y2 - y1 + 1, 1)
        mask = F.interpolate(mask[None, None], size=(h, w), mode="bilinear", align_corners=False)[0, 0]
        whole = mask.new_zeros((height, width))
        left, top, right, bottom = max(x1, 0), max(y1, 0), min(x2 + 1, width), min(y2 + 1, height)
        if right > left and bottom > top:
            whole[top:bottom, left:right] = mask[top - y1 : bottom - y1, left - x1 : right - x1]
        out.append(whole)
    return rl.stack(out)[:, None] if out else masks.new_zeros((0, 1, height, width))


class RoIHeads(nn.Module):
    """Classifies regions, mends their boxes, and draws their masks where there is a mask_head."""

    box_roi_pool: Any
    box_head: Any
    box_predictor: Any
    mask_roi_pool: Any
    mask_head: Any
    mask_predictor: Any
    keypoint_roi_pool: Any
    keypoint_head: Any
    keypoint_predictor: Any

    def __init__(
        self,
        box_roi_pool: Any,
        box_head: Any,
        box_predictor: Any,
        fg_iou_thresh: Any,
        bg_iou_thresh: Any,
        batch_size_per_image: Any,
        positive_fraction: Any,
        bbox_reg_weights: Any,
        score_thresh: float,
        nms_thresh: float,
        detections_per_img: Any,
        mask_roi_pool: Any = None,
        mask_head: Any = None,
        mask_predictor: Any = None,
        keypoint_roi_pool: Any = None,
        keypoint_head: Any = None,
        keypoint_predictor: Any = None,
    ) -> None:
        super().__init__()
        self.box_coder = BoxCoder((10.0, 10.0, 5.0, 5.0) if bbox_reg_weights is None else bbox_reg_weights)
        self.proposal_matcher = Matcher(fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=False)
        self.fg_bg_sampler = BalancedPositiveNegativeSampler(batch_size_per_image, positive_fraction)
        self.score_thresh, self.nms_thresh = score_thresh, nms_thresh
        self.detections_per_img = detections_per_img
        branches = {
            "box": (box_roi_pool, box_head, box_predictor),
            "mask": (mask_roi_pool, mask_head, mask_predictor),
            "keypoint": (keypoint_roi_pool, keypoint_head, keypoint_predictor),
        }
        for branch, parts in branches.items():
            for part, module in zip(("roi_pool", "head", "predictor"), parts):
                setattr(self, f"{branch}_{part}", module)

    def has_keypoint(self) -> bool:
        return None not in (self.keypoint_roi_pool, self.keypoint_head, self.keypoint_predictor)

    def has_mask(self) -> bool:
        return None not in (self.mask_roi_pool, self.mask_head, self.mask_predictor)

    def forward(self, features: Any, proposals: Any, image_shapes: Any, targets: Any = None) -> Any:
        """(detections of each image, losses)"""
        labels = wanted = matched = None
        if self.training:
            proposals, matched, labels, wanted = self._samples(proposals, targets)
        seen = self.box_head(self.box_roi_pool(features, proposals, image_shapes))
        class_logits, box_regression = self.box_predictor(seen)
        result, losses = [], {}
        if self.training:
            losses["loss_classifier"], losses["loss_box_reg"] = fastrcnn_loss(
                class_logits, box_regression, labels, wanted
            )
        else:
            found = self._detections(class_logits, box_regression, proposals, image_shapes)
            result = [{"boxes": b, "labels": c, "scores": s} for b, s, c in found]
        if self.has_mask():
            self._masks(features, proposals, image_shapes, targets, matched, labels, result, losses)
        if self.has_keypoint():
            self._keypoints(features, proposals, image_shapes, targets, matched, labels, result, losses)
        return result, losses

    def assign_targets_to_proposals(
        self, proposals: Any, gt_boxes: Any, gt_labels: Any
    ) -> tuple[list[Any], list[Any]]:
        """(truths, labels) of the proposals of each image: 0 is background, -1 is neither."""
        indices, labels = [], []
        for boxes, truth, kinds in zip(proposals, gt_boxes, gt_labels):
            if truth.numel() == 0:
                indices.append(rl.zeros((boxes.shape[0],), dtype=rl.int64))
                labels.append(rl.zeros((boxes.shape[0],), dtype=rl.int64))
                continue
            match = self.proposal_matcher(box_ops.box_iou(truth, boxes))
            index = match.clamp(min=0)
            label = kinds[index].to(rl.int64)
            label[match == Matcher.BELOW_LOW_THRESHOLD] = 0
            label[match == Matcher.BETWEEN_THRESHOLDS] = -1
            indices.append(index)
            labels.append(label)
        return indices, labels

    def _samples(
        self, proposals: Any, targets: Any
    ) -> tuple[Any, list[Any], list[Any], tuple[rl.Tensor, ...]]:
        """Drawn proposals of each image, with the truths they match, their labels, and how far off they are."""
        if targets is None:
            raise ValueError("targets should not be None")
        proposals = [rl.cat((p, t["boxes"].to(p.dtype))) for p, t in zip(proposals, targets)]
        indices, labels = self.assign_targets_to_proposals(
            proposals,
            [t["boxes"].to(p.dtype) for p, t in zip(proposals, targets)],
            [t["labels"] for t in targets],
        )
        positive, negative = self.fg_bg_sampler(labels)
        truths = []
        for i, target in enumerate(targets):
            chosen = rl.where(positive[i] | negative[i])[0]
            proposals[i], labels[i], indices[i] = proposals[i][chosen], labels[i][chosen], indices[i][chosen]
            truth = target["boxes"].to(proposals[i].dtype)
            truths.append((truth if truth.numel() else truth.new_zeros((1, 4)))[indices[i]])
        return proposals, indices, labels, self.box_coder.encode(truths, proposals)

    def _detections(
        self, class_logits: Any, box_regression: Any, proposals: Any, image_shapes: Any
    ) -> list[Any]:
        """(boxes, scores, labels) of each image"""
        classes = class_logits.shape[-1]
        counts = [len(p) for p in proposals]
        boxes = self.box_coder.decode(box_regression, proposals).split(counts, 0)
        scores = F.softmax(class_logits, -1).split(counts, 0)
        found = []
        for box, score, shape in zip(boxes, scores, image_shapes):
            box = box_ops.clip_boxes_to_image(box, shape)[:, 1:].reshape(-1, 4)  # without the background
            label = rl.arange(classes).view(1, -1).expand_as(score)[:, 1:].reshape(-1)
            score = score[:, 1:].reshape(-1)
            keep = rl.where(score > self.score_thresh)[0]
            box, score, label = box[keep], score[keep], label[keep]
            keep = box_ops.remove_small_boxes(box, min_size=1e-2)
            box, score, label = box[keep], score[keep], label[keep]
            keep = box_ops.batched_nms(box, score, label, self.nms_thresh)[: self.detections_per_img]
            found.append((box[keep], score[keep], label[keep]))
        return found

    def _keypoints(
        self,
        features: Any,
        proposals: Any,
        image_shapes: Any,
        targets: Any,
        matched: Any,
        labels: Any,
        result: Any,
        losses: Any,
    ) -> None:
        if self.training:
            chosen = [rl.where(label > 0)[0] for label in labels]
            boxes = [p[i] for p, i in zip(proposals, chosen)]
            indices = [m[i] for m, i in zip(matched, chosen)]
        else:
            boxes = [r["boxes"] for r in result]
        seen = self.keypoint_head(self.keypoint_roi_pool(features, boxes, image_shapes))
        logits = self.keypoint_predictor(seen)
        if self.training:
            losses["loss_keypoint"] = keypointrcnn_loss(
                logits, boxes, [t["keypoints"] for t in targets], indices
            )
            return
        for one, points, scores in zip(result, *keypointrcnn_inference(logits, boxes)):
            one["keypoints"], one["keypoints_scores"] = points, scores

    def _masks(
        self,
        features: Any,
        proposals: Any,
        image_shapes: Any,
        targets: Any,
        matched: Any,
        labels: Any,
        result: Any,
        losses: Any,
    ) -> None:
        if self.training:
            chosen = [rl.where(label > 0)[0] for label in labels]
            boxes = [p[i] for p, i in zip(proposals, chosen)]
            indices = [m[i] for m, i in zip(matched, chosen)]
        else:
            boxes = [r["boxes"] for r in result]
        logits = self.mask_predictor(self.mask_head(self.mask_roi_pool(features, boxes, image_shapes)))
        if self.training:
            truths, kinds = [t["masks"] for t in targets], [t["labels"] for t in targets]
            losses["loss_mask"] = maskrcnn_loss(logits, boxes, truths, kinds, indices)
            return
        kinds = rl.cat([r["labels"] for r in result])
        chances = logits.sigmoid()[rl.arange(len(kinds)), kinds][:, None]
        for one, masks in zip(result, chances.split([len(b) for b in boxes], 0)):
            one["masks"] = masks
