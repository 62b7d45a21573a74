"""Resizing, padding and resampling of images in tensors (..., C, H, W)."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from ..._checks import check_affine
from ..._geometry import affine_output_size as _compute_affine_output_size
from ..._geometry import inverse_affine_matrix as _get_inverse_affine_matrix
from ..._geometry import resized_size
from ..._interpolation import InterpolationMode, mode_of_int
from ..._tensor_geometry import _affine_grid, _pad_symmetric, perspective_grid

_FLOATS = (rl.float32, rl.float64)


def check_mode(interpolation: Any) -> Any:
    """A mode from itself, its name, or Pillow's number."""
    if isinstance(interpolation, str):
        return InterpolationMode(interpolation)
    return mode_of_int(interpolation) if isinstance(interpolation, int) else interpolation


def output_size(canvas_size: Any, size: Any, max_size: Any = None) -> tuple[Any, ...] | tuple[int | Any, ...]:
    """(h, w) of an image of canvas_size at another size: (h, w), or the length of the shorter edge."""
    if isinstance(size, int):
        size = [size]
    elif max_size is not None and size is not None and len(size) != 1:
        raise ValueError(
            "max_size should only be passed if size is None or specifies the length of the smaller edge: "
            f"size should be an int or a sequence of length 1, not {size}"
        )
    if size is not None and len(size) == 2:
        return tuple(size)
    return tuple(resized_size(canvas_size, size, max_size, allow_size_none=True))


def parse_affine(
    angle: Any,
    translate: Any,
    scale: Any,
    shear: Any,
    interpolation: Any = InterpolationMode.NEAREST,
    center: Any = None,
) -> tuple[Any, Any, Any, list[float] | None]:
    """(angle, translate, shear, center), checked."""
    angle, translate, shear = check_affine(angle, translate, scale, shear, center)
    if not isinstance(interpolation, InterpolationMode):
        raise TypeError("Argument interpolation should be a InterpolationMode")
    return angle, translate, shear, None if center is None else [float(c) for c in center]


def batched(image: Any) -> tuple[Any, Any]:
    """(image as (N, C, H, W), the leading dimensions)."""
    return image.reshape(-1, *image.shape[-3:]), image.shape[:-3]


def resize(image: Any, size: Any, interpolation: Any, antialias: Any) -> Any:
    """An image at another (h, w)."""
    smooth = interpolation in (
        InterpolationMode.BILINEAR,
        InterpolationMode.BICUBIC,
        InterpolationMode.LANCZOS,
    )
    if interpolation == InterpolationMode.LANCZOS and not antialias:
        raise ValueError("InterpolationMode.LANCZOS requires antialias=True")
    lead, channels, dtype = image.shape[:-3], image.shape[-3], image.dtype
    if image.numel() == 0:
        return image.reshape(*lead, channels, *size)
    batch, _ = batched(image)
    native = (*_FLOATS, rl.uint8)
    cast = dtype not in native
    options = {"align_corners": False, "antialias": bool(antialias)} if smooth else {}
    batch = rl.nn.functional.interpolate(
        batch.float() if cast else batch, size=list(size), mode=interpolation.value, **options
    )
    if cast:
        batch = (batch if dtype.is_floating_point or dtype == rl.bool else batch.round()).to(dtype)
    return batch.reshape(*lead, channels, *size)


def check_warp(image: Any, interpolation: Any, fill: Any) -> None:
    """Refuses modes and colours that resampling does not know."""
    if isinstance(fill, (tuple, list)):
        if len(fill) > 1 and len(fill) != image.shape[-3]:
            raise ValueError(
                "The number of elements in 'fill' cannot broadcast to match the number of "
                f"channels of the image ({len(fill)} != {image.shape[-3]})"
            )
    elif fill is not None and not isinstance(fill, (int, float)):
        raise ValueError("Argument fill should be either int, float, tuple or list")
    if interpolation.value not in ("nearest", "bilinear"):
        raise ValueError(f"Interpolation mode '{interpolation.value}' is unsupported with Tensor input")


def sample(image: Any, grid: Any, interpolation: Any, fill: Any) -> Any:
    """An image sampled at the positions of a grid (1, h, w, 2) of [-1, 1]; `fill` outside."""
    lead, channels, dtype = image.shape[:-3], image.shape[-3], image.dtype
    size = tuple(grid.shape[1:3])
    if image.numel() == 0:
        return image.reshape(*lead, channels, *size)
    batch, _ = batched(image)
    batch = batch.to(grid.dtype)
    grid = grid.expand(batch.shape[0], -1, -1, -1)
    if fill is not None:  # one channel more says how much of a pixel lies inside
        batch = rl.cat((batch, batch.new_ones(batch.shape[0], 1, *batch.shape[-2:])), dim=1)
    mode = interpolation.value
    batch = rl.nn.functional.grid_sample(batch, grid, mode=mode, padding_mode="zeros", align_corners=False)
    if fill is not None:
        batch, inside = batch[:, :-1], batch[:, -1:]
        colors = fill if isinstance(fill, (tuple, list)) else [float(fill)]
        colors = rl.tensor(colors, dtype=batch.dtype, device=batch.device).view(1, -1, 1, 1)
        batch = (
            rl.where(inside < 0.5, colors, batch) if mode == "nearest" else (batch - colors) * inside + colors
        )
    batch = batch if dtype == grid.dtype else batch.round().to(dtype)
    return batch.reshape(*lead, channels, *size)


def _float_dtype(image: Any) -> Any:
    return image.dtype if image.is_floating_point() else rl.float32


def affine_sample(
    image: Any,
    angle: Any,
    translate: Any,
    scale: Any,
    shear: Any,
    interpolation: Any,
    center: Any,
    fill: Any,
    expand: bool = False,
) -> Any:
    """An image rotated, moved, scaled and sheared; `expand` enlarges the result to hold all of it."""
    height, width = image.shape[-2:]
    middle = [0.0, 0.0]
    if center is not None:  # from the middle of the image
        middle = [c - s * 0.5 for c, s in zip(center, (width, height))]
    matrix = _get_inverse_affine_matrix(middle, angle, [float(t) for t in translate], scale, shear)
    check_warp(image, interpolation, fill)
    ow, oh = _compute_affine_output_size(matrix, width, height) if expand else (width, height)
    theta = rl.tensor(matrix, dtype=_float_dtype(image), device=image.device).reshape(1, 2, 3)
    return sample(image, _affine_grid(theta, width, height, ow, oh), interpolation, fill)


def perspective_sample(image: Any, coefficients: Any, interpolation: Any, fill: Any) -> Any:
    """An image seen from elsewhere, by eight coefficients."""
    check_warp(image, interpolation, fill)
    height, width = image.shape[-2:]
    grid = perspective_grid(coefficients, width, height, _float_dtype(image), image.device)
    return sample(image, grid, interpolation, fill)


def identity_grid(size: Any, device: Any, dtype: Any) -> rl.Tensor:
    """Where each pixel is, in [-1, 1]: (1, h, w, 2)."""
    h, w = size
    y = rl.linspace((1 - h) / h, (h - 1) / h, h, device=device, dtype=dtype)
    x = rl.linspace((1 - w) / w, (w - 1) / w, w, device=device, dtype=dtype)
    return rl.stack((x.expand(h, w), y[:, None].expand(h, w)), dim=-1)[None]


def parse_padding(padding: Any) -> list[int] | list[Any]:
    """[left, right, top, bottom]"""
    if isinstance(padding, int):
        return [padding] * 4
    if not isinstance(padding, (tuple, list)):
        raise TypeError(f"`padding` should be an integer or tuple or list of integers, but got {padding}")
    if len(padding) not in (1, 2, 4):
        raise ValueError(
            f"Padding must be an int or a 1, 2, or 4 element tuple or list. Found {len(padding)}"
        )
    left, top, right, bottom = list(padding) * (4 // len(padding))
    return [left, right, top, bottom]


_MODES = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "symmetric": "symmetric"}


def pad(image: Any, sides: Any, fill: Any, padding_mode: str) -> Any:
    """An image with a border of [left, right, top, bottom] pixels."""
    if padding_mode not in _MODES:
        raise ValueError(
            "`padding_mode` should be either `'constant'`, `'edge'`, `'reflect'` or `'symmetric'`, "
            f"but got `'{padding_mode}'`."
        )
    fill = 0 if fill is None else fill
    if not isinstance(fill, (int, float)) and len(fill) == 1:
        fill = fill[0]
    if not isinstance(fill, (int, float)):
        return _pad_colors(image, sides, fill, padding_mode)
    lead, channels = image.shape[:-3], image.shape[-3]
    batch = image.reshape(_count(lead), *image.shape[-3:])
    mode = _MODES[padding_mode]
    if mode == "constant":
        batch = rl.nn.functional.pad(batch, sides, mode=mode, value=float(fill))
    elif mode == "symmetric":
        batch = _pad_symmetric(batch, sides)
    else:
        exact = batch if batch.is_floating_point() else batch.float()
        batch = rl.nn.functional.pad(exact, sides, mode=mode).to(image.dtype)
    return batch.reshape(*lead, channels, *batch.shape[-2:])


def _count(sizes: Any) -> Any:
    count = 1
    for size in sizes:
        count *= size
    return count


def _pad_colors(image: Any, sides: Any, fill: Any, padding_mode: str) -> Any:
    if padding_mode != "constant":
        raise ValueError(f"Padding mode '{padding_mode}' is not supported if fill is not scalar")
    out = pad(image, sides, 0, "constant").clone()
    left, right, top, bottom = sides
    height, width = out.shape[-2:]
    color = rl.tensor(fill, device=image.device).to(image.dtype).reshape(-1, 1, 1)
    for where in (
        (slice(None), slice(0, left)),
        (slice(None), slice(width - right, width)),
        (slice(0, top), slice(None)),
        (slice(height - bottom, height), slice(None)),
    ):
        if out[(..., *where)].numel():
            out[(..., *where)] = color
    return out


def as_image(kernel: Any) -> Any:
    """A kernel of images (..., C, H, W), for masks that may be (H, W)."""

    def run(mask: Any, *args: Any, **kwargs: Any) -> Any:
        if mask.ndim < 3:
            return kernel(mask.unsqueeze(0), *args, **kwargs).squeeze(0)
        return kernel(mask, *args, **kwargs)

    return run
