"""Functionals that move pixels, and their kernels for images and masks; those for boxes and points are in _points.py."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight as rl
from rushlight.vision.tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, Video, wrap

from ... import _functional_pil as _FP
from ..._interpolation import InterpolationMode, pil_modes_mapping, setup_size
from ..._to_from import pil_to_tensor, to_pil_image
from . import _points
from ._meta import _get_size_image_pil
from ._points import (
    _check_displacement,
    _get_perspective_coeffs,
    _parallelogram_to_bounding_boxes,
    center_anchor,
    parse_center_size,
    perspective_coefficients,
)
from ._utils import _KERNEL_REGISTRY, PIL_IMAGE, functional, image_kernel, kernel_for
from ._warp import (
    _compute_affine_output_size,
    _get_inverse_affine_matrix,
    affine_sample,
    as_image,
    check_mode,
    identity_grid,
    output_size,
    parse_affine,
    parse_padding,
    perspective_sample,
    sample,
)
from ._warp import (
    pad as _pad,
)
from ._warp import (
    resize as _resize,
)

__all__ = [
    "_compute_affine_output_size",
    "_get_inverse_affine_matrix",
    "_get_perspective_coeffs",
    "_parallelogram_to_bounding_boxes",
]
_NEAREST, _BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR
_NEAREST_MODES = (InterpolationMode.NEAREST, InterpolationMode.NEAREST_EXACT)


def _register_points(function: Any) -> None:
    """Registers the kernels of _points.py for boxes and points."""
    for cls, kind in ((BoundingBoxes, "bounding_boxes"), (KeyPoints, "keypoints")):
        kernel_for(function, cls)(getattr(_points, f"{function.__name__}_{kind}"))


# ---- flips


@functional
def horizontal_flip(inpt: Any) -> None:
    """Left and right exchanged."""


@image_kernel(horizontal_flip)
def horizontal_flip_image(image: Any) -> Any:
    """Left and right exchanged."""
    return image.flip(-1)


@kernel_for(horizontal_flip, PIL_IMAGE)
def _horizontal_flip_image_pil(image: Any) -> Any:
    return _FP.hflip(image)


@kernel_for(horizontal_flip, Mask)
def horizontal_flip_mask(mask: Any) -> Any:
    """Left and right exchanged."""
    return mask.flip(-1)


@functional
def vertical_flip(inpt: Any) -> None:
    """Upside down."""


@image_kernel(vertical_flip)
def vertical_flip_image(image: Any) -> Any:
    """Upside down."""
    return image.flip(-2)


@kernel_for(vertical_flip, PIL_IMAGE)
def _vertical_flip_image_pil(image: Any) -> Any:
    return _FP.vflip(image)


@kernel_for(vertical_flip, Mask)
def vertical_flip_mask(mask: Any) -> Any:
    """Upside down."""
    return mask.flip(-2)


hflip, vflip = horizontal_flip, vertical_flip


# ---- resize


@functional
def resize(
    inpt: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: Any = None,
    antialias: Any = True,
) -> None:
    """At another size: (h, w), or the length of the shorter edge, the longer then at most max_size."""


@image_kernel(resize)
def resize_image(
    image: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: Any = None,
    antialias: Any = True,
) -> Any:
    """An image at another size."""
    interpolation = check_mode(interpolation)
    size = output_size(image.shape[-2:], size, max_size)
    if interpolation == InterpolationMode.LANCZOS and not antialias:
        raise ValueError("InterpolationMode.LANCZOS requires antialias=True")
    if tuple(size) == tuple(image.shape[-2:]):
        return image
    return _resize(image, size, interpolation, antialias)


def _resize_image_pil(
    image: Any, size: Any, interpolation: Any = InterpolationMode.BILINEAR, max_size: Any = None
) -> Any:
    old = (image.height, image.width)
    height, width = output_size(old, size, max_size)
    if (height, width) == old:
        return image
    return image.resize((width, height), resample=pil_modes_mapping[check_mode(interpolation)])


def _no_antialias(antialias: Any) -> None:
    if antialias is False:
        warnings.warn(
            "Anti-alias option is always applied for PIL Image input. Argument antialias is ignored.",
            stacklevel=4,
        )


@kernel_for(resize, PIL_IMAGE)
def _resize_pil(
    image: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: Any = None,
    antialias: Any = True,
) -> Any:
    _no_antialias(antialias)
    return _resize_image_pil(image, size, interpolation, max_size)


@kernel_for(resize, Mask)
def resize_mask(
    mask: Any, size: Any, interpolation: Any = InterpolationMode.BILINEAR, max_size: Any = None
) -> Any:
    """Masks at another size, by their nearest pixels."""
    mode = check_mode(interpolation)
    mode = mode if mode in _NEAREST_MODES else _NEAREST
    return as_image(resize_image)(mask, size, interpolation=mode, max_size=max_size)


# ---- affine, rotate


@functional
def affine(
    inpt: Any,
    angle: Any,
    translate: Any,
    scale: Any,
    shear: Any,
    interpolation: Any = InterpolationMode.NEAREST,
    fill: Any = None,
    center: Any = None,
) -> None:
    """Rotated, moved, scaled and sheared; the middle stays where it is."""


@image_kernel(affine)
def affine_image(
    image: Any,
    angle: Any,
    translate: Any,
    scale: Any,
    shear: Any,
    interpolation: Any = InterpolationMode.NEAREST,
    fill: Any = None,
    center: Any = None,
) -> Any:
    """An image rotated, moved, scaled and sheared."""
    mode = check_mode(interpolation)
    angle, translate, shear, center = parse_affine(angle, translate, scale, shear, mode, center)
    return affine_sample(image, angle, translate, scale, shear, mode, center, fill)


@kernel_for(affine, PIL_IMAGE)
def _affine_image_pil(
    image: Any,
    angle: Any,
    translate: Any,
    scale: Any,
    shear: Any,
    interpolation: Any = InterpolationMode.NEAREST,
    fill: Any = None,
    center: Any = None,
) -> Any:
    mode = check_mode(interpolation)
    angle, translate, shear, center = parse_affine(angle, translate, scale, shear, mode, center)
    center = [image.width * 0.5, image.height * 0.5] if center is None else center
    matrix = _get_inverse_affine_matrix(center, angle, translate, scale, shear)
    return _FP.affine(image, matrix, interpolation=pil_modes_mapping[mode], fill=fill)


@kernel_for(affine, Mask)
def affine_mask(
    mask: Any, angle: Any, translate: Any, scale: Any, shear: Any, fill: Any = None, center: Any = None
) -> Any:
    """Masks rotated, moved, scaled and sheared, by their nearest pixels."""
    return as_image(affine_image)(mask, angle, translate, scale, shear, _NEAREST, fill, center)


@functional
def rotate(
    inpt: Any,
    angle: Any,
    interpolation: Any = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Any = None,
    fill: Any = None,
) -> None:
    """Rotated by an angle in degrees, counter-clockwise; `expand` enlarges the result to hold all of it."""


@image_kernel(rotate)
def rotate_image(
    image: Any,
    angle: Any,
    interpolation: Any = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Any = None,
    fill: Any = None,
) -> Any:
    """An image rotated counter-clockwise."""
    angle = angle % 360
    if center is None and angle % 90 == 0:  # pixels are moved, not computed
        quarters = int(angle // 90)
        if quarters == 0:
            return image.clone()
        if quarters == 2 or expand or image.shape[-1] == image.shape[-2]:
            return image.rot90(quarters, (-2, -1))
    mode = check_mode(interpolation)
    return affine_sample(image, -angle, [0.0, 0.0], 1.0, [0.0, 0.0], mode, center, fill, expand)


@kernel_for(rotate, PIL_IMAGE)
def _rotate_image_pil(
    image: Any,
    angle: Any,
    interpolation: Any = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Any = None,
    fill: Any = None,
) -> Any:
    mode = pil_modes_mapping[check_mode(interpolation)]
    return _FP.rotate(image, angle, interpolation=mode, expand=expand, fill=fill, center=center)


@kernel_for(rotate, Mask)
def rotate_mask(mask: Any, angle: Any, expand: bool = False, center: Any = None, fill: Any = None) -> Any:
    """Masks rotated counter-clockwise, by their nearest pixels."""
    return as_image(rotate_image)(mask, angle, _NEAREST, expand, center, fill)


# ---- pad, crop


@functional
def pad(inpt: Any, padding: Any, fill: Any = None, padding_mode: str = "constant") -> None:
    """With a border: padding of all sides, (x, y), or (left, top, right, bottom)."""


@image_kernel(pad)
def pad_image(image: Any, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Any:
    """An image with a border."""
    return _pad(image, parse_padding(padding), fill, padding_mode)


_pad_image_pil = kernel_for(pad, PIL_IMAGE)(_FP.pad)


@kernel_for(pad, Mask)
def pad_mask(mask: Any, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Any:
    """Masks with a border."""
    if isinstance(fill, (tuple, list)):
        raise ValueError("Non-scalar fill value is not supported")
    return as_image(pad_image)(mask, padding, 0 if fill is None else fill, padding_mode)


@functional
def crop(inpt: Any, top: Any, left: Any, height: Any, width: Any) -> None:
    """A rectangle; what lies outside is black."""


def _outside(start: Any, stop: Any, length: Any) -> tuple[Any, Any]:
    """How many indices of start:stop lie before 0, and from length on."""
    return max(min(stop, 0) - start, 0), max(stop - max(length, start), 0)


@image_kernel(crop)
def crop_image(image: Any, top: Any, left: Any, height: Any, width: Any) -> Any:
    """A rectangle of an image."""
    h, w = image.shape[-2:]
    right, bottom = left + width, top + height
    if left >= 0 and top >= 0 and right <= w and bottom <= h:
        return image[..., top:bottom, left:right]
    image = image[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    return _pad(image, [*_outside(left, right, w), *_outside(top, bottom, h)], 0, "constant")


_crop_image_pil = kernel_for(crop, PIL_IMAGE)(_FP.crop)


@kernel_for(crop, Mask)
def crop_mask(mask: Any, top: Any, left: Any, height: Any, width: Any) -> Any:
    """A rectangle of masks."""
    return as_image(crop_image)(mask, top, left, height, width)


@functional
def center_crop(inpt: Any, output_size: Any) -> None:
    """The middle, with a black border where it is smaller."""


def _center_border(output: Any, size: Any) -> list[Any]:
    """(left, top, right, bottom) that an image lacks."""
    (oh, ow), (h, w) = output, size
    x, y = max(ow - w, 0), max(oh - h, 0)
    return [x // 2, y // 2, (x + 1) // 2, (y + 1) // 2]


@image_kernel(center_crop)
def center_crop_image(image: Any, output_size: Any) -> Any:
    """The middle of an image."""
    h, w = parse_center_size(output_size)
    if h > image.shape[-2] or w > image.shape[-1]:
        image = pad_image(image, _center_border((h, w), image.shape[-2:]), fill=0)
    top, left = center_anchor((h, w), image.shape[-2:])
    return image[..., top : top + h, left : left + w]


@kernel_for(center_crop, PIL_IMAGE)
def _center_crop_image_pil(image: Any, output_size: Any) -> Any:
    h, w = parse_center_size(output_size)
    if h > image.height or w > image.width:
        image = _FP.pad(image, _center_border((h, w), (image.height, image.width)), fill=0)
        if (h, w) == (image.height, image.width):
            return image
    top, left = center_anchor((h, w), (image.height, image.width))
    return _FP.crop(image, top, left, h, w)


@kernel_for(center_crop, Mask)
def center_crop_mask(mask: Any, output_size: Any) -> Any:
    """The middle of masks."""
    return as_image(center_crop_image)(mask, output_size)


@functional
def resized_crop(
    inpt: Any,
    top: Any,
    left: Any,
    height: Any,
    width: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: Any = True,
) -> None:
    """A rectangle, at another size."""


@image_kernel(resized_crop)
def resized_crop_image(
    image: Any,
    top: Any,
    left: Any,
    height: Any,
    width: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: Any = True,
) -> Any:
    """A rectangle of an image, at another size."""
    image = crop_image(image, top, left, height, width)
    return resize_image(image, size, interpolation=interpolation, antialias=antialias)


def _resized_crop_image_pil(
    image: Any,
    top: Any,
    left: Any,
    height: Any,
    width: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
) -> Any:
    return _resize_image_pil(_FP.crop(image, top, left, height, width), size, interpolation)


@kernel_for(resized_crop, PIL_IMAGE)
def _resized_crop_pil(
    image: Any,
    top: Any,
    left: Any,
    height: Any,
    width: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: Any = True,
) -> Any:
    _no_antialias(antialias)
    return _resized_crop_image_pil(image, top, left, height, width, size, interpolation)


@kernel_for(resized_crop, Mask)
def resized_crop_mask(mask: Any, top: Any, left: Any, height: Any, width: Any, size: Any) -> Any:
    """A rectangle of masks, at another size."""
    return resize_mask(crop_mask(mask, top, left, height, width), size)


# ---- perspective, elastic


@functional
def perspective(
    inpt: Any,
    startpoints: Any,
    endpoints: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
    coefficients: Any = None,
) -> None:
    """Seen so that four startpoints (x, y) come to lie at four endpoints."""


@image_kernel(perspective)
def perspective_image(
    image: Any,
    startpoints: Any,
    endpoints: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
    coefficients: Any = None,
) -> Any:
    """An image seen from elsewhere."""
    values = perspective_coefficients(startpoints, endpoints, coefficients)
    return perspective_sample(image, values, check_mode(interpolation), fill)


@kernel_for(perspective, PIL_IMAGE)
def _perspective_image_pil(
    image: Any,
    startpoints: Any,
    endpoints: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
    coefficients: Any = None,
) -> Any:
    values = perspective_coefficients(startpoints, endpoints, coefficients)
    mode = pil_modes_mapping[check_mode(interpolation)]
    return _FP.perspective(image, values, interpolation=mode, fill=fill)


@kernel_for(perspective, Mask)
def perspective_mask(
    mask: Any, startpoints: Any, endpoints: Any, fill: Any = None, coefficients: Any = None
) -> Any:
    """Masks seen from elsewhere, by their nearest pixels."""
    return as_image(perspective_image)(mask, startpoints, endpoints, _NEAREST, fill, coefficients)


@functional
def elastic(
    inpt: Any, displacement: Any, interpolation: Any = InterpolationMode.BILINEAR, fill: Any = None
) -> None:
    """Each pixel from its position moved by a displacement (1, h, w, 2) of [-1, 1]."""


elastic_transform = elastic


@image_kernel(elastic)
def elastic_image(
    image: Any, displacement: Any, interpolation: Any = InterpolationMode.BILINEAR, fill: Any = None
) -> Any:
    """An image whose pixels are moved by a displacement."""
    size = tuple(image.shape[-2:])
    _check_displacement(displacement, size)
    mode = check_mode(interpolation)
    half = image.dtype == rl.float16
    exact = image.float() if half else image
    dtype = exact.dtype if exact.is_floating_point() else rl.float32
    grid = identity_grid(size, image.device, dtype) + displacement.to(image.device, dtype)
    out = sample(exact, grid, mode, fill)
    return out.to(image.dtype) if half else out


@kernel_for(elastic, PIL_IMAGE)
def _elastic_image_pil(
    image: Any, displacement: Any, interpolation: Any = InterpolationMode.BILINEAR, fill: Any = None
) -> Any:
    out = elastic_image(pil_to_tensor(image), displacement, interpolation=interpolation, fill=fill)
    return to_pil_image(out, mode=image.mode)


@kernel_for(elastic, Mask)
def elastic_mask(mask: Any, displacement: Any, fill: Any = None) -> Any:
    """Masks whose pixels are moved by a displacement, by their nearest pixels."""
    return as_image(elastic_image)(mask, displacement, _NEAREST, fill)


# ---- several crops


@functional
def five_crop(inpt: Any, size: Any) -> None:
    """Four corners and the middle."""


def _corners(crop_one: Any, center_one: Any, image: Any, size: Any, have: Any) -> Any:
    h, w = size = setup_size(size)
    if w > have[1] or h > have[0]:
        raise ValueError(f"Requested crop size {size} is bigger than input size {tuple(have)}")
    bottom, right = have[0] - h, have[1] - w
    corners = [(0, 0), (0, right), (bottom, 0), (bottom, right)]
    return (*(crop_one(image, top, left, h, w) for top, left in corners), center_one(image, [h, w]))


def five_crop_image(image: Any, size: Any) -> Any:
    """Four corners of an image and its middle."""
    return _corners(crop_image, center_crop_image, image, size, image.shape[-2:])


def _five_crop_image_pil(image: Any, size: Any) -> Any:
    return _corners(_FP.crop, _center_crop_image_pil, image, size, _get_size_image_pil(image))


def five_crop_video(video: Any, size: Any) -> Any:
    """Four corners of a video and its middle."""
    return five_crop_image(video, size)


@functional
def ten_crop(inpt: Any, size: Any, vertical_flip: bool = False) -> None:
    """Four corners and the middle, of the image and of its mirror image."""


def ten_crop_image(image: Any, size: Any, vertical_flip: bool = False) -> tuple[Any, ...]:
    """Four corners and the middle, of an image and of its mirror image."""
    mirrored = image.flip(-2 if vertical_flip else -1)
    return five_crop_image(image, size) + five_crop_image(mirrored, size)


def _ten_crop_image_pil(image: Any, size: Any, vertical_flip: bool = False) -> tuple[Any, ...]:
    mirrored = _FP.vflip(image) if vertical_flip else _FP.hflip(image)
    return _five_crop_image_pil(image, size) + _five_crop_image_pil(mirrored, size)


def ten_crop_video(video: Any, size: Any, vertical_flip: bool = False) -> tuple[Any, ...]:
    """Four corners and the middle, of a video and of its mirror image."""
    return ten_crop_image(video, size, vertical_flip)


def _each_wrapped(kernel: Any) -> Any:
    def run(inpt: Any, *args: Any, **kwargs: Any) -> Any:
        return tuple(wrap(out, like=inpt) for out in kernel(inpt.as_subclass(rl.Tensor), *args, **kwargs))

    return run


for _function, _image, _video, _pil in (
    (five_crop, five_crop_image, five_crop_video, _five_crop_image_pil),
    (ten_crop, ten_crop_image, ten_crop_video, _ten_crop_image_pil),
):
    _KERNEL_REGISTRY[_function] = {
        rl.Tensor: _image,
        Image: _each_wrapped(_image),
        Video: _each_wrapped(_video),
        PIL_IMAGE: _pil,
    }
for _function in (
    horizontal_flip,
    vertical_flip,
    resize,
    affine,
    rotate,
    pad,
    crop,
    center_crop,
    resized_crop,
    perspective,
    elastic,
):
    _register_points(_function)
