"""Boxes and points under transforms of their image.

Boxes are moved by their corners: upright ones become the box around them, rotated ones the rectangle on the longer diagonal.
"""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight.vision.tv_tensors import BoundingBoxFormat, is_rotated_bounding_format

from ..._geometry import perspective_coeffs as _get_perspective_coeffs
from ._meta import clamp, convert_bounding_box_format
from ._rotated import parallelogram_to_rectangle as _parallelogram_to_bounding_boxes
from ._warp import (
    _compute_affine_output_size,
    _get_inverse_affine_matrix,
    identity_grid,
    output_size,
    parse_affine,
    parse_padding,
)

_F = BoundingBoxFormat


def _corners_format(format: Any) -> Any:
    return _F.XYXYXYXY if is_rotated_bounding_format(format) else _F.XYXY


def _through_corners(boxes: Any, format: Any, canvas_size: Any, clamping_mode: Any, move: Any) -> Any:
    """Boxes whose corners (M, 2) a function moved, clamped to the image."""
    common = _corners_format(format)
    rotated = common == _F.XYXYXYXY
    exact = boxes if boxes.is_floating_point() else boxes.float()
    corners = convert_bounding_box_format(exact, old_format=format, new_format=common)
    corners = corners.reshape(-1, 8 if rotated else 4)
    points = corners if rotated else corners[:, [0, 1, 2, 1, 2, 3, 0, 3]]
    points = move(points.reshape(-1, 2))
    if rotated:
        out = _parallelogram_to_bounding_boxes(points.reshape(-1, 8))
    else:
        points = points.reshape(-1, 4, 2)
        out = rl.cat([points.amin(1), points.amax(1)], dim=1)
    out = clamp(out, common, canvas_size, clamping_mode)
    out = convert_bounding_box_format(out, old_format=common, new_format=format)
    return out.reshape(boxes.shape).to(boxes.dtype)


# ---- flips


def horizontal_flip_keypoints(keypoints: Any, canvas_size: Any) -> rl.Tensor:
    """Points with left and right exchanged."""
    x, y = keypoints.unbind(-1)
    return rl.stack([canvas_size[1] - 1 - x, y], -1)


def vertical_flip_keypoints(keypoints: Any, canvas_size: Any) -> rl.Tensor:
    """Points upside down."""
    x, y = keypoints.unbind(-1)
    return rl.stack([x, canvas_size[0] - 1 - y], -1)


_MIRRORED_CORNERS = [2, 3, 0, 1, 6, 7, 4, 5]


def horizontal_flip_bounding_boxes(bounding_boxes: Any, format: Any, canvas_size: Any) -> rl.Tensor:
    """Boxes with left and right exchanged."""
    width, n = canvas_size[1], list(bounding_boxes.unbind(-1))
    if format == _F.XYXY:
        n[0], n[2] = width - n[2], width - n[0]
    elif format == _F.XYWH:
        n[0] = width - (n[0] + n[2])
    elif format == _F.XYXYXYXY:
        n = [width - v if i % 2 == 0 else v for i, v in enumerate(n)]
        n = [n[i] for i in _MIRRORED_CORNERS]
    elif format == _F.XYWHR:
        angle = n[4] * math.pi / 180
        n[0], n[1] = width - (n[0] + n[2] * angle.cos()), n[1] - n[2] * angle.sin()
        n[4] = -n[4]
    else:
        n[0] = width - n[0]
        if format == _F.CXCYWHR:
            n[4] = -n[4]
    return rl.stack(n, -1)


def vertical_flip_bounding_boxes(bounding_boxes: Any, format: Any, canvas_size: Any) -> rl.Tensor:
    """Boxes upside down."""
    height, n = canvas_size[0], list(bounding_boxes.unbind(-1))
    if format == _F.XYXY:
        n[1], n[3] = height - n[3], height - n[1]
    elif format == _F.XYWH:
        n[1] = height - (n[1] + n[3])
    elif format == _F.XYXYXYXY:
        n = [height - v if i % 2 else v for i, v in enumerate(n)]
        n = [n[i] for i in _MIRRORED_CORNERS]
    elif format == _F.XYWHR:
        angle = n[4] * math.pi / 180
        n[1], n[0] = height - (n[1] - n[2] * angle.sin()), n[0] + n[2] * angle.cos()
        n[4] = 180 - n[4]
    else:
        n[1] = height - n[1]
        if format == _F.CXCYWHR:
            n[4] = 180 - n[4]
    return rl.stack(n, -1)


# ---- sizes, borders, crops


def resize_keypoints(
    keypoints: Any, size: Any, canvas_size: Any, max_size: Any = None
) -> tuple[Any, Any] | tuple[Any, tuple[Any | int, Any | int]]:
    """(points, canvas_size) in an image of another size."""
    (old_h, old_w), (h, w) = canvas_size, output_size(canvas_size, size, max_size)
    if (h, w) == (old_h, old_w):
        return keypoints, canvas_size
    ratios = rl.tensor([w / old_w, h / old_h], device=keypoints.device)
    return keypoints.mul(ratios).to(keypoints.dtype), (h, w)


def resize_bounding_boxes(
    bounding_boxes: Any,
    canvas_size: Any,
    size: Any,
    max_size: Any = None,
    format: Any = BoundingBoxFormat.XYXY,
    clamping_mode: str = "soft",
) -> (
    tuple[Any, Any] | tuple[Any | Any, tuple[Any | int, Any | int]] | tuple[Any, tuple[Any | int, Any | int]]
):
    """(boxes, canvas_size) in an image of another size."""
    (old_h, old_w), (h, w) = canvas_size, output_size(canvas_size, size, max_size)
    if (h, w) == (old_h, old_w):
        return bounding_boxes, canvas_size
    ratios = rl.tensor([w / old_w, h / old_h], device=bounding_boxes.device)
    if is_rotated_bounding_format(format):
        out = _through_corners(bounding_boxes, format, (h, w), clamping_mode, lambda points: points * ratios)
        return out, (h, w)
    return bounding_boxes.mul(ratios.repeat(2)).to(bounding_boxes.dtype), (h, w)


def _shift(boxes: Any, format: Any, x: Any, y: Any) -> Any:
    offset = {_F.XYXY: [x, y] * 2, _F.XYXYXYXY: [x, y] * 4, _F.XYWH: [x, y, 0, 0], _F.CXCYWH: [x, y, 0, 0]}
    offset = offset.get(format, [x, y, 0, 0, 0])
    return boxes + rl.tensor(offset, dtype=boxes.dtype, device=boxes.device)


def pad_keypoints(
    keypoints: Any, canvas_size: Any, padding: Any, padding_mode: str = "constant"
) -> tuple[Any, tuple[Any | Any, Any | Any]]:
    """(points, canvas_size) in an image with a border."""
    if padding_mode != "constant":
        raise ValueError(
            f"Padding mode '{padding_mode}' is not supported with KeyPoints (supported modes are constant)"
        )
    left, right, top, bottom = parse_padding(padding)
    offset = rl.tensor([left, top], dtype=keypoints.dtype, device=keypoints.device)
    return keypoints + offset, (canvas_size[0] + top + bottom, canvas_size[1] + left + right)


def pad_bounding_boxes(
    bounding_boxes: Any,
    format: Any,
    canvas_size: Any,
    padding: Any,
    padding_mode: str = "constant",
    clamping_mode: str = "soft",
) -> tuple[Any | Any, tuple[Any | Any, Any | Any]]:
    """(boxes, canvas_size) in an image with a border."""
    if padding_mode != "constant":
        raise ValueError(f"Padding mode '{padding_mode}' is not supported with bounding boxes")
    left, right, top, bottom = parse_padding(padding)
    size = (canvas_size[0] + top + bottom, canvas_size[1] + left + right)
    return clamp(_shift(bounding_boxes, format, left, top), format, size, clamping_mode), size


def crop_keypoints(
    keypoints: Any, top: Any, left: Any, height: Any, width: Any
) -> tuple[Any, tuple[Any, Any]]:
    """(points, canvas_size) in a rectangle of the image."""
    offset = rl.tensor([left, top], dtype=keypoints.dtype, device=keypoints.device)
    return keypoints - offset, (height, width)


def crop_bounding_boxes(
    bounding_boxes: Any,
    format: Any,
    top: Any,
    left: Any,
    height: Any,
    width: Any,
    clamping_mode: str = "soft",
) -> tuple[Any | Any, tuple[Any, Any]]:
    """(boxes, canvas_size) in a rectangle of the image."""
    boxes = _shift(bounding_boxes, format, -left, -top)
    if format == _F.XYXYXYXY:
        boxes = _parallelogram_to_bounding_boxes(boxes)
    return clamp(boxes, format, (height, width), clamping_mode), (height, width)


def center_anchor(output: Any, canvas_size: Any) -> tuple[int, ...]:
    """(top, left) of the middle of an image."""
    return tuple(int(round((have - want) / 2.0)) for want, have in zip(output, canvas_size))


def parse_center_size(size: Any) -> tuple[int, int] | tuple[Any, Any] | tuple[Any, ...]:
    """(h, w) from one number or two."""
    if isinstance(size, (int, float)):
        return int(size), int(size)
    return (size[0], size[0]) if len(size) == 1 else tuple(size)


def center_crop_keypoints(inpt: Any, canvas_size: Any, output_size: Any) -> tuple[Any, tuple[Any, Any]]:
    """(points, canvas_size) in the middle of the image."""
    h, w = parse_center_size(output_size)
    top, left = center_anchor((h, w), canvas_size)
    return crop_keypoints(inpt, top, left, h, w)


def center_crop_bounding_boxes(
    bounding_boxes: Any, format: Any, canvas_size: Any, output_size: Any, clamping_mode: str = "soft"
) -> tuple[Any | Any, tuple[Any, Any]]:
    """(boxes, canvas_size) in the middle of the image."""
    h, w = parse_center_size(output_size)
    top, left = center_anchor((h, w), canvas_size)
    return crop_bounding_boxes(bounding_boxes, format, top, left, h, w, clamping_mode)


def resized_crop_keypoints(
    keypoints: Any, top: Any, left: Any, height: Any, width: Any, size: Any
) -> tuple[Any, Any] | tuple[Any, tuple[Any | int, Any | int]]:
    """(points, canvas_size) in a rectangle of the image, at another size."""
    keypoints, canvas_size = crop_keypoints(keypoints, top, left, height, width)
    return resize_keypoints(keypoints, size, canvas_size)


def resized_crop_bounding_boxes(
    bounding_boxes: Any,
    format: Any,
    top: Any,
    left: Any,
    height: Any,
    width: Any,
    size: Any,
    clamping_mode: str = "soft",
) -> (
    tuple[Any, Any] | tuple[Any | Any, tuple[Any | int, Any | int]] | tuple[Any, tuple[Any | int, Any | int]]
):
    """(boxes, canvas_size) in a rectangle of the image, at another size."""
    boxes, canvas_size = crop_bounding_boxes(bounding_boxes, format, top, left, height, width, clamping_mode)
    return resize_bounding_boxes(boxes, canvas_size, size, format=format, clamping_mode=clamping_mode)


# ---- affine


def _affine_move(
    canvas_size: Any, angle: Any, translate: Any, scale: Any, shear: Any, center: Any, expand: bool
) -> Any:
    """(where points (N, 2) go, canvas_size)"""
    angle, translate, shear, center = parse_affine(angle, translate, scale, shear, center=center)
    height, width = canvas_size
    center = [width * 0.5, height * 0.5] if center is None else center
    coefficients = _get_inverse_affine_matrix(center, angle, translate, scale, shear, inverted=False)

    def applied(points: Any) -> Any:
        matrix = rl.tensor(coefficients, dtype=points.dtype, device=points.device).reshape(2, 3)
        ones = points.new_ones(points.shape[0], 1)
        return rl.cat([points, ones], -1) @ matrix.T

    if not expand:
        return applied, canvas_size

    def moved(points: Any) -> Any:
        frame = [[0.0, 0.0], [0.0, height], [width, height], [width, 0.0]]
        frame = rl.tensor(frame, dtype=points.dtype, device=points.device)
        return applied(points) - applied(frame).amin(0, keepdim=True)

    sampled = _get_inverse_affine_matrix(center, angle, translate, scale, shear)
    return moved, _compute_affine_output_size(sampled, width, height)[::-1]


def _affine_keypoints(
    keypoints: Any,
    canvas_size: Any,
    angle: Any,
    translate: Any,
    scale: Any,
    shear: Any,
    center: Any,
    expand: bool = False,
) -> tuple[Any, Any] | tuple[rl.Tensor, Any | tuple[int, ...]]:
    if keypoints.numel() == 0:
        return keypoints, canvas_size
    move, size = _affine_move(canvas_size, angle, translate, scale, shear, center, expand)
    exact = keypoints if keypoints.is_floating_point() else keypoints.float()
    return move(exact.reshape(-1, 2)).reshape(keypoints.shape).to(keypoints.dtype), size


def affine_keypoints(
    keypoints: Any, canvas_size: Any, angle: Any, translate: Any, scale: Any, shear: Any, center: Any = None
) -> tuple[Any, Any] | tuple[rl.Tensor, Any | tuple[int, ...]]:
    """(points, canvas_size), rotated, moved, scaled and sheared."""
    return _affine_keypoints(keypoints, canvas_size, angle, translate, scale, shear, center)


def _affine_boxes(
    boxes: Any,
    format: Any,
    canvas_size: Any,
    angle: Any,
    translate: Any,
    scale: Any,
    shear: Any,
    center: Any,
    mode: Any,
    expand: bool = False,
) -> tuple[Any, Any] | tuple[Any | Any, Any | tuple[int, ...]]:
    if boxes.numel() == 0:
        return boxes, canvas_size
    move, size = _affine_move(canvas_size, angle, translate, scale, shear, center, expand)
    return _through_corners(boxes, format, size, mode, move), size


def affine_bounding_boxes(
    bounding_boxes: Any,
    format: Any,
    canvas_size: Any,
    angle: Any,
    translate: Any,
    scale: Any,
    shear: Any,
    center: Any = None,
    clamping_mode: str = "soft",
) -> Any:
    """Boxes rotated, moved, scaled and sheared."""
    return _affine_boxes(
        bounding_boxes, format, canvas_size, angle, translate, scale, shear, center, clamping_mode
    )[0]


_STILL = ([0.0, 0.0], 1.0, [0.0, 0.0])


def rotate_keypoints(
    keypoints: Any, canvas_size: Any, angle: Any, expand: bool = False, center: Any = None
) -> tuple[Any, Any] | tuple[rl.Tensor, Any | tuple[int, ...]]:
    """(points, canvas_size), rotated counter-clockwise."""
    return _affine_keypoints(keypoints, canvas_size, -angle, *_STILL, center, expand)


def rotate_bounding_boxes(
    bounding_boxes: Any,
    format: Any,
    canvas_size: Any,
    angle: Any,
    expand: bool = False,
    center: Any = None,
    clamping_mode: str = "soft",
) -> tuple[Any, Any] | tuple[Any | Any, Any | tuple[int, ...]]:
    """(boxes, canvas_size), rotated counter-clockwise."""
    return _affine_boxes(bounding_boxes, format, canvas_size, -angle, *_STILL, center, clamping_mode, expand)


# ---- perspective


def perspective_coefficients(startpoints: Any, endpoints: Any, coefficients: Any) -> Any:
    """The eight coefficients, as given or of four points each."""
    if coefficients is not None:
        if startpoints is not None and endpoints is not None:
            raise ValueError(
                "The startpoints/endpoints and the coefficients shouldn't be defined concurrently."
            )
        if len(coefficients) != 8:
            raise ValueError("Argument coefficients should have 8 float values")
        return coefficients
    if startpoints is None or endpoints is None:
        raise ValueError("Either the startpoints/endpoints or the coefficients must have non `None` values.")
    return _get_perspective_coeffs(startpoints, endpoints)


def _perspective_move(coefficients: Any, what: Any) -> Any:
    a, b, c, d, e, f, g, h = coefficients
    determinant = a * e - b * d
    if determinant == 0:
        raise RuntimeError(
            f"Provided perspective_coeffs {coefficients} can not be inverted to transform {what}. "
            f"Denominator is zero, denom={determinant}"
        )
    # coefficients map pixels of the result to positions in the image: points are mapped inversely
    rows = [
        [e - f * h, c * h - b, b * f - c * e],
        [f * g - d, a - c * g, c * d - a * f],
        [d * h - e * g, b * g - a * h, determinant],
    ]

    def move(points: Any) -> Any:
        exact = points if points.is_floating_point() else points.float()
        matrix = rl.tensor(rows, dtype=rl.float64).div(determinant).to(exact.dtype)
        out = rl.cat([exact, exact.new_ones(exact.shape[0], 1)], -1) @ matrix.T
        return out[:, :2] / out[:, 2:]

    return move


def perspective_keypoints(
    keypoints: Any, canvas_size: Any, startpoints: Any, endpoints: Any, coefficients: Any = None
) -> Any:
    """Points seen from elsewhere."""
    if keypoints.numel() == 0:
        return keypoints
    move = _perspective_move(perspective_coefficients(startpoints, endpoints, coefficients), "keypoints")
    return move(keypoints.reshape(-1, 2)).to(keypoints.dtype).reshape(keypoints.shape)


def perspective_bounding_boxes(
    bounding_boxes: Any,
    format: Any,
    canvas_size: Any,
    startpoints: Any,
    endpoints: Any,
    coefficients: Any = None,
    clamping_mode: str = "soft",
) -> Any:
    """Boxes seen from elsewhere."""
    if bounding_boxes.numel() == 0:
        return bounding_boxes
    move = _perspective_move(perspective_coefficients(startpoints, endpoints, coefficients), "bounding boxes")
    return _through_corners(bounding_boxes, format, canvas_size, clamping_mode, move)


# ---- elastic


def _check_displacement(displacement: Any, canvas_size: Any) -> None:
    if not isinstance(displacement, rl.Tensor):
        raise TypeError("Argument displacement should be a Tensor")
    expected = (1, *canvas_size, 2)
    if tuple(displacement.shape) != expected:
        raise ValueError(f"Argument displacement shape should be {expected}, but given {displacement.shape}")


def _elastic_move(points: Any, canvas_size: Any, displacement: Any, round_up: Any) -> Any:
    """Points moved against the displacement of their pixel, which is nearly the inverse of what the image does."""
    dtype = points.dtype if points.is_floating_point() else rl.float32
    positions = identity_grid(canvas_size, points.device, dtype) - displacement.to(points.device, dtype)
    index = (points.ceil() if round_up and points.is_floating_point() else points).long()
    x, y = index[:, 0].clamp(0, canvas_size[1] - 1), index[:, 1].clamp(0, canvas_size[0] - 1)
    size = rl.tensor(list(canvas_size)[::-1], device=points.device, dtype=dtype)
    return (positions[0, y, x] + 1) * (0.5 * size) - 0.5


def elastic_keypoints(keypoints: Any, canvas_size: Any, displacement: Any) -> Any:
    """Points moved with the pixels of the image."""
    _check_displacement(displacement, canvas_size)
    if keypoints.numel() == 0:
        return keypoints
    out = _elastic_move(keypoints.reshape(-1, 2), canvas_size, displacement, False)
    return out.to(keypoints.dtype).reshape(keypoints.shape)


def elastic_bounding_boxes(
    bounding_boxes: Any, format: Any, canvas_size: Any, displacement: Any, clamping_mode: str = "soft"
) -> Any:
    """Boxes moved with the pixels of the image: upright ones by their corners, rotated ones by their centre."""
    _check_displacement(displacement, canvas_size)
    if bounding_boxes.numel() == 0:
        return bounding_boxes
    rotated = is_rotated_bounding_format(format)
    common = _F.CXCYWHR if rotated else _F.XYXY
    boxes = convert_bounding_box_format(bounding_boxes.clone(), old_format=format, new_format=common)
    boxes = boxes.reshape(-1, 5 if rotated else 4)
    points = boxes[:, :2] if rotated else boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]]
    moved = _elastic_move(points.reshape(-1, 2), canvas_size, displacement, True)
    if rotated:
        out = rl.cat([moved, boxes[:, 2:]], dim=1)
    else:
        moved = moved.reshape(-1, 4, 2)
        out = rl.cat([moved.amin(1), moved.amax(1)], dim=1)
    out = clamp(out.to(boxes.dtype), common, canvas_size, clamping_mode)
    out = convert_bounding_box_format(out, old_format=common, new_format=format)
    return out.reshape(bounding_boxes.shape)
