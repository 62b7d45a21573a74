"""How much rotated boxes overlap: areas of the polygons that they share."""

import math

import rushlight as rl

_NEAR = 1e-9  # relative to the boxes: corners on an edge count as inside


def _corners(boxes):
    """(..., 4, 2) of boxes (cx, cy, w, h, degrees counter-clockwise)."""
    cx, cy, w, h, angle = boxes.unbind(-1)
    angle = angle * math.pi / 180
    cos, sin = angle.cos(), angle.sin()
    wx, wy, hx, hy = w / 2 * cos, -w / 2 * sin, h / 2 * sin, h / 2 * cos
    signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    return rl.stack([rl.stack([cx + a * wx + b * hx, cy + a * wy + b * hy], -1) for a, b in signs], -2)


def _cross(a, b):
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _inside(points, corners, scale):
    """Which of the points (..., P, 2) lie in the rectangles (..., 4, 2)."""
    origin = corners[..., :1, :]
    good = True
    for side in (corners[..., 1:2, :] - origin, corners[..., 3:4, :] - origin):
        along = ((points - origin) * side).sum(-1)
        length = (side * side).sum(-1)
        good = (along >= -_NEAR * scale) & (along <= length + _NEAR * scale) & good
    return good


def _crossings(a, b):
    """(points (..., 16, 2), which exist) where an edge of one rectangle meets an edge of the other."""
    a1, b1 = a.unsqueeze(-2), b.unsqueeze(-3)
    da, db = (a.roll(-1, -2) - a).unsqueeze(-2), (b.roll(-1, -2) - b).unsqueeze(-3)
    offset = b1 - a1
    parallel = _cross(da, db)
    exists = parallel.abs() > 1e-14
    divisor = rl.where(exists, parallel, 1.0)
    t, u = _cross(offset, db) / divisor, _cross(offset, da) / divisor
    exists = exists & (t >= 0) & (t <= 1) & (u >= 0) & (u <= 1)
    return (a1 + t.unsqueeze(-1) * da).flatten(-3, -2), exists.flatten(-2)


def _shared(a, b):
    """Areas of the polygons that pairs of rectangles (..., 4, 2) share."""
    scale = ((a - a[..., :1, :]) ** 2).sum((-1, -2)).unsqueeze(-1)
    scale = scale + ((b - b[..., :1, :]) ** 2).sum((-1, -2)).unsqueeze(-1)
    crossings, exist = _crossings(a, b)
    points = rl.cat([crossings, a, b], -2)
    good = rl.cat([exist, _inside(a, b, scale), _inside(b, a, scale)], -1)
    count = good.sum(-1, keepdim=True).clamp(min=1)
    centre = (points * good.unsqueeze(-1)).sum(-2, keepdim=True) / count.unsqueeze(-1)
    points = rl.where(good.unsqueeze(-1), points - centre, 0.0)
    # convex: corners in the order of their angle; those that are none come last and repeat the first
    angle = rl.where(good, rl.atan2(points[..., 1], points[..., 0]), math.inf)
    order = angle.argsort(-1)
    points = points.gather(-2, order.unsqueeze(-1).expand_as(points))
    good = good.gather(-1, order)
    points = rl.where(good.unsqueeze(-1), points, points[..., :1, :])
    return _cross(points, points.roll(-1, -2)).sum(-1).abs() / 2


def box_iou_rotated(boxes1, boxes2):
    """(N, M) of the shared area over the joint area of every pair of boxes (cx, cy, w, h, degrees), always float32."""
    a, b = boxes1.detach().double(), boxes2.detach().double()
    if a.numel() == 0 or b.numel() == 0:
        return rl.zeros((a.shape[0], b.shape[0]), dtype=rl.float32, device=boxes1.device)
    shift = (a[:, None, :2] + b[None, :, :2]) / 2  # near the origin, so that no digits are lost
    one = _corners(rl.cat([a[:, None, :2] - shift, a[:, None, 2:].expand(-1, b.shape[0], -1)], -1))
    other = _corners(rl.cat([b[None, :, :2] - shift, b[None, :, 2:].expand(a.shape[0], -1, -1)], -1))
    shared = _shared(one, other)
    area_a, area_b = (a[:, 2] * a[:, 3]).abs()[:, None], (b[:, 2] * b[:, 3]).abs()[None, :]
    shared = rl.minimum(shared, rl.minimum(area_a, area_b))
    union = area_a + area_b - shared
    some = (area_a > 1e-14) & (area_b > 1e-14)
    return rl.where(some, shared / rl.where(some, union, 1.0), 0.0).float()
