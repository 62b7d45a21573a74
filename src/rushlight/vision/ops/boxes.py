"""Boxes (x1, y1, x2, y2): overlaps, formats, suppression."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import rushlight as rl

__all__ = [
    "batched_nms",
    "box_area",
    "box_convert",
    "box_iou",
    "clip_boxes_to_image",
    "complete_box_iou",
    "distance_box_iou",
    "generalized_box_iou",
    "masks_to_boxes",
    "nms",
    "remove_small_boxes",
]


def nms(boxes, scores, iou_threshold):
    """The indices of the boxes that stay when each box removes those of lower score that overlap it by more than the
    threshold; highest scores first.
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise RuntimeError(f"boxes should be a 2d tensor of shape (N, 4), got {tuple(boxes.shape)}")
    if scores.ndim != 1 or scores.shape[0] != boxes.shape[0]:
        raise RuntimeError(
            f"scores should be a 1d tensor with one number for each of {boxes.shape[0]} boxes, got {tuple(scores.shape)}"
        )
    if boxes.is_quantized or scores.is_quantized:
        return nms(_dequantized(boxes), _dequantized(scores), iou_threshold)
    import numpy as np

    x1, y1, x2, y2 = (
        boxes.detach().to(rl.float64 if boxes.dtype == rl.float64 else rl.float32).numpy().T.copy()
    )
    order = scores.detach().sort(descending=True, stable=True).indices.numpy()
    areas = (x2 - x1) * (y2 - y1)
    kept = []
    with np.errstate(all="ignore"):
        while order.size:
            best, rest = order[0], order[1:]
            kept.append(best)
            w = np.minimum(x2[best], x2[rest]) - np.maximum(x1[best], x1[rest])
            h = np.minimum(y2[best], y2[rest]) - np.maximum(y1[best], y1[rest])
            shared = np.maximum(w, 0) * np.maximum(h, 0)
            over = shared / (areas[best] + areas[rest] - shared) > iou_threshold
            order = rest[~over]
    return rl.tensor(np.array(kept, dtype=np.int64), device=boxes.device)


def _dequantized(x):
    return x.dequantize() if x.is_quantized else x


def batched_nms(boxes, scores, idxs, iou_threshold):
    """`nms` among the boxes of each class."""
    if boxes.numel() > 4000:
        return _batched_nms_vanilla(boxes, scores, idxs, iou_threshold)
    return _batched_nms_coordinate_trick(boxes, scores, idxs, iou_threshold)


def _batched_nms_coordinate_trick(boxes, scores, idxs, iou_threshold):
    """Boxes of each class moved so far away that they overlap with no others."""
    if boxes.numel() == 0:
        return rl.empty((0,), dtype=rl.int64, device=boxes.device)
    offsets = idxs.to(boxes) * (boxes.max() + rl.tensor(1).to(boxes))
    return nms(boxes + offsets[:, None], scores, iou_threshold)


def _batched_nms_vanilla(boxes, scores, idxs, iou_threshold):
    """Class by class."""
    kept = rl.zeros_like(scores, dtype=rl.bool)
    for kind in rl.unique(idxs):
        mine = rl.where(idxs == kind)[0]
        kept[mine[nms(boxes[mine], scores[mine], iou_threshold)]] = True
    kept = rl.where(kept)[0]
    return kept[scores[kept].sort(descending=True).indices]


def remove_small_boxes(boxes, min_size):
    """The indices of the boxes whose sides are at least so long."""
    w, h = boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]
    return rl.where((w >= min_size) & (h >= min_size))[0]


def clip_boxes_to_image(boxes, size):
    """The boxes within an image of (height, width)."""
    height, width = size
    x, y = boxes[..., 0::2].clamp(min=0, max=width), boxes[..., 1::2].clamp(min=0, max=height)
    return rl.stack((x, y), dim=-1).reshape(boxes.shape)


def _xywhr_to_corners(x, y, w, h, angle):
    across, down = _directions(angle)
    x2, y2 = x + w * across[0], y + w * across[1]
    return x, y, x2, y2, x2 + h * down[0], y2 + h * down[1], x + h * down[0], y + h * down[1]


def _corners_to_xywhr(x1, y1, x2, y2, x3, y3, x4, y4):
    angle = rl.atan2(y1 - y2, x2 - x1) * 180 / rl.pi
    w, h = ((x2 - x1) ** 2 + (y1 - y2) ** 2).sqrt(), ((x3 - x2) ** 2 + (y3 - y2) ** 2).sqrt()
    return x1, y1, w, h, angle


def _directions(angle):
    """Unit vectors along the width and the height of boxes rotated by degrees, counter-clockwise."""
    angle = angle * rl.pi / 180.0
    cos, sin = angle.cos(), angle.sin()
    return (cos, -sin), (sin, cos)


def _from_centre(sign, x, y, w, h, angle):
    """The first corner of a rotated box from its centre (sign -1), or the other way (1)."""
    across, down = _directions(angle)
    x, y = (c + sign * (w / 2 * u + h / 2 * v) for c, u, v in zip((x, y), across, down))
    return x, y, w, h, angle


# upright boxes are converted by way of two corners, rotated ones by way of a corner, the size and the angle
_TO_COMMON: dict[str, Callable[..., Any]] = {
    "xyxy": lambda a, b, c, d: (a, b, c, d),
    "xywh": lambda x, y, w, h: (x, y, x + w, y + h),
    "cxcywh": lambda x, y, w, h: (x - 0.5 * w, y - 0.5 * h, x + 0.5 * w, y + 0.5 * h),
    "xywhr": lambda *box: box,
    "cxcywhr": functools.partial(_from_centre, -1),
    "xyxyxyxy": _corners_to_xywhr,
}
_FROM_COMMON: dict[str, Callable[..., Any]] = {
    "xyxy": lambda a, b, c, d: (a, b, c, d),
    "xywh": lambda a, b, c, d: (a, b, c - a, d - b),
    "cxcywh": lambda a, b, c, d: ((a + c) / 2, (b + d) / 2, c - a, d - b),
    "xywhr": lambda *box: box,
    "cxcywhr": functools.partial(_from_centre, 1),
    "xyxyxyxy": _xywhr_to_corners,
}
_ROTATED = ("cxcywhr", "xywhr", "xyxyxyxy")
_UPRIGHT = ("xyxy", "xywh", "cxcywh")


def box_convert(boxes, in_fmt, out_fmt):
    """Boxes in another format: xyxy (two corners), xywh (a corner and the size), cxcywh (the centre and the size); rotated
    ones: xywhr, cxcywhr (with an angle in degrees) and xyxyxyxy (four corners).
    """
    if in_fmt not in _TO_COMMON or out_fmt not in _FROM_COMMON:
        raise ValueError(
            f"Unsupported Bounding Box Conversions for given in_fmt {in_fmt} and out_fmt {out_fmt}"
        )
    if in_fmt == out_fmt:
        return boxes.clone()
    if (in_fmt in _ROTATED) != (out_fmt in _ROTATED):
        raise NotImplementedError(
            f"Unsupported Bounding Box Conversions for given in_fmt {in_fmt} and out_fmt {out_fmt}"
        )
    whole = in_fmt in _ROTATED and not boxes.is_floating_point()
    for name, step in ((in_fmt, _TO_COMMON[in_fmt]), (out_fmt, _FROM_COMMON[out_fmt])):
        if name not in ("xyxy", "xywhr"):
            out = rl.stack(step(*boxes.unbind(-1)), dim=-1)
            boxes = out.round().to(boxes.dtype) if whole else out
    return boxes


def _upcast(t):
    """A type in which products of coordinates do not overflow."""
    if t.is_floating_point():
        return t if t.dtype in (rl.float32, rl.float64) else t.float()
    return t if t.dtype in (rl.int32, rl.int64) else t.int()


def box_area(boxes, fmt="xyxy"):
    """The areas of boxes."""
    boxes = _upcast(boxes)
    if fmt in ("xywh", "cxcywh"):
        return boxes[..., 2] * boxes[..., 3]
    if fmt != "xyxy":
        raise ValueError(f"Unsupported Bounding Box area for given format {fmt}")
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def _box_inter_union(boxes1, boxes2, fmt="xyxy"):
    """(shared area, joint area) of every pair."""
    a, b = boxes1, boxes2
    if fmt != "xyxy":
        a, b = box_convert(a, fmt, "xyxy"), box_convert(b, fmt, "xyxy")
    corner = rl.max(a[..., :, None, :2], b[..., None, :, :2])
    size = _upcast(rl.min(a[..., :, None, 2:], b[..., None, :, 2:]) - corner).clamp(min=0)
    shared = size[..., 0] * size[..., 1]
    return shared, box_area(a)[..., :, None] + box_area(b)[..., None, :] - shared


def box_iou(boxes1, boxes2, fmt="xyxy"):
    """(N, M) of the shared area over the joint area of every pair."""
    if fmt in _ROTATED:
        from ._rotated import box_iou_rotated

        if fmt != "cxcywhr":
            boxes1, boxes2 = box_convert(boxes1, fmt, "cxcywhr"), box_convert(boxes2, fmt, "cxcywhr")
        return box_iou_rotated(boxes1, boxes2)
    if fmt not in _UPRIGHT:
        raise ValueError(
            f"Unsupported format '{fmt}'. Supported axis-aligned formats: {_UPRIGHT}. "
            f"Supported rotated formats: {_ROTATED}."
        )
    shared, union = _box_inter_union(boxes1, boxes2, fmt)
    return shared / union


def generalized_box_iou(boxes1, boxes2):
    """`box_iou` less the part of the smallest box around both that neither covers."""
    shared, union = _box_inter_union(boxes1, boxes2)
    size = _around(boxes1, boxes2)
    area = size[..., 0] * size[..., 1]
    return shared / union - (area - union) / area


def _around(a, b):
    """Sizes of the smallest boxes around every pair."""
    low = rl.min(a[..., :, None, :2], b[..., None, :, :2])
    high = rl.max(a[..., :, None, 2:], b[..., None, :, 2:])
    return _upcast(high - low).clamp(min=0)


def _distance(a, b, eps):
    """(box_iou less the squared distance of the middles over the squared diagonal around both, box_iou)"""
    a, b = _upcast(a), _upcast(b)
    iou = box_iou(a, b)
    size = _around(a, b)
    diagonal = size[..., 0] ** 2 + size[..., 1] ** 2 + eps
    middle_a, middle_b = (a[..., :2] + a[..., 2:]) / 2, (b[..., :2] + b[..., 2:]) / 2
    distance = (middle_a[..., :, None, :] - middle_b[..., None, :, :]) ** 2
    return iou - distance.sum(-1) / diagonal, iou


def distance_box_iou(boxes1, boxes2, eps=1e-7):
    """`box_iou` less the distance of the centres."""
    return _distance(boxes1, boxes2, eps)[0]


def complete_box_iou(boxes1, boxes2, eps=1e-7):
    """`distance_box_iou` less how much the shapes differ."""
    diou, iou = _distance(boxes1, boxes2, eps)
    a, b = _upcast(boxes1), _upcast(boxes2)

    def angle(boxes):
        return rl.atan((boxes[..., 2] - boxes[..., 0]) / (boxes[..., 3] - boxes[..., 1]))

    v = 4 / rl.pi**2 * (angle(a)[..., :, None] - angle(b)[..., None, :]) ** 2
    with rl.no_grad():
        weight = v / (1 - iou + v + eps)
    return diou - weight * v


def masks_to_boxes(masks):
    """The boxes (x1, y1, x2, y2) around masks (N, H, W)."""
    if masks.numel() == 0:
        return rl.zeros((0, 4), device=masks.device, dtype=rl.float)
    inside = masks != 0
    ends = []
    for dim in (1, 2):  # columns, then rows, that have a pixel
        hit = inside.any(dim=dim).to(rl.uint8)
        last = hit.shape[1] - 1 - hit.flip(1).argmax(1)
        ends.append((hit.argmax(1), last))
    (x1, x2), (y1, y2) = ends
    boxes = rl.stack([x1, y1, x2, y2], dim=1).float()
    return boxes.masked_fill(~inside.flatten(1).any(1, keepdim=True), 0)
