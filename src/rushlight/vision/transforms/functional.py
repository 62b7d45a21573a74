"""Functions on images, of Pillow or in tensors (..., C, H, W)."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight as rl

from .._pil import is_pil
from . import _functional_pil as F_pil
from . import _functional_tensor as F_t
from ._checks import check_affine, check_angle, check_sequence
from ._functional_tensor import convert_image_dtype as convert_image_dtype
from ._geometry import inverse_affine_matrix as _get_inverse_affine_matrix
from ._geometry import perspective_coeffs as _get_perspective_coeffs
from ._geometry import resized_size as _compute_resized_output_size
from ._interpolation import InterpolationMode as InterpolationMode
from ._interpolation import check_mode as _mode
from ._interpolation import pil_modes_mapping as pil_modes_mapping
from ._interpolation import setup_size
from ._to_from import pil_to_tensor as pil_to_tensor
from ._to_from import to_pil_image as to_pil_image
from ._to_from import to_tensor as to_tensor

_NEAREST, _BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR


def _home(img: Any) -> Any:
    """The functions for this kind of image."""
    return F_t if isinstance(img, rl.Tensor) else F_pil


def _with_mode(img: Any, interpolation: Any) -> Any:
    """The mode as the functions for this kind of image name it."""
    return interpolation.value if isinstance(img, rl.Tensor) else pil_modes_mapping[interpolation]


def get_dimensions(img: Any) -> list[Any]:
    """[channels, height, width]"""
    return _home(img).get_dimensions(img)


def get_image_size(img: Any) -> list[Any]:
    """[width, height]"""
    return _home(img).get_image_size(img)


def get_image_num_channels(img: Any) -> Any:
    """How many channels an image has."""
    return _home(img).get_image_num_channels(img)


def normalize(tensor: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
    """(tensor - mean) / std by channels."""
    if not isinstance(tensor, rl.Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    return F_t.normalize(tensor, mean=mean, std=std, inplace=inplace)


def resize(
    img: Any, size: Any, interpolation: Any = _BILINEAR, max_size: Any = None, antialias: Any = True
) -> Any:
    """The image at another size: (h, w), or the length of its shorter edge, the longer then at most max_size."""
    interpolation = _mode(interpolation)
    if isinstance(size, (list, tuple)):
        if len(size) not in (1, 2):
            raise ValueError(
                f"Size must be an int or a 1 or 2 element tuple/list, not a {len(size)} element tuple/list"
            )
        if max_size is not None and len(size) != 1:
            raise ValueError(
                "max_size should only be passed if size specifies the length of the smaller edge, "
                "i.e. size should be an int or a sequence of length 1 in torchscript mode."
            )
    _, h, w = get_dimensions(img)
    one = isinstance(size, int) or len(size) == 1
    out = (
        _compute_resized_output_size((h, w), [size] if isinstance(size, int) else size, max_size)
        if one
        else list(size)
    )
    if [h, w] == list(out):
        return img
    if not isinstance(img, rl.Tensor):
        if antialias is False:
            warnings.warn(
                "Anti-alias option is always applied for PIL Image input. Argument antialias is ignored.",
                stacklevel=2,
            )
        return F_pil.resize(img, size=list(out), interpolation=pil_modes_mapping[interpolation])
    return F_t.resize(img, size=out, interpolation=interpolation.value, antialias=antialias)


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """The image with a border: padding of all sides, (x, y), or (left, top, right, bottom)."""
    return _home(img).pad(img, padding=padding, fill=fill, padding_mode=padding_mode)


def crop(img: Any, top: Any, left: Any, height: Any, width: Any) -> Any:
    """A rectangle of the image; what lies outside is black."""
    return _home(img).crop(img, top, left, height, width)


def center_crop(img: Any, output_size: Any) -> Any:
    """The middle of an image, padded with black if it is smaller."""
    oh, ow = setup_size(output_size)
    _, h, w = get_dimensions(img)
    if ow > w or oh > h:
        x, y = max(ow - w, 0), max(oh - h, 0)
        img = pad(img, [x // 2, y // 2, (x + 1) // 2, (y + 1) // 2], fill=0)
        _, h, w = get_dimensions(img)
        if ow == w and oh == h:
            return img
    return crop(img, int(round((h - oh) / 2.0)), int(round((w - ow) / 2.0)), oh, ow)


def resized_crop(
    img: Any,
    top: Any,
    left: Any,
    height: Any,
    width: Any,
    size: Any,
    interpolation: Any = _BILINEAR,
    antialias: Any = True,
) -> Any:
    """A rectangle of the image, at another size."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def hflip(img: Any) -> Any:
    """The image with left and right exchanged."""
    return _home(img).hflip(img)


def vflip(img: Any) -> Any:
    """The image upside down."""
    return _home(img).vflip(img)


def perspective(
    img: Any, startpoints: Any, endpoints: Any, interpolation: Any = _BILINEAR, fill: Any = None
) -> Any:
    """The image seen so that four startpoints (x, y) come to lie at four endpoints."""
    coeffs = _get_perspective_coeffs(startpoints, endpoints)
    interpolation = _mode(interpolation)
    return _home(img).perspective(img, coeffs, interpolation=_with_mode(img, interpolation), fill=fill)


def five_crop(img: Any, size: Any) -> Any:
    """Four corners and the middle."""
    h, w = size = setup_size(size)
    _, ih, iw = get_dimensions(img)
    if w > iw or h > ih:
        raise ValueError(f"Requested crop size {size} is bigger than input size {(ih, iw)}")
    corners = [(0, 0), (0, iw - w), (ih - h, 0), (ih - h, iw - w)]
    return (*(crop(img, top, left, h, w) for top, left in corners), center_crop(img, [h, w]))


def ten_crop(img: Any, size: Any, vertical_flip: bool = False) -> tuple[rl.Tensor | Any, ...]:
    """Four corners and the middle, of the image and of its mirror image."""
    size = setup_size(size)
    mirrored = vflip(img) if vertical_flip else hflip(img)
    return five_crop(img, size) + five_crop(mirrored, size)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Brighter by a factor: 0 is black, 1 the image itself."""
    return _home(img).adjust_brightness(img, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """More contrast by a factor: 0 is grey, 1 the image itself."""
    return _home(img).adjust_contrast(img, contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """More colour by a factor: 0 is black and white, 1 the image itself."""
    return _home(img).adjust_saturation(img, saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Hues shifted by a part of the circle, in [-0.5, 0.5]."""
    return _home(img).adjust_hue(img, hue_factor)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """gain * x ** gamma, with x in [0, 1]."""
    return _home(img).adjust_gamma(img, gamma, gain)


def _center(img: Any, center: Any) -> list[float] | list[Any]:
    """The centre of a rotation, from the middle of the image, in pixels."""
    if center is None:
        return [0.0, 0.0]
    _, h, w = get_dimensions(img)
    return [1.0 * (c - s * 0.5) for c, s in zip(center, [w, h])]


def rotate(
    img: Any,
    angle: Any,
    interpolation: Any = _NEAREST,
    expand: bool = False,
    center: Any = None,
    fill: Any = None,
) -> Any:
    """The image rotated by an angle in degrees, counter-clockwise; `expand` enlarges the result to hold all of it."""
    interpolation = _mode(interpolation)
    check_angle(angle)
    if center is not None:
        check_sequence(center, "center")
    if not isinstance(img, rl.Tensor):
        return F_pil.rotate(
            img, angle, pil_modes_mapping[interpolation], expand=expand, center=center, fill=fill
        )
    matrix = _get_inverse_affine_matrix(_center(img, center), -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    return F_t.rotate(img, matrix, interpolation=interpolation.value, expand=expand, fill=fill)


def affine(
    img: Any,
    angle: Any,
    translate: Any,
    scale: Any,
    shear: Any,
    interpolation: Any = _NEAREST,
    fill: Any = None,
    center: Any = None,
) -> Any:
    """The image rotated, moved, scaled and sheared; the middle stays where it is."""
    interpolation = _mode(interpolation)
    angle, translate, shear = check_affine(angle, translate, scale, shear, center)
    _, h, w = get_dimensions(img)
    if not isinstance(img, rl.Tensor):
        middle = [w * 0.5, h * 0.5] if center is None else center
        matrix = _get_inverse_affine_matrix(middle, angle, translate, scale, shear)
        return F_pil.affine(img, matrix=matrix, interpolation=pil_modes_mapping[interpolation], fill=fill)
    matrix = _get_inverse_affine_matrix(
        _center(img, center), angle, [1.0 * t for t in translate], scale, shear
    )
    return F_t.affine(img, matrix=matrix, interpolation=interpolation.value, fill=fill)


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """An image of Pillow without colours, in one or three channels."""
    if is_pil(img):
        return F_pil.to_grayscale(img, num_output_channels)
    raise TypeError("Input should be PIL Image")


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """The image without colours, in one or three channels."""
    if isinstance(img, rl.Tensor):
        return F_t.rgb_to_grayscale(img, num_output_channels)
    return F_pil.to_grayscale(img, num_output_channels)


def erase(img: Any, i: Any, j: Any, h: Any, w: Any, v: Any, inplace: bool = False) -> Any:
    """A rectangle of a tensor replaced by values."""
    if not isinstance(img, rl.Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}")
    return F_t.erase(img, i, j, h, w, v, inplace=inplace)


def _pair_of(name: Any, value: Any) -> Any:
    """[x, y] of a number, or of a sequence of one or two."""
    if not isinstance(value, (int, float, list, tuple)):
        raise TypeError(f"{name} should be either int or float or sequence of them. Got {type(value)}")
    value = [value] if isinstance(value, (int, float)) else list(value)
    value = value * 2 if len(value) == 1 else value
    if len(value) != 2:
        raise ValueError(f"If {name} is a sequence, its length should be 2. Got {len(value)}")
    return value


def gaussian_blur(img: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """The image smoothed by a Gaussian of odd size; sigma is 0.15 * size + 0.35 unless given."""
    if isinstance(kernel_size, (list, tuple)) and len(kernel_size) != 2:
        raise ValueError(f"If kernel_size is a sequence its length should be 2. Got {len(kernel_size)}")
    kernel_size = _pair_of("kernel_size", kernel_size)
    for size in kernel_size:
        if size % 2 == 0 or size < 0:
            raise ValueError(f"kernel_size should have odd and positive integers. Got {kernel_size}")
    sigma = (
        [size * 0.15 + 0.35 for size in kernel_size]
        if sigma is None
        else [float(s) for s in _pair_of("sigma", sigma)]
    )
    for s in sigma:
        if s <= 0.0:
            raise ValueError(f"sigma should have positive values. Got {sigma}")
    return _through_tensor(img, lambda t: F_t.gaussian_blur(t, kernel_size, sigma))


def _through_tensor(img: Any, function: Any) -> Any:
    """A function of tensors, also for images of Pillow."""
    if isinstance(img, rl.Tensor):
        return function(img)
    if not is_pil(img):
        raise TypeError(f"img should be PIL Image or Tensor. Got {type(img)}")
    return to_pil_image(function(pil_to_tensor(img)), mode=img.mode)


def invert(img: Any) -> Any:
    """The negative."""
    return _home(img).invert(img)


def posterize(img: Any, bits: int) -> Any:
    """Each channel in so many bits."""
    if not 0 <= bits <= 8:
        raise ValueError(f"The number if bits should be between 0 and 8. Got {bits}")
    return _home(img).posterize(img, bits)


def solarize(img: Any, threshold: Any) -> rl.Tensor:
    """Values from the threshold on inverted."""
    return _home(img).solarize(img, threshold)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """Sharper by a factor: 0 is blurred, 1 the image itself."""
    return _home(img).adjust_sharpness(img, sharpness_factor)


def autocontrast(img: Any) -> Any:
    """Each channel stretched so that its darkest value is black and its brightest white."""
    return _home(img).autocontrast(img)


def equalize(img: Any) -> rl.Tensor:
    """Each channel with its histogram made flat."""
    return _home(img).equalize(img)


def elastic_transform(img: Any, displacement: Any, interpolation: Any = _BILINEAR, fill: Any = None) -> Any:
    """Each pixel from its position moved by a displacement (1, h, w, 2) of [-1, 1]."""
    interpolation = _mode(interpolation)
    if not isinstance(displacement, rl.Tensor):
        raise TypeError("Argument displacement should be a Tensor")
    if not isinstance(img, rl.Tensor) and not is_pil(img):
        raise TypeError(f"img should be PIL Image or Tensor. Got {type(img)}")
    _, h, w = get_dimensions(img)
    if tuple(displacement.shape) != (1, h, w, 2):
        raise ValueError(
            f"Argument displacement shape should be {(1, h, w, 2)}, but given {tuple(displacement.shape)}"
        )
    return _through_tensor(img, lambda t: F_t.elastic_transform(t, displacement, interpolation.value, fill))
