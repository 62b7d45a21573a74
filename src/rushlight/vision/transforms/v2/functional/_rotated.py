"""Rotated boxes: a corner or the centre, the size and an angle in degrees, or four corners."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl


def _turned(boxes: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """(first two values, width, height, cos, sin) of boxes (..., 5)."""
    angle = boxes[..., 4] * math.pi / 180.0
    return boxes[..., 0], boxes[..., 1], boxes[..., 2], boxes[..., 3], angle.cos(), angle.sin()


def _write(boxes: Any, values: Any, inplace: bool) -> Any:
    return boxes.copy_(values) if inplace else values


def _absolute_half(size: Any) -> Any:
    return (size / -2).abs()


def cxcywhr_to_xywhr(boxes: Any, inplace: bool = False) -> Any:
    """The first corner instead of the centre."""
    cx, cy, w, h, cos, sin = _turned(boxes)
    w, h = _absolute_half(w), _absolute_half(h)
    corner = rl.stack([cx - w * cos - h * sin, cy + w * sin - h * cos], -1)
    return _write(boxes, rl.cat([corner, boxes[..., 2:]], -1), inplace)


def xywhr_to_cxcywhr(boxes: Any, inplace: bool = False) -> Any:
    """The centre instead of the first corner."""
    x, y, w, h, cos, sin = _turned(boxes)
    w, h = _absolute_half(w), _absolute_half(h)
    corner = rl.stack([x + w * cos + h * sin, y - w * sin + h * cos], -1)
    return _write(boxes, rl.cat([corner, boxes[..., 2:]], -1), inplace)


def xywhr_to_corners(boxes: Any, inplace: bool = False) -> rl.Tensor:
    """Four corners: from the first one along the width, then the height."""
    x, y, w, h, cos, sin = _turned(boxes)
    across, down = (w * cos, -(w * sin)), (h * sin, h * cos)
    corners = [
        x, y, x + across[0], y + across[1], x + (across[0] + down[0]), y + (across[1] + down[1]), x + down[0], y + down[1],
    ]  # fmt: skip
    return rl.stack(corners, -1)


def corners_to_xywhr(boxes: Any, inplace: bool = False) -> rl.Tensor:
    """A corner, the size and the angle of four corners."""
    dtype = boxes.dtype
    exact = boxes if dtype in (rl.float32, rl.float64) else boxes.float()  # squares would overflow
    x1, y1, x2, y2, x3, y3 = exact[..., :6].unbind(-1)
    angle = rl.atan2(y1 - y2, x2 - x1) / math.pi * 180.0
    width = ((x2 - x1).pow(2) + (y2 - y1).pow(2)).sqrt()
    height = ((x3 - x2).pow(2) + (y3 - y2).pow(2)).sqrt()
    return rl.stack([x1, y1, width, height, angle], -1).to(dtype)


def parallelogram_to_rectangle(corners: Any) -> rl.Tensor:
    """The rectangle on the longer diagonal of a parallelogram (..., 8)."""
    dtype = corners.dtype
    exact = corners if dtype in (rl.float32, rl.float64) else corners.float()
    x1, y1, x2, y2, x3, y3, x4, y4 = exact.unbind(-1)
    across = ((x2 - x1).pow(2) + (y2 - y1).pow(2)).sqrt()
    down = ((x4 - x1).pow(2) + (y4 - y1).pow(2)).sqrt()
    first, last = rl.atan2(y1 - y2, x2 - x1), rl.atan2(y1 - y4, x4 - x1)
    between = first - last
    sign = rl.where(between > math.pi / 2, -1, 1)
    cos, sin = between.cos(), between.sin()
    w = rl.where(across < down, across * sin, across + down * cos * sign)
    h = rl.where(across > down, down * sin, down + across * cos * sign)
    angle = rl.where(down > across, last + math.pi / 2, first)
    cos, sin = angle.cos(), angle.sin()
    cx, cy = (x1 + x3) / 2, (y1 + y3) / 2
    wx, wy, hx, hy = w / 2 * cos, w / 2 * sin, h / 2 * sin, h / 2 * cos
    out = [
        cx - wx - hx, cy - hy + wy, cx + wx - hx, cy - hy - wy, cx + wx + hx, cy + hy - wy, cx - wx + hx, cy + hy + wy,
    ]  # fmt: skip
    return rl.stack(out, -1).reshape(corners.shape).to(dtype)


def _leftmost_first(corners: Any) -> tuple[rl.Tensor, Any]:
    """(indices that put the leftmost corner, of several the upper, first; the corners so)."""
    x, y = corners[..., 0::2], corners[..., 1::2]
    x_top, y_top = x.abs().amax(1, keepdim=True), y.abs().amax(1, keepdim=True)
    start = (y / y_top + (x / x_top) * 100).min(dim=1).indices
    indices = rl.ones_like(corners)
    indices[..., 0] = start * 2
    indices = indices.cumsum(1).remainder(8).to(rl.int64)
    return indices, corners.gather(1, indices)


def _edges(corners: Any) -> tuple[Any, Any]:
    """Gradient and intercept of the four lines through neighbouring corners."""
    x, y = corners[..., ::2], corners[..., 1::2]
    gradient = (y.roll(-1, -1) - y) / (x.roll(-1, -1) - x)
    return gradient, y - gradient * x


def _meeting(gradient: Any, intercept: Any) -> rl.Tensor:
    """Where each line meets the one before it."""
    x = -(intercept - intercept.roll(1, -1)) / (gradient - gradient.roll(1, -1))
    return rl.stack([x, gradient * x + intercept], -1).flatten(1)


def _cut_intercepts(
    gradient: Any, intercept: Any, bounds: Any, height: Any, width: Any, hard: Any
) -> rl.Tensor:
    """Intercepts of the lines of boxes that end at the left edge of the image.

    Soft boxes are the smallest of their angle around what is left; hard ones the largest within it.
    """
    a1, a2, a3, a4 = gradient.unbind(-1)
    b1, b2, b3, b4 = intercept.unbind(-1)
    m1, m2, m3, m4 = bounds.unbind(-1)
    b1, b4 = b2.clamp(b1, b3).clamp(0, height), b3.clamp(b2, b4).clamp(0, height)
    if hard:
        b1 = b4 = (b1 + b4) / 2
        low = [b1 * a2 / a1, b3 * a2 / a3, (a1 - a2) * width + b1, (a3 - a2) * width + b3]
        b2 = rl.stack(low, 1).max(dim=1).values.clamp(max=b2)
        high = [
            height * (1 - a3 / a4) + b4 * a3 / a4,
            height * (1 - a3 / a2) + b2 * a3 / a2,
            (a2 - a3) * width + b2,
            (a4 - a3) * width + b4,
        ]
        b3 = rl.stack(high, 1).min(dim=1).values.clamp(min=b3)
    return rl.stack([b1.clamp(m1, m3), b2.clamp(m2, m4), b3.clamp(m1, m3), b4.clamp(m2, m4)], -1)


def _clamp_left(corners: Any, bounds: Any, height: Any, width: Any, hard: Any) -> Any:
    """Boxes (leftmost corner first) cut at the left edge of the image."""
    gradient, intercept = _edges(corners)
    x1, y1, x2, y2, x3, y3, x4, y4 = corners.unbind(-1)
    rotated = _meeting(gradient, _cut_intercepts(gradient, intercept, _edges(bounds)[1], height, width, hard))
    upright = corners.clone()
    upright[..., 0].clamp_(0)
    upright[..., 6].clamp_(0)
    level = y1.isclose(y2) | y3.isclose(y4)
    outside = (x1 <= 0) & (x2 <= 0) & (x3 <= 0) & (x4 <= 0)
    gone = outside | y1.isclose(y4) | y2.isclose(y3) | (level & x1.isclose(x2))
    cases = [
        ((x1 < 0) & ~rotated.isnan().any(-1), rotated),
        (level, upright),
        (gone, rl.zeros_like(corners)),
    ]
    for where, case in cases:
        corners = rl.where(where.unsqueeze(1), case, corners)
    return corners


def _quarter_turn(corners: Any, width: Any) -> rl.Tensor:
    x, y = corners[:, ::2], corners[:, 1::2]
    return rl.stack([y, width - x], -1).flatten(1)


def clamp_rotated(corners: Any, canvas_size: Any, hard: Any) -> Any:
    """Rotated boxes (N, 8) cut to their image: at its left edge, four times, with a rotation by 90 degrees between."""
    height, width = canvas_size
    bounds = corners.clone()
    for _ in range(4):
        indices, corners = _leftmost_first(corners)
        bounds = bounds.gather(1, indices)
        corners = _clamp_left(corners, bounds, height, width, hard)
        corners, bounds = corners.gather(1, indices), bounds.gather(1, indices)
        corners, bounds = _quarter_turn(corners, width), _quarter_turn(bounds, width)
        height, width = width, height
    return corners
