"""Functions on images of Pillow."""

import numbers

from .._pil import is_pil, pil


def _check(img):
    if not is_pil(img):
        raise TypeError(f"img should be PIL Image. Got {type(img)}")


def _array(img):
    import numpy as np

    return np.asarray(img)


def get_dimensions(img):
    """[channels, height, width]"""
    _check(img)
    return [get_image_num_channels(img), img.height, img.width]


def get_image_size(img):
    _check(img)
    return [img.width, img.height]


def get_image_num_channels(img):
    _check(img)
    return len(img.getbands())


def hflip(img):
    _check(img)
    return img.transpose(pil().Transpose.FLIP_LEFT_RIGHT)


def vflip(img):
    _check(img)
    return img.transpose(pil().Transpose.FLIP_TOP_BOTTOM)


def _enhanced(img, kind, factor):
    _check(img)
    return getattr(pil("ImageEnhance"), kind)(img).enhance(factor)


def adjust_brightness(img, brightness_factor):
    return _enhanced(img, "Brightness", brightness_factor)


def adjust_contrast(img, contrast_factor):
    return _enhanced(img, "Contrast", contrast_factor)


def adjust_saturation(img, saturation_factor):
    return _enhanced(img, "Color", saturation_factor)


def adjust_sharpness(img, sharpness_factor):
    return _enhanced(img, "Sharpness", sharpness_factor)


def adjust_hue(img, hue_factor):
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


def adjust_gamma(img, gamma, gain=1):
    _check(img)
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    table = [int((255 + 1 - 1e-3) * gain * pow(level / 255.0, gamma)) for level in range(256)]
    return img.convert("RGB").point(table * 3).convert(img.mode)


def _check_kind(name, value, *kinds):
    if not isinstance(value, kinds):
        raise TypeError(f"Got inappropriate {name} arg")


def _sides(padding):
    """(left, top, right, bottom)"""
    _check_kind("padding", padding, numbers.Number, tuple, list)
    padding = [padding] if isinstance(padding, numbers.Number) else list(padding)
    if len(padding) not in (1, 2, 4):
        raise ValueError(
            f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple"
        )
    return padding * (4 // len(padding))


def pad(img, padding, fill=0, padding_mode="constant"):
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
    padded = pil().fromarray(np.pad(_array(img), widths, mode=padding_mode))
    if img.mode == "P":
        padded = pil().frombytes("P", padded.size, padded.tobytes())
        padded.putpalette(img.getpalette())
    return padded


def crop(img, top, left, height, width):
    _check(img)
    return img.crop((left, top, left + width, top + height))


def resize(img, size, interpolation=2):
    _check(img)
    if not isinstance(size, list) or len(size) != 2:
        raise TypeError(f"Got inappropriate size arg: {size}")
    height, width = size
    return img.resize((width, height), interpolation)


def fill_options(fill, img, name="fillcolor"):
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


def affine(img, matrix, interpolation=0, fill=None):
    _check(img)
    return img.transform(img.size, pil().Transform.AFFINE, matrix, interpolation, **fill_options(fill, img))


def rotate(img, angle, interpolation=0, expand=False, center=None, fill=None):
    _check(img)
    return img.rotate(angle, interpolation, expand, center, **fill_options(fill, img))


def perspective(img, perspective_coeffs, interpolation=3, fill=None):
    _check(img)
    return img.transform(
        img.size, pil().Transform.PERSPECTIVE, perspective_coeffs, interpolation, **fill_options(fill, img)
    )


def to_grayscale(img, num_output_channels):
    _check(img)
    grey = img.convert("L")
    if num_output_channels == 1:
        return grey
    if num_output_channels == 3:
        return pil().merge("RGB", (grey, grey, grey))
    raise ValueError("num_output_channels should be either 1 or 3")


def invert(img):
    _check(img)
    return pil("ImageOps").invert(img)


def posterize(img, bits):
    _check(img)
    return pil("ImageOps").posterize(img, bits)


def solarize(img, threshold):
    _check(img)
    return pil("ImageOps").solarize(img, threshold)


def autocontrast(img):
    _check(img)
    return pil("ImageOps").autocontrast(img)


def equalize(img):
    _check(img)
    return pil("ImageOps").equalize(img)
