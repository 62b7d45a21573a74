"""Sizes and matrices that images of Pillow and tensors share."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl


def resized_size(
    image_size: Any, size: Any, max_size: Any = None, allow_size_none: bool = False
) -> list[int | Any]:
    """The (h, w) of an image of (h, w) whose shorter edge becomes size[0], the longer at most max_size."""
    height, width = image_size
    short, long = sorted(image_size)
    if size is not None:
        wanted = size if isinstance(size, int) else size[0]
        edges = wanted, int(wanted * long / short)
        if max_size is not None and max_size <= wanted:
            raise ValueError(
                f"max_size = {max_size} must be strictly greater than the requested "
                f"size for the smaller edge size = {size}"
            )
        if max_size is not None and edges[1] > max_size:
            edges = int(max_size * edges[0] / edges[1]), max_size
    elif not allow_size_none:
        raise ValueError("size may be None only where max_size alone decides")
    elif isinstance(max_size, int):
        edges = int(max_size * short / long), max_size
    else:
        raise ValueError(f"max_size must be an integer when size is None, but got {max_size} instead.")
    return list(edges if height < width else edges[::-1])


def inverse_affine_matrix(
    center: Any, angle: Any, translate: Any, scale: Any, shear: Any, inverted: bool = True
) -> list[Any]:
    """The six coefficients that map a pixel of the result to its position in the image (or, not inverted, the other direction):
    T * C * R(angle) * Shear * scale * C^-1, with C the shift to the centre and T the translation. Angles in degrees.
    """
    rotation = math.radians(angle)
    sx, sy = math.radians(shear[0]), math.radians(shear[1])
    cx, cy = center
    tx, ty = translate
    # Rotation times shear, without scale.
    a = math.cos(rotation - sy) / math.cos(sy)
    b = -math.cos(rotation - sy) * math.tan(sx) / math.cos(sy) - math.sin(rotation)
    c = math.sin(rotation - sy) / math.cos(sy)
    d = -math.sin(rotation - sy) * math.tan(sx) / math.cos(sy) + math.cos(rotation)
    if not inverted:
        m = [scale * a, scale * b, 0.0, scale * c, scale * d, 0.0]
        m[2] = m[0] * -cx + m[1] * -cy + cx + tx
        m[5] = m[3] * -cx + m[4] * -cy + cy + ty
        return m
    # The matrix above has determinant 1, so its inverse is its adjugate.
    m = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    m[2] = m[0] * (-cx - tx) + m[1] * (-cy - ty) + cx
    m[5] = m[3] * (-cx - tx) + m[4] * (-cy - ty) + cy
    return m


def affine_output_size(matrix: Any, w: Any, h: Any) -> tuple[int, int]:
    """(width, height) of the rectangle that holds an image rotated by a matrix about its centre, in whole pixels."""
    corners = rl.tensor(
        [[x * w, y * h, 1.0] for x, y in ((-0.5, -0.5), (-0.5, 0.5), (0.5, 0.5), (0.5, -0.5))]
    )
    positions = rl.matmul(corners, rl.tensor(matrix).reshape(2, 3).T)  # (4, 2)
    low, high = positions.min(dim=0).values, positions.max(dim=0).values
    low += rl.tensor((w * 0.5, h * 0.5))
    high += rl.tensor((w * 0.5, h * 0.5))
    # Coordinates that miss an integer by rounding only are taken as that integer.
    tolerance = 1e-4
    high = rl.ceil((high / tolerance).trunc_() * tolerance)
    low = rl.floor((low / tolerance).trunc_() * tolerance)
    size = high - low
    return int(size[0]), int(size[1])


def perspective_coeffs(startpoints: Any, endpoints: Any) -> Any:
    """The eight coefficients a .. h of (x, y) -> ((ax + by + c) / (gx + hy + 1), (dx + ey + f) / (gx + hy + 1)) that take four
    endpoints to four startpoints.
    """
    if len(startpoints) != 4 or len(endpoints) != 4:
        raise ValueError(
            f"Please provide exactly four corners, got {len(startpoints)} startpoints and {len(endpoints)} endpoints."
        )
    rows, values = [], []
    for (x, y), (u, v) in zip(endpoints, startpoints):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
        values += [u, v]
    matrix, right = rl.tensor(rows, dtype=rl.float64), rl.tensor(values, dtype=rl.float64)
    return rl.linalg.lstsq(matrix, right, driver="gels").solution.to(rl.float32).tolist()
