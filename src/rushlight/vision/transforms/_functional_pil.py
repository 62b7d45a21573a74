"""Functions on images of Pillow."""

from __future__ import annotations

import numbers
from typing import Any

from .._pil import is_pil, pil


def _check(img: Any) -> None:
    if not is_pil(img):
        raise TypeError(f"img should be PIL Image. Got {type(img)}")


def _array(img: Any) -> Any:
    import numpy as np

    return np.asarray(img)


def get_dimensions(img: Any) -> list[Any]:
    """[channels, height, width]"""
    _check(img)
    return [get_image_num_channels(img), img.height, img.width]


def get_image_size(img: Any) -> list[Any]:
    _check(img)
    return [img.width, img.height]


def get_image_num_channels(img: Any) -> int:
    _check(img)
    return len(img.getbands())


def hflip(img: Any) -> Any:
    _check(img)
    return img.transpose(pil().Transpose.FLIP_LEFT_RIGHT)


def vflip(img: Any) -> Any:
    _check(img)
    return img.transpose(pil().Transpose.FLIP_TOP_BOTTOM)


def _enhanced(img: Any, kind: Any, factor: Any) -> Any:
    _check(img)
    return getattr(pil("ImageEnhance"), kind)(img).enhance(factor)


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    return _enhanced(img, "Brightness", brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    return _enhanced(img, "Contrast", contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    return _enhanced(img, "Color", saturation_factor)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    return _enhanced(img, "Sharpness", sharpness_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    _check(img)
    if img.mode in ("L", "1", "I", "F"):
        return img
    import numpy as np

    h, s, v = img.convert("HSV").split()
    shift = int(hue_factor * 255) & 255  # hues are a circle of 256 steps
    shifted = (np.asarray(h).astype(np.int16) + shift).astype(np.uint8)
    return pil().merge("HSV", (pil().fromarray(shifted), s, v)).convert(img.mode)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    _check(img)
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    table = [int((255 + 1 - 1e-3) * gain * pow(level / 255.0, gamma)) for level in range(256)]
    return img.convert("RGB").point(table * 3).convert(img.mode)


def _check_kind(name: Any, value: Any, *kinds: Any) -> None:
    if not isinstance(value, kinds):
        raise TypeError(f"Got inappropriate {name} arg")


def _sides(padding: Any) -> Any:
    """(left, top, right, bottom)"""
    _check_kind("padding", padding, numbers.Number, tuple, list)
    padding = [padding] if isinstance(padding, numbers.Number) else list(padding)
    if len(padding) not in (1, 2, 4):
        raise ValueError(
            f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple"
        )
    return padding * (4 // len(padding))


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    _check(img)
    _check_kind("fill", fill, numbers.Number, tuple, list, type(None))
    _check_kind("padding_mode", padding_mode, str)
    left, top, right, bottom = sides = _sides(padding)
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    if padding_mode == "constant":
        whole = pil("ImageOps").expand(img, border=tuple(sides), **fill_options(fill, img, "fill"))
        if img.mode == "P":
            whole.putpalette(img.getpalette())
        return whole
    import numpy as np

    if min(sides) < 0:  # negative sides cut off
        cut = [-min(side, 0) for side in sides]
        img = img.crop((cut[0], cut[1], img.width - cut[2], img.height - cut[3]))
        left, top, right, bottom = (max(side, 0) for side in sides)
    widths = [(top, bottom), (left, right)] + [(0, 0)] * (_array(img).ndim - 2)
    mode: Any = padding_mode
    padded = pil().fromarray(np.pad(_array(img), widths, mode=mode))
    if img.mode == "P":
        padded = pil().frombytes("P", padded.size, padded.tobytes())
        padded.putpalette(img.getpalette())
    return padded


def crop(img: Any, top: Any, left: Any, height: Any, width: Any) -> Any:
    _check(img)
    return img.crop((left, top, left + width, top + height))


def resize(img: Any, size: Any, interpolation: Any = 2) -> Any:
    _check(img)
    if not isinstance(size, list) or len(size) != 2:
        raise TypeError(f"Got inappropriate size arg: {size}")
    height, width = size
    return img.resize((width, height), interpolation)


def fill_options(
    fill: Any, img: Any, name: str = "fillcolor"
) -> dict[str, Any | Any | int | float | tuple[Any, ...]]:
    """The colour outside the image, as an argument of Pillow's functions."""
    bands = len(img.getbands())
    if fill is None:
        fill = 0
    if isinstance(fill, (int, float)) and bands > 1:
        fill = (fill,) * bands
    if isinstance(fill, (list, tuple)):
        if len(fill) == 1:
            fill = tuple(fill) * bands
        elif len(fill) != bands:
            raise ValueError(
                f"The number of elements in 'fill' does not match the number of channels of the image ({len(fill)} != {bands})"
            )
        fill = tuple(fill)
    if img.mode != "F":
        fill = tuple(int(f) for f in fill) if isinstance(fill, tuple) else int(fill)
    if isinstance(fill, tuple) and bands == 1:
        fill = fill[0]
    return {name: fill}


def affine(img: Any, matrix: Any, interpolation: Any = 0, fill: Any = None) -> Any:
    _check(img)
    return img.transform(img.size, pil().Transform.AFFINE, matrix, interpolation, **fill_options(fill, img))


def rotate(
    img: Any, angle: Any, interpolation: Any = 0, expand: bool = False, center: Any = None, fill: Any = None
) -> Any:
    _check(img)
    return img.rotate(angle, interpolation, expand, center, **fill_options(fill, img))


def perspective(img: Any, perspective_coeffs: Any, interpolation: Any = 3, fill: Any = None) -> Any:
    _check(img)
    return img.transform(
        img.size, pil().Transform.PERSPECTIVE, perspective_coeffs, interpolation, **fill_options(fill, img)
    )


def to_grayscale(img: Any, num_output_channels: int) -> Any:
    _check(img)
    grey = img.convert("L")
    if num_output_channels == 1:
        return grey
    if num_output_channels == 3:
        return pil().merge("RGB", (grey, grey, grey))
    raise ValueError("num_output_channels should be either 1 or 3")


def invert(img: Any) -> Any:
    _check(img)
    return pil("ImageOps").invert(img)


def posterize(img: Any, bits: int) -> Any:
    _check(img)
    return pil("ImageOps").posterize(img, bits)


def solarize(img: Any, threshold: Any) -> Any:
    _check(img)
    return pil("ImageOps").solarize(img, threshold)


def autocontrast(img: Any) -> Any:
    _check(img)
    return pil("ImageOps").autocontrast(img)


def equalize(img: Any) -> Any:
    _check(img)
    return pil("ImageOps").equalize(img)
