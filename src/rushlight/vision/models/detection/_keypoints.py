"""Key points as heat maps in boxes, and back."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.nn import functional as F


def keypoints_to_heatmap(keypoints: Any, rois: Any, heatmap_size: Any) -> tuple[Any, Any]:
    """(cells (N, K) of maps over the boxes, which of the points are visible and inside)"""
    start = rois[:, None, :2]
    scale = heatmap_size / (rois[:, None, 2:] - start)
    cell = ((keypoints[..., :2] - start) * scale).floor().long()
    at_end = keypoints[..., :2] == rois[:, None, 2:]  # the far edge belongs to the last cell
    cell = cell.masked_fill(at_end, heatmap_size - 1)
    inside = ((cell >= 0) & (cell < heatmap_size)).all(-1)
    valid = (inside & (keypoints[..., 2] > 0)).long()
    return (cell[..., 1] * heatmap_size + cell[..., 0]) * valid, valid


def keypointrcnn_loss(
    keypoint_logits: Any, proposals: Any, gt_keypoints: Any, keypoint_matched_idxs: Any
) -> Any:
    """Cross entropy of the cells of visible points."""
    n, k, h, w = keypoint_logits.shape
    if h != w:
        raise ValueError(
            f"keypoint_logits height and width should be equal, but their shape is {tuple(keypoint_logits.shape)}"
        )
    cells, valid = [], []
    for boxes, points, matched in zip(proposals, gt_keypoints, keypoint_matched_idxs):
        cell, good = keypoints_to_heatmap(points[matched], boxes, h)
        cells.append(cell.view(-1))
        valid.append(good.view(-1).to(rl.uint8))
    good = rl.where(rl.cat(valid))[0]
    if keypoint_logits.numel() == 0 or len(good) == 0:
        return keypoint_logits.sum() * 0
    return F.cross_entropy(keypoint_logits.view(n * k, h * w)[good], rl.cat(cells)[good])


def heatmaps_to_keypoints(maps: Any, rois: Any) -> tuple[Any, Any] | tuple[rl.Tensor, rl.Tensor]:
    """(points (N, K, 3), scores (N, K)): the maxima of the maps at the size of their boxes."""
    sizes = (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    points, scores = [], []
    for box, size, planes in zip(rois, sizes, maps):
        width, height = (int(s) for s in size.ceil())
        large = F.interpolate(planes[:, None], size=(height, width), mode="bicubic", align_corners=False)[
            :, 0
        ]
        flat = large.flatten(1)
        best = flat.argmax(dim=1)
        point = rl.stack([best % width, best // width], -1).float() + 0.5
        point = point * (size / rl.tensor([width, height], dtype=size.dtype, device=size.device)) + box[:2]
        points.append(rl.cat([point, point.new_ones(len(point), 1)], -1))
        scores.append(flat.gather(1, best[:, None])[:, 0])
    if not points:
        return maps.new_zeros((0, maps.shape[1], 3)), maps.new_zeros((0, maps.shape[1]))
    return rl.stack(points), rl.stack(scores)


def keypointrcnn_inference(x: rl.Tensor, boxes: Any) -> tuple[list[Any | rl.Tensor], list[Any | rl.Tensor]]:
    """(points, scores) of each image"""
    parts = x.split([len(b) for b in boxes], dim=0)
    found = [heatmaps_to_keypoints(maps, b) for maps, b in zip(parts, boxes)]
    return [points for points, _ in found], [scores for _, scores in found]
