"""Boxes as differences from anchors, and which anchors are examples of what."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl

_LARGEST_GROWTH = math.log(1000.0 / 16)


class BoxCoder:
    """Boxes as differences from other boxes: shifts of the middle in sizes, logarithms of ratios of sizes, each times a weight."""

    def __init__(self, weights: Any, bbox_xform_clip: Any = _LARGEST_GROWTH) -> None:
        self.weights = weights
        self.bbox_xform_clip = bbox_xform_clip  # sizes may not grow further

    def encode(self, reference_boxes: Any, proposals: Any) -> tuple[rl.Tensor, ...]:
        """Differences of lists of boxes from lists of proposals."""
        counts = [len(b) for b in reference_boxes]
        return self.encode_single(rl.cat(reference_boxes), rl.cat(proposals)).split(counts, 0)

    def encode_single(self, reference_boxes: Any, proposals: Any) -> rl.Tensor:
        weights = rl.as_tensor(self.weights, dtype=reference_boxes.dtype)

        def middle_and_size(boxes: Any) -> Any:
            size = boxes[:, 2:] - boxes[:, :2]
            return boxes[:, :2] + 0.5 * size, size

        (middle, size), (to, to_size) = middle_and_size(proposals), middle_and_size(reference_boxes)
        return rl.cat(((to - middle) / size * weights[:2], rl.log(to_size / size) * weights[2:]), dim=1)

    def decode(self, rel_codes: Any, boxes: Any) -> rl.Tensor:
        """(N, classes, 4) boxes of differences (N, classes * 4) from lists of boxes."""
        count = sum(len(b) for b in boxes)
        out = self.decode_single(rel_codes.reshape(count, -1) if count else rel_codes, rl.cat(boxes))
        return out.reshape(count, -1, 4) if count else out

    def decode_single(self, rel_codes: Any, boxes: Any) -> rl.Tensor:
        boxes = boxes.to(rel_codes.dtype)
        size = boxes[:, 2:] - boxes[:, :2]
        middle = boxes[:, :2] + 0.5 * size
        weights = rl.tensor(self.weights, dtype=rel_codes.dtype)
        codes = rel_codes.reshape(len(boxes), rel_codes.shape[-1] // 4, 4) / weights
        to = codes[..., :2] * size[:, None] + middle[:, None]
        half = rl.exp(codes[..., 2:].clamp(max=self.bbox_xform_clip)) * size[:, None] * 0.5
        return rl.cat((to - half, to + half), dim=-1).flatten(1)


class Matcher:
    """For each prediction the truth it overlaps most: its index, or BELOW (too little), or BETWEEN."""

    BELOW_LOW_THRESHOLD = -1
    BETWEEN_THRESHOLDS = -2

    def __init__(
        self, high_threshold: Any, low_threshold: Any, allow_low_quality_matches: bool = False
    ) -> None:
        if low_threshold > high_threshold:
            raise ValueError("low_threshold should be <= high_threshold")
        self.high_threshold = high_threshold
        self.low_threshold = low_threshold
        self.allow_low_quality_matches = allow_low_quality_matches

    def __call__(self, match_quality_matrix: Any) -> Any:
        """(truths, predictions) -> (predictions)"""
        if match_quality_matrix.numel() == 0:
            raise ValueError(
                "No ground-truth boxes or no proposal boxes available for one of the images during training"
            )
        best, matches = match_quality_matrix.max(dim=0)
        all_matches = matches.clone()
        matches[best < self.low_threshold] = self.BELOW_LOW_THRESHOLD
        matches[(best >= self.low_threshold) & (best < self.high_threshold)] = self.BETWEEN_THRESHOLDS
        if (
            self.allow_low_quality_matches
        ):  # every truth keeps its best predictions, however little they overlap
            highest = match_quality_matrix.max(dim=1).values
            kept = rl.where(match_quality_matrix == highest[:, None])[1]
            matches[kept] = all_matches[kept]
        return matches


class BalancedPositiveNegativeSampler:
    """Drawn examples of each image, at most a fraction of them positive."""

    def __init__(self, batch_size_per_image: Any, positive_fraction: Any) -> None:
        self.batch_size_per_image = batch_size_per_image
        self.positive_fraction = positive_fraction

    def __call__(self, matched_idxs: Any) -> tuple[list[rl.Tensor], list[rl.Tensor]]:
        """(masks of positive, masks of negative examples) of labels >= 1, 0; -1 is neither."""
        positives: list[rl.Tensor] = []
        negatives: list[rl.Tensor] = []
        for labels in matched_idxs:
            good, bad = rl.where(labels >= 1)[0], rl.where(labels == 0)[0]
            count = min(good.numel(), int(self.batch_size_per_image * self.positive_fraction))
            rest = min(bad.numel(), self.batch_size_per_image - count)
            chosen = good[rl.randperm(good.numel())[:count]], bad[rl.randperm(bad.numel())[:rest]]
            for found, index in zip((positives, negatives), chosen):
                mask = rl.zeros_like(labels, dtype=rl.uint8)
                mask[index] = 1
                found.append(mask)
        return positives, negatives
