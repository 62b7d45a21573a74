"""Losses of detection."""

import rushlight as rl
from rushlight.nn import functional as F

from .boxes import _upcast


def _reduced(loss, reduction, zero_if_empty=False):
    if reduction == "mean":
        return 0.0 * loss.sum() if zero_if_empty and not loss.numel() else loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction != "none":
        raise ValueError(
            f"Invalid Value for arg 'reduction': '{reduction} \n Supported reduction modes: 'none', 'mean', 'sum'"
        )
    return loss


def sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2, reduction="none"):
    """Binary cross entropy of logits, less weighted where the answer is already right (Lin et al., 2017)."""
    if not 0 <= alpha <= 1 and alpha != -1:
        raise ValueError(f"Invalid alpha value: {alpha}. alpha must be in the range [0,1] or -1 for ignore.")
    p = rl.sigmoid(inputs)
    loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    right = p * targets + (1 - p) * (1 - targets)
    loss = loss * (1 - right) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return _reduced(loss, reduction)


def _pairs(a, b):
    """Areas shared and joint, and the sizes around, of boxes one by one."""
    a, b = _upcast(a), _upcast(b)
    x1, y1, x2, y2 = a.unbind(-1)
    u1, v1, u2, v2 = b.unbind(-1)
    left, top, right, bottom = rl.max(x1, u1), rl.max(y1, v1), rl.min(x2, u2), rl.min(y2, v2)
    meet = (bottom > top) & (right > left)
    shared = rl.where(meet, (right - left) * (bottom - top), rl.zeros_like(x1))
    union = (x2 - x1) * (y2 - y1) + (u2 - u1) * (v2 - v1) - shared
    width, height = rl.max(x2, u2) - rl.min(x1, u1), rl.max(y2, v2) - rl.min(y1, v1)
    return a, b, shared, union, width, height


def generalized_box_iou_loss(boxes1, boxes2, reduction="none", eps=1e-7):
    """1 - generalized IoU of boxes one by one."""
    _, _, shared, union, width, height = _pairs(boxes1, boxes2)
    area = width * height
    return _reduced(
        1 - (shared / (union + eps) - (area - union) / (area + eps)), reduction, zero_if_empty=True
    )


def _distance_loss(boxes1, boxes2, eps):
    a, b, shared, union, width, height = _pairs(boxes1, boxes2)
    iou = shared / (union + eps)
    distance = ((a[..., :2] + a[..., 2:]) / 2 - (b[..., :2] + b[..., 2:]) / 2) ** 2
    return 1 - iou + distance.sum(-1) / (width**2 + height**2 + eps), iou, a, b


def distance_box_iou_loss(boxes1, boxes2, reduction="none", eps=1e-7):
    """1 - distance IoU of boxes one by one."""
    return _reduced(_distance_loss(boxes1, boxes2, eps)[0], reduction, zero_if_empty=True)


def complete_box_iou_loss(boxes1, boxes2, reduction="none", eps=1e-7):
    """1 - complete IoU of boxes one by one."""
    loss, iou, a, b = _distance_loss(boxes1, boxes2, eps)

    def angle(boxes):
        return rl.atan((boxes[..., 2] - boxes[..., 0]) / (boxes[..., 3] - boxes[..., 1]))

    v = 4 / rl.pi**2 * (angle(b) - angle(a)) ** 2
    with rl.no_grad():
        weight = v / (1 - iou + v + eps)
    return _reduced(loss + weight * v, reduction, zero_if_empty=True)
