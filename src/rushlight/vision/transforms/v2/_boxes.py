"""Boxes under transforms: their corners are moved, and the box around them is taken."""

import rushlight as rl
from rushlight.vision.ops.boxes import box_convert
from rushlight.vision.tv_tensors import BoundingBoxes, BoundingBoxFormat, wrap

from .._geometry import affine_output_size, inverse_affine_matrix, perspective_coeffs


def plain(boxes):
    return boxes.as_subclass(rl.Tensor)


def to_format(boxes, old, new):
    if old == new:
        return boxes
    return box_convert(boxes, old.value.lower(), new.value.lower()).to(boxes.dtype)


def with_corners(boxes, function, canvas_size=None):
    """Boxes whose (N, 4) x1 y1 x2 y2 a function of floats changed, clamped to the canvas."""
    size = canvas_size or boxes.canvas_size
    dtype = boxes.dtype if boxes.is_floating_point() else rl.float32
    corners = to_format(plain(boxes).to(dtype), boxes.format, BoundingBoxFormat.XYXY)
    corners = clamped(function(corners), size)
    if not boxes.is_floating_point():
        corners = corners.round() if function.__name__ == "exact" else corners
    out = to_format(corners, BoundingBoxFormat.XYXY, boxes.format).to(boxes.dtype)
    return wrap(out, like=boxes, canvas_size=size)


def clamped(corners, size):
    limit = corners.new_tensor([size[1], size[0], size[1], size[0]])
    return rl.min(corners.clamp(min=0), limit)


def clamp_bounding_boxes(boxes, format=None, canvas_size=None):
    """The boxes within their picture."""
    if isinstance(boxes, BoundingBoxes):
        return with_corners(boxes, lambda corners: corners)
    format = BoundingBoxFormat[format.upper()] if isinstance(format, str) else format
    return plain(
        with_corners(BoundingBoxes(boxes, format=format, canvas_size=canvas_size), lambda corners: corners)
    )


def convert_bounding_box_format(boxes, old_format=None, new_format=None, inplace=False):
    """The boxes in another format."""
    if isinstance(new_format, str):
        new_format = BoundingBoxFormat[new_format.upper()]
    if isinstance(old_format, str):
        old_format = BoundingBoxFormat[old_format.upper()]
    if isinstance(boxes, BoundingBoxes):
        if old_format is not None and old_format != boxes.format:
            raise ValueError("For bounding box tv_tensor inputs, `old_format` must not be passed.")
        return wrap(to_format(plain(boxes), boxes.format, new_format), like=boxes, format=new_format)
    if old_format is None:
        raise ValueError("For pure tensor inputs, `old_format` has to be passed.")
    return to_format(boxes, old_format, new_format)


def flip(boxes, horizontal):
    h, w = boxes.canvas_size

    def exact(c):
        x1, y1, x2, y2 = c.unbind(-1)
        return rl.stack((w - x2, y1, w - x1, y2) if horizontal else (x1, h - y2, x2, h - y1), -1)

    return with_corners(boxes, exact)


def resize(boxes, size):
    h, w = boxes.canvas_size
    ratio = rl.tensor([size[1] / w, size[0] / h] * 2)
    return with_corners(boxes, lambda c: c * ratio.to(c.dtype), tuple(size))


def crop(boxes, top, left, height, width):
    return with_corners(boxes, lambda c: c - c.new_tensor([left, top, left, top]), (height, width))


def pad(boxes, left, top, right, bottom):
    h, w = boxes.canvas_size
    size = (h + top + bottom, w + left + right)
    return with_corners(boxes, lambda c: c + c.new_tensor([left, top, left, top]), size)


def _around(points):
    """(N, 4, 2) -> (N, 4)"""
    return rl.cat((points.amin(1), points.amax(1)), -1)


def _points(c):
    x1, y1, x2, y2 = c.unbind(-1)
    return rl.stack(
        (rl.stack((x1, y1), -1), rl.stack((x2, y1), -1), rl.stack((x2, y2), -1), rl.stack((x1, y2), -1)), 1
    )


def affine(boxes, angle, translate, scale, shear, center=None, expand=False):
    h, w = boxes.canvas_size
    middle = [w * 0.5, h * 0.5] if center is None else list(center)
    # Where places of the picture go: the inverse of what samples it.
    matrix = rl.tensor(inverse_affine_matrix(middle, angle, translate, scale, shear, inverted=False)).view(
        2, 3
    )
    size = (h, w)
    if expand:
        frame = rl.tensor([[[0.0, 0.0], [w, 0.0], [w, h], [0.0, h]]])
        matrix[:, 2] -= (frame @ matrix[:, :2].T + matrix[:, 2])[0].amin(0)
        sampled = inverse_affine_matrix([0.0, 0.0], angle, [0.0, 0.0], scale, shear)
        size = affine_output_size(sampled, w, h)[::-1]

    def moved(c):
        m = matrix.to(c.dtype)
        return _around(_points(c) @ m[:, :2].T + m[:, 2])

    return with_corners(boxes, moved, size)


def perspective(boxes, startpoints, endpoints):
    a, b, c0, d, e, f, g, k = perspective_coeffs(endpoints, startpoints)

    def moved(c):
        x, y = _points(c).unbind(-1)
        below = g * x + k * y + 1
        return _around(rl.stack(((a * x + b * y + c0) / below, (d * x + e * y + f) / below), -1))

    return with_corners(boxes, moved)
