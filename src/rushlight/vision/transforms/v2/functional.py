"""Functions of v2: pictures (of Pillow or tensors), videos, masks and boxes, each treated as what it is."""

import functools

import rushlight as rl
from rushlight.vision.tv_tensors import BoundingBoxes, Image, Mask, TVTensor, wrap

from ..._pil import is_pil
from .. import functional as F
from .._functional_pil import _sides as _pil_sides
from .._geometry import resized_size
from .._interpolation import InterpolationMode as InterpolationMode
from .._interpolation import mode_of_int, setup_size
from .._to_from import pil_to_tensor as pil_to_tensor
from .._to_from import to_pil_image as to_pil_image
from .._to_from import to_tensor as to_tensor
from . import _boxes
from ._boxes import clamp_bounding_boxes as clamp_bounding_boxes
from ._boxes import convert_bounding_box_format as convert_bounding_box_format

_BILINEAR, _NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


def is_pure_tensor(value):
    """Whether a value is a tensor of no kind."""
    return isinstance(value, rl.Tensor) and not isinstance(value, TVTensor)


def mode(interpolation):
    """A mode from its name or Pillow's number."""
    if isinstance(interpolation, str):
        return InterpolationMode(interpolation)
    return mode_of_int(interpolation) if isinstance(interpolation, int) else interpolation


def _unwrapped(function):
    """A function of plain tensors, for pictures of a kind too; more than one leading dimension is folded away."""

    @functools.wraps(function)
    def run(inpt, *args, **kwargs):
        if not isinstance(inpt, TVTensor):
            return function(inpt, *args, **kwargs)
        x = inpt.as_subclass(rl.Tensor)
        lead = x.shape[:-3] if x.ndim > 4 else None
        out = function(x.reshape(-1, *x.shape[-3:]) if lead is not None else x, *args, **kwargs)
        return wrap(out.reshape(*lead, *out.shape[1:]) if lead is not None else out, like=inpt)

    return run


def _colors(name):
    """A function of colours: boxes and masks are left alone."""
    run = _unwrapped(getattr(F, name))

    def change(inpt, *args, **kwargs):
        return inpt if isinstance(inpt, (Mask, BoundingBoxes)) else run(inpt, *args, **kwargs)

    change.__name__ = change.__qualname__ = name
    change.__doc__ = getattr(F, name).__doc__
    return change


_COLORS = (
    "adjust_brightness adjust_contrast adjust_saturation adjust_hue adjust_gamma adjust_sharpness autocontrast invert "
    "solarize normalize gaussian_blur rgb_to_grayscale erase"
)
(
    adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue, adjust_gamma, adjust_sharpness, autocontrast, invert,
    solarize, normalize, gaussian_blur, rgb_to_grayscale, erase,
) = (_colors(n) for n in _COLORS.split())  # fmt: skip
to_grayscale = rgb_to_grayscale
_equalize_bytes, _posterize_bytes = _colors("equalize"), _colors("posterize")


def _is_float(inpt):
    return (
        isinstance(inpt, rl.Tensor)
        and inpt.is_floating_point()
        and not isinstance(inpt, (Mask, BoundingBoxes))
    )


def equalize(inpt):
    """Each channel with its histogram made flat; floats by way of bytes."""
    if not _is_float(inpt):
        return _equalize_bytes(inpt)
    return to_dtype(_equalize_bytes(to_dtype(inpt, rl.uint8, scale=True)), inpt.dtype, scale=True)


def posterize(inpt, bits):
    """Each channel in so many bits, floats in so many levels of [0, 1]."""
    if not _is_float(inpt):
        return _posterize_bytes(inpt, bits)
    levels = 1 << bits
    return _unwrapped(lambda x: (x * levels).floor().clamp(0, levels - 1) * (1.0 / levels))(inpt)


def _on_mask(mask, function):
    """A function of pictures on masks (..., H, W)."""
    x = mask.as_subclass(rl.Tensor)
    flat = x.reshape(-1, 1, *x.shape[-2:])
    cast = flat.dtype == rl.bool
    out = function(flat.to(rl.uint8) if cast else flat)
    out = out.to(x.dtype) if cast else out
    return wrap(out.reshape(*x.shape[:-2], *out.shape[-2:]), like=mask)


def get_size(inpt):
    """[height, width]"""
    if isinstance(inpt, BoundingBoxes):
        return list(inpt.canvas_size)
    return list(inpt.shape[-2:]) if isinstance(inpt, rl.Tensor) else F.get_dimensions(inpt)[1:]


def get_dimensions(inpt):
    """[channels, height, width]"""
    return F.get_dimensions(inpt)


def get_num_channels(inpt):
    """How many channels a picture has."""
    return F.get_image_num_channels(inpt)


get_image_num_channels = get_num_channels


def get_image_size(inpt):
    """[height, width]"""
    return get_size(inpt)


def horizontal_flip(inpt):
    """Left and right exchanged."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.flip(inpt, True)
    return _on_mask(inpt, F.hflip) if isinstance(inpt, Mask) else _unwrapped(F.hflip)(inpt)


def vertical_flip(inpt):
    """Upside down."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.flip(inpt, False)
    return _on_mask(inpt, F.vflip) if isinstance(inpt, Mask) else _unwrapped(F.vflip)(inpt)


hflip, vflip = horizontal_flip, vertical_flip


def _new_size(inpt, size, max_size):
    if size is None or isinstance(size, int) or len(size) == 1:
        wanted = size if size is None or not isinstance(size, int) else [size]
        return resized_size(get_size(inpt), wanted, max_size, allow_size_none=True)
    if max_size is not None:
        raise ValueError("max_size should only be passed if size specifies the length of the smaller edge.")
    return list(size)


def resize(inpt, size, interpolation=_BILINEAR, max_size=None, antialias=True):
    """At another size: (h, w), or the length of the shorter edge."""
    size = _new_size(inpt, size, max_size)
    if isinstance(inpt, BoundingBoxes):
        return _boxes.resize(inpt, size)
    if isinstance(inpt, Mask):
        return _on_mask(inpt, lambda x: F.resize(x, size, _NEAREST))
    return _unwrapped(F.resize)(inpt, size, mode(interpolation), antialias=antialias)


def crop(inpt, top, left, height, width):
    """A rectangle; what lies outside is black."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.crop(inpt, top, left, height, width)
    if isinstance(inpt, Mask):
        return _on_mask(inpt, lambda x: F.crop(x, top, left, height, width))
    return _unwrapped(F.crop)(inpt, top, left, height, width)


def center_crop(inpt, output_size):
    """The middle, padded with black where it is smaller."""
    height, width = setup_size(output_size)
    if isinstance(inpt, BoundingBoxes):
        h, w = inpt.canvas_size
        if height > h or width > w:
            x, y = max(width - w, 0), max(height - h, 0)
            inpt = _boxes.pad(inpt, x // 2, y // 2, (x + 1) // 2, (y + 1) // 2)
            h, w = inpt.canvas_size
        return _boxes.crop(inpt, int(round((h - height) / 2)), int(round((w - width) / 2)), height, width)
    if isinstance(inpt, Mask):
        return _on_mask(inpt, lambda x: F.center_crop(x, (height, width)))
    return _unwrapped(F.center_crop)(inpt, (height, width))


def resized_crop(inpt, top, left, height, width, size, interpolation=_BILINEAR, antialias=True):
    """A rectangle, at another size."""
    return resize(crop(inpt, top, left, height, width), size, interpolation, antialias=antialias)


def pad(inpt, padding, fill=None, padding_mode="constant"):
    """With a border."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.pad(inpt, *_pil_sides(padding))
    fill = 0 if fill is None else fill
    if isinstance(inpt, Mask):
        return _on_mask(
            inpt, lambda x: F.pad(x, padding, fill if isinstance(fill, (int, float)) else 0, padding_mode)
        )
    if isinstance(inpt, rl.Tensor) and isinstance(fill, (list, tuple)):
        planes = zip(inpt.split(1, dim=-3), fill if len(fill) > 1 else [fill[0]] * inpt.shape[-3])
        out = rl.cat([F.pad(x.as_subclass(rl.Tensor), padding, f, padding_mode) for x, f in planes], dim=-3)
        return wrap(out, like=inpt) if isinstance(inpt, TVTensor) else out
    return _unwrapped(F.pad)(inpt, padding, fill, padding_mode)


def five_crop(inpt, size):
    """Four corners and the middle."""
    return _several(inpt, lambda x: F.five_crop(x, size))


def ten_crop(inpt, size, vertical_flip=False):
    """Four corners and the middle, of the picture and of its mirror image."""
    return _several(inpt, lambda x: F.ten_crop(x, size, vertical_flip))


def _several(inpt, function):
    if not isinstance(inpt, TVTensor):
        return function(inpt)
    return tuple(wrap(x, like=inpt) for x in function(inpt.as_subclass(rl.Tensor)))


def rotate(inpt, angle, interpolation=_NEAREST, expand=False, center=None, fill=None):
    """Turned by an angle in degrees, counter-clockwise."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.affine(inpt, -angle, [0.0, 0.0], 1.0, [0.0, 0.0], center, expand)
    if isinstance(inpt, Mask):
        return _on_mask(inpt, lambda x: F.rotate(x, angle, _NEAREST, expand, center, fill))
    return _unwrapped(F.rotate)(inpt, angle, mode(interpolation), expand, center, fill)


def affine(inpt, angle, translate, scale, shear, interpolation=_NEAREST, fill=None, center=None):
    """Turned, moved, scaled and sheared; the middle stays where it is."""
    if isinstance(inpt, BoundingBoxes):
        shear = [shear, 0.0] if isinstance(shear, (int, float)) else list(shear)
        return _boxes.affine(inpt, angle, translate, scale, shear, center)
    if isinstance(inpt, Mask):
        return _on_mask(inpt, lambda x: F.affine(x, angle, translate, scale, shear, _NEAREST, fill, center))
    return _unwrapped(F.affine)(inpt, angle, translate, scale, shear, mode(interpolation), fill, center)


def perspective(inpt, startpoints, endpoints, interpolation=_BILINEAR, fill=None):
    """Seen so that four startpoints (x, y) come to lie at four endpoints."""
    if isinstance(inpt, BoundingBoxes):
        return _boxes.perspective(inpt, startpoints, endpoints)
    if isinstance(inpt, Mask):
        return _on_mask(inpt, lambda x: F.perspective(x, startpoints, endpoints, _NEAREST, fill))
    return _unwrapped(F.perspective)(inpt, startpoints, endpoints, mode(interpolation), fill)


def elastic(inpt, displacement, interpolation=_BILINEAR, fill=None):
    """Each pixel from its place moved by a displacement (1, h, w, 2) of [-1, 1]. Boxes are not moved this way."""
    if isinstance(inpt, BoundingBoxes):
        raise NotImplementedError(
            "elastic: boxes under a displacement of every pixel; leave them out of the sample"
        )
    if isinstance(inpt, Mask):
        return _on_mask(inpt, lambda x: F.elastic_transform(x, displacement, _NEAREST, fill))
    return _unwrapped(F.elastic_transform)(inpt, displacement, mode(interpolation), fill)


elastic_transform = elastic


def to_image(inpt):
    """A picture of Pillow, an array (H, W, C) or a tensor as an Image, in its own type."""
    if is_pil(inpt):
        return Image(pil_to_tensor(inpt))
    if isinstance(inpt, rl.Tensor):
        return Image(inpt)
    if type(inpt).__module__ == "numpy":
        array = inpt[:, :, None] if inpt.ndim == 2 else inpt
        return Image(rl.from_numpy(array.transpose((2, 0, 1)).copy()))
    raise TypeError(
        f"Input can either be a pure Tensor, a numpy array, or a PIL image, but got {type(inpt)} instead."
    )


def to_dtype(inpt, dtype=rl.float32, scale=False):
    """In another type; `scale` keeps white white. Masks and boxes are cast only."""
    if scale and not isinstance(inpt, (Mask, BoundingBoxes)):
        return _unwrapped(F.convert_image_dtype)(inpt, dtype)
    return inpt.to(dtype)


def convert_image_dtype(image, dtype=rl.float32):
    """In another type, with white kept white."""
    return to_dtype(image, dtype, scale=True)


def grayscale_to_rgb(inpt):
    """One channel as three; three stay."""
    if is_pil(inpt):
        return inpt.convert("RGB")
    if inpt.shape[-3] >= 3:
        return inpt
    return _unwrapped(lambda x: x.expand(*x.shape[:-3], 3, *x.shape[-2:]))(inpt)


def gaussian_noise(inpt, mean=0.0, sigma=0.1, clip=True):
    """With normal noise added, of floats."""
    if not inpt.is_floating_point():
        raise ValueError(f"Input tensor is expected to be in float dtype, got dtype={inpt.dtype}")
    if sigma < 0:
        raise ValueError(f"sigma shouldn't be negative. Got {sigma}")

    def noisy(x):
        out = x + (mean + rl.randn_like(x) * sigma)
        return out.clamp(0, 1) if clip else out

    return _unwrapped(noisy)(inpt)


def permute_channels(inpt, permutation):
    """Channels in another order."""
    if is_pil(inpt):
        return to_pil_image(pil_to_tensor(inpt)[list(permutation)])
    return _unwrapped(lambda x: x[..., list(permutation), :, :])(inpt)
