"""Functionals of values, and boxes and points that are kept or not."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    KeyPoints,
    Mask,
    is_rotated_bounding_format,
    wrap,
)

from ..._tensor_base import max_value
from ..._to_from import pil_to_tensor, to_pil_image
from ._meta import _convert_bounding_box_format, _format
from ._utils import _KERNEL_REGISTRY, PIL_IMAGE, functional, image_kernel, is_pure_tensor, kernel_for


@functional
def normalize(inpt: Any, mean: Any, std: Any, inplace: bool = False) -> None:
    """(inpt - mean) / std by channels."""


@image_kernel(normalize)
def normalize_image(image: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
    """(image - mean) / std by channels."""
    if not image.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {image.dtype}.")
    if image.ndim < 3:
        raise ValueError(f"Expected tensor to be a tensor image of size (..., C, H, W). Got {image.shape}.")
    if isinstance(std, (tuple, list)) and not all(std) or isinstance(std, (int, float)) and std == 0:
        raise ValueError("std evaluated to zero, leading to division by zero.")
    mean, std = (rl.as_tensor(v, dtype=image.dtype, device=image.device) for v in (mean, std))
    mean, std = (v.view(-1, 1, 1) if v.ndim == 1 else v for v in (mean, std))
    return (image.sub_(mean) if inplace else image.sub(mean)).div_(std)


@functional
def gaussian_blur(inpt: Any, kernel_size: Any, sigma: Any = None) -> None:
    """Smoothed by a Gaussian of odd size; sigma is 0.15 * size + 0.35 unless given."""


def _check_blur(kernel_size: Any, sigma: Any) -> tuple[Any, list[Any]] | tuple[Any, Any]:
    """(sizes, sigmas) of x and y."""
    if isinstance(kernel_size, int):
        kernel_size = [kernel_size, kernel_size]
    elif len(kernel_size) != 2:
        raise ValueError(f"If kernel_size is a sequence its length should be 2. Got {len(kernel_size)}")
    for size in kernel_size:
        if size % 2 == 0 or size < 0:
            raise ValueError(f"kernel_size should have odd and positive integers. Got {kernel_size}")
    if sigma is None:
        return kernel_size, [size * 0.15 + 0.35 for size in kernel_size]
    if isinstance(sigma, (int, float)):
        sigma = [float(sigma)]
    elif not isinstance(sigma, (list, tuple)):
        raise TypeError(f"sigma should be either float or sequence of floats. Got {type(sigma)}")
    if len(sigma) not in (1, 2):
        raise ValueError(f"If sigma is a sequence, its length should be 2. Got {len(sigma)}")
    sigma = list(sigma) * (2 // len(sigma))
    for s in sigma:
        if s <= 0.0:
            raise ValueError(f"sigma should have positive values. Got {sigma}")
    return kernel_size, sigma


def _gaussian(size: Any, sigma: Any, dtype: Any, device: Any) -> rl.Tensor:
    limit = (size - 1) / (2.0 * math.sqrt(2.0))
    x = rl.linspace(-limit, limit, steps=size, dtype=dtype, device=device)
    return rl.softmax(-(x / sigma).pow(2), dim=0)


@image_kernel(gaussian_blur)
def gaussian_blur_image(image: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """An image smoothed by a Gaussian."""
    (wide, high), sigma = _check_blur(kernel_size, sigma)
    if image.numel() == 0:
        return image
    exact = image if image.is_floating_point() else image.float()
    channels = image.shape[-3]
    across = _gaussian(wide, sigma[0], exact.dtype, image.device)
    down = _gaussian(high, sigma[1], exact.dtype, image.device)
    kernel = (down[:, None] * across).expand(channels, 1, high, wide)
    batch = exact.reshape(-1, *image.shape[-3:])
    sides = [wide // 2, wide // 2, high // 2, high // 2]
    out = rl.nn.functional.conv2d(
        rl.nn.functional.pad(batch, sides, mode="reflect"), kernel, groups=channels
    ).reshape(image.shape)
    return out if image.is_floating_point() else out.round().to(image.dtype)


@kernel_for(gaussian_blur, PIL_IMAGE)
def _gaussian_blur_image_pil(image: Any, kernel_size: Any, sigma: Any = None) -> Any:
    out = gaussian_blur_image(pil_to_tensor(image), kernel_size=kernel_size, sigma=sigma)
    return to_pil_image(out, mode=image.mode)


@functional
def gaussian_noise(inpt: Any, mean: Any = 0.0, sigma: Any = 0.1, clip: bool = True) -> None:
    """With normal noise added, of floats or bytes."""


@image_kernel(gaussian_noise)
def gaussian_noise_image(image: Any, mean: Any = 0.0, sigma: Any = 0.1, clip: bool = True) -> Any:
    """An image with normal noise added."""
    if sigma < 0:
        raise ValueError(f"sigma shouldn't be negative. Got {sigma}")
    if image.is_floating_point():
        out = image + (mean + rl.randn_like(image) * sigma)
        return out.clamp(0, 1) if clip else out
    if image.dtype != rl.uint8:
        raise ValueError(f"Input tensor is expected to be in uint8 or float dtype, got dtype={image.dtype}")
    noise = mean * 255 + rl.randn_like(image, dtype=rl.float32) * (sigma * 255)
    out = image + noise.to(rl.int16)
    return (out.clamp(0, 255) if clip else out).to(rl.uint8)


@kernel_for(gaussian_noise, PIL_IMAGE)
def _gaussian_noise_pil(image: Any, mean: Any = 0.0, sigma: Any = 0.1, clip: bool = True) -> None:
    raise ValueError("Gaussian Noise is not implemented for PIL images.")


@functional
def to_dtype(inpt: Any, dtype: Any = rl.float32, scale: Any = False) -> None:
    """In another type; `scale` keeps white white. Masks, boxes and points are cast only."""


_BITS = {rl.uint8: 8, rl.int8: 7, rl.int16: 15, rl.uint16: 16, rl.int32: 31, rl.int64: 63}


def _num_value_bits(dtype: Any) -> int:
    """How many bits of an integer hold its value."""
    if dtype not in _BITS:
        raise TypeError(f"Number of value bits is only defined for integer dtypes, but got {dtype}.")
    return _BITS[dtype]


@image_kernel(to_dtype)
def to_dtype_image(image: Any, dtype: Any = rl.float32, scale: Any = False) -> Any:
    """An image in another type."""
    if image.dtype == dtype:
        return image
    if not scale or image.is_floating_point() and dtype.is_floating_point:
        return image.to(dtype)
    if image.is_floating_point():
        if dtype == rl.int64 and image.dtype != rl.float16 or dtype == rl.int32 and image.dtype == rl.float32:
            raise RuntimeError(f"The conversion from {image.dtype} to {dtype} cannot be performed safely.")
        # slightly less than one more step, so that every integer gets an equal share of [0, 1]
        return image.mul(float(max_value(dtype)) + 1.0 - 1e-3).to(dtype)
    if dtype.is_floating_point:
        return image.to(dtype).mul_(1.0 / max_value(image.dtype))
    shift = _num_value_bits(image.dtype) - _num_value_bits(dtype)
    if shift > 0:
        return (image / 2**shift if image.dtype == rl.uint16 else image.bitwise_right_shift(shift)).to(dtype)
    if dtype == rl.uint16:
        return image.to(dtype) * 2**-shift
    return image.to(dtype).bitwise_left_shift(-shift)


def convert_image_dtype(image: Any, dtype: Any = rl.float32) -> Any:
    """An image in another type, with white kept white."""
    return to_dtype_image(image, dtype=dtype, scale=True)


def _to_dtype_only(inpt: Any, dtype: Any = rl.float32, scale: Any = False) -> Any:
    return inpt.to(dtype)


for _cls in (KeyPoints, BoundingBoxes, Mask):
    _KERNEL_REGISTRY[to_dtype][_cls] = _to_dtype_only


def sanitize_bounding_boxes(
    bounding_boxes: Any,
    format: Any = None,
    canvas_size: Any = None,
    min_size: float = 1.0,
    min_area: float = 1.0,
) -> tuple[Any, Any | Any] | tuple[Any | Any, Any | Any]:
    """(the boxes that are within their image and not too small, which they are); format and canvas_size are for plain tensors."""
    if is_pure_tensor(bounding_boxes):
        if format is None or canvas_size is None:
            raise ValueError(
                "format and canvas_size cannot be None if bounding_boxes is a pure tensor. "
                f"Got {format} and {canvas_size}: pass both, or tv_tensors.BoundingBoxes, which know theirs."
            )
        valid = _good_boxes(bounding_boxes, _format(format), canvas_size, min_size, min_area)
        return bounding_boxes[valid], valid
    if not isinstance(bounding_boxes, BoundingBoxes):
        raise ValueError("bounding_boxes must be a tv_tensors.BoundingBoxes instance or a pure tensor.")
    if format is not None or canvas_size is not None:
        raise ValueError(
            "format and canvas_size must be None when bounding_boxes is a tv_tensors.BoundingBoxes instance. "
            f"They have their own, and got {format} and {canvas_size}."
        )
    plain = bounding_boxes.as_subclass(rl.Tensor)
    valid = _good_boxes(plain, bounding_boxes.format, bounding_boxes.canvas_size, min_size, min_area)
    return wrap(plain[valid], like=bounding_boxes), valid


def _good_boxes(
    boxes: Any, format: Any, canvas_size: Any, min_size: float = 1.0, min_area: float = 1.0
) -> Any:
    rotated = is_rotated_bounding_format(format)
    common = BoundingBoxFormat.XYXYXYXY if rotated else BoundingBoxFormat.XYXY
    n = _convert_bounding_box_format(boxes, format, common)
    if rotated:
        w = ((n[..., 0] - n[..., 2]).pow(2) + (n[..., 1] - n[..., 3]).pow(2)).sqrt()
        # torchvision's values: the second side is measured from these four coordinates
        h = ((n[..., 3] - n[..., 5]).pow(2) + (n[..., 4] - n[..., 6]).pow(2)).sqrt()
    else:
        w, h = n[..., 2] - n[..., 0], n[..., 3] - n[..., 1]
    height, width = canvas_size
    valid = (w >= min_size) & (h >= min_size) & (n >= 0).all(dim=-1) & (w * h >= min_area)
    return valid & (n[..., 0::2] <= width).all(dim=-1) & (n[..., 1::2] <= height).all(dim=-1)


_get_sanitize_bounding_boxes_mask = _good_boxes


def sanitize_keypoints(key_points: Any, canvas_size: Any = None) -> tuple[Any, Any] | tuple[Any | Any, Any]:
    """(the points that are within their image, which they are); groups of points stay or go as a whole."""
    if is_pure_tensor(key_points):
        if canvas_size is None:
            raise ValueError(
                "canvas_size cannot be None if key_points is a pure tensor. "
                "Pass it, or tv_tensors.KeyPoints, which know theirs."
            )
        valid = _get_sanitize_keypoints_mask(key_points, canvas_size)
        return key_points[valid], valid
    if not isinstance(key_points, KeyPoints):
        raise ValueError("key_points must be a tv_tensors.KeyPoints instance or a pure tensor.")
    if canvas_size is not None:
        raise ValueError(
            "canvas_size must be None when key_points is a tv_tensors.KeyPoints instance. "
            f"They have their own, {key_points.canvas_size}, and got {canvas_size}."
        )
    plain = key_points.as_subclass(rl.Tensor)
    valid = _get_sanitize_keypoints_mask(plain, key_points.canvas_size)
    return wrap(plain[valid], like=key_points), valid


def _get_sanitize_keypoints_mask(key_points: Any, canvas_size: Any) -> Any:
    x, y = key_points[..., 0], key_points[..., 1]
    valid = (x >= 0) & (x < canvas_size[1]) & (y >= 0) & (y < canvas_size[0])
    return valid.flatten(start_dim=1).all(dim=1) if valid.ndim > 1 else valid
