"""Functionals of colours, and their kernels."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from ... import _functional_pil as _FP
from ..._tensor_base import max_value
from ..._tensor_color import _hsv, _rgb
from ..._to_from import pil_to_tensor, to_pil_image
from ._misc import _num_value_bits, to_dtype_image
from ._utils import PIL_IMAGE, functional, image_kernel, kernel_for


def _grey(image: Any) -> Any:
    """Images without colours, not rounded."""
    r, g, b = image.unbind(dim=-3)
    return (r * 0.2989 + g * 0.587 + b * 0.114).unsqueeze(-3)


def _blend(one: Any, other: Any, ratio: Any) -> Any:
    """ratio * one + (1 - ratio) * other, within black and white."""
    ratio = float(ratio)
    return (one * ratio + other * (1.0 - ratio)).clamp(0, max_value(one.dtype)).to(one.dtype)


def _check_factor(name: Any, factor: Any) -> None:
    if factor < 0:
        raise ValueError(f"{name} ({factor}) is not non-negative.")


def _one_or_three(image: Any) -> None:
    if image.shape[-3] not in (1, 3):
        raise TypeError(
            f"Input image tensor permitted channel values are 1 or 3, but found {image.shape[-3]}"
        )


@functional
def rgb_to_grayscale(inpt: Any, num_output_channels: int = 1) -> None:
    """Without colours, in one or three channels."""


def _check_outputs(num_output_channels: int) -> None:
    if num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels must be 1 or 3, got {num_output_channels}.")


@image_kernel(rgb_to_grayscale)
def rgb_to_grayscale_image(image: Any, num_output_channels: int = 1) -> Any:
    """An image without colours."""
    _check_outputs(num_output_channels)
    if image.shape[-3] == 1:
        return image.clone() if num_output_channels == 1 else grayscale_to_rgb_image(image)
    grey = _grey(image).to(image.dtype)
    return grey if num_output_channels == 1 else grey.expand(image.shape)


@kernel_for(rgb_to_grayscale, PIL_IMAGE)
def _rgb_to_grayscale_image_pil(image: Any, num_output_channels: int = 1) -> Any:
    _check_outputs(num_output_channels)
    return _FP.to_grayscale(image, num_output_channels=num_output_channels)


to_grayscale = rgb_to_grayscale


@functional
def grayscale_to_rgb(inpt: Any) -> None:
    """One channel as three; three stay."""


@image_kernel(grayscale_to_rgb)
def grayscale_to_rgb_image(image: Any) -> Any:
    """An image of one channel in three."""
    if image.shape[-3] >= 3:
        return image
    return image.repeat(*[1] * (image.ndim - 3), 3, 1, 1)


@kernel_for(grayscale_to_rgb, PIL_IMAGE)
def grayscale_to_rgb_image_pil(image: Any) -> Any:
    """An image of Pillow in three channels."""
    return image.convert(mode="RGB")


@functional
def adjust_brightness(inpt: Any, brightness_factor: float) -> None:
    """Brighter by a factor: 0 is black, 1 the image itself."""


@image_kernel(adjust_brightness)
def adjust_brightness_image(image: Any, brightness_factor: float) -> Any:
    """An image made brighter."""
    _check_factor("brightness_factor", brightness_factor)
    _one_or_three(image)
    return (image * brightness_factor).clamp(0, max_value(image.dtype)).to(image.dtype)


@functional
def adjust_saturation(inpt: Any, saturation_factor: float) -> None:
    """More colour by a factor: 0 is black and white, 1 the image itself."""


@image_kernel(adjust_saturation)
def adjust_saturation_image(image: Any, saturation_factor: float) -> Any:
    """An image with more colour."""
    _check_factor("saturation_factor", saturation_factor)
    _one_or_three(image)
    if image.shape[-3] == 1:
        return image
    grey = _grey(image)
    return _blend(image, grey if image.is_floating_point() else grey.floor(), saturation_factor)


@functional
def adjust_contrast(inpt: Any, contrast_factor: float) -> None:
    """More contrast by a factor: 0 is grey, 1 the image itself."""


@image_kernel(adjust_contrast)
def adjust_contrast_image(image: Any, contrast_factor: float) -> Any:
    """An image with more contrast."""
    _check_factor("contrast_factor", contrast_factor)
    _one_or_three(image)
    exact = image.is_floating_point()
    if image.shape[-3] == 3:
        grey = _grey(image) if exact else _grey(image).floor()
    else:
        grey = image if exact else image.float()
    return _blend(image, grey.mean(dim=(-3, -2, -1), keepdim=True), contrast_factor)


@functional
def adjust_sharpness(inpt: Any, sharpness_factor: float) -> None:
    """Sharper by a factor: 0 is blurred, 1 the image itself."""


@image_kernel(adjust_sharpness)
def adjust_sharpness_image(image: Any, sharpness_factor: float) -> Any:
    """An image made sharper."""
    channels, height, width = image.shape[-3:]
    if channels not in (1, 3):
        raise TypeError(f"Input image tensor can have 1 or 3 channels, but found {channels}")
    _check_factor("sharpness_factor", sharpness_factor)
    if image.numel() == 0 or height <= 2 or width <= 2:
        return image
    exact = image if image.is_floating_point() else image.float()
    batch = exact.reshape(-1, channels, height, width)
    kernel = batch.new_full((3, 3), 1.0 / 13.0)  # ones around a five
    kernel[1, 1] = 5.0 / 13.0
    blurred = rl.nn.functional.conv2d(batch, kernel.expand(channels, 1, 3, 3), groups=channels)
    if not image.is_floating_point():
        blurred = blurred.round()
    out = batch.clone()
    inner = batch[..., 1:-1, 1:-1]
    out[..., 1:-1, 1:-1] = inner + (blurred - inner) * (1.0 - sharpness_factor)
    return out.clamp(0, max_value(image.dtype)).to(image.dtype).reshape(image.shape)


@functional
def adjust_hue(inpt: Any, hue_factor: float) -> None:
    """Hues shifted by a part of the circle, in [-0.5, 0.5]."""


@image_kernel(adjust_hue)
def adjust_hue_image(image: Any, hue_factor: float) -> Any:
    """An image with its hues shifted."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    _one_or_three(image)
    if image.shape[-3] == 1 or image.numel() == 0:
        return image
    h, s, v = _hsv(to_dtype_image(image, rl.float32, scale=True)).unbind(dim=-3)
    shifted = _rgb(rl.stack(((h + hue_factor).remainder(1.0), s, v), dim=-3))
    return to_dtype_image(shifted, image.dtype, scale=True)


@functional
def adjust_gamma(inpt: Any, gamma: float, gain: float = 1) -> None:
    """gain * x ** gamma, with x in [0, 1]."""


@image_kernel(adjust_gamma)
def adjust_gamma_image(image: Any, gamma: float, gain: float = 1) -> Any:
    """gain * image ** gamma"""
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    exact = image if image.is_floating_point() else to_dtype_image(image, rl.float32, scale=True)
    out = exact.pow(gamma)
    if gain != 1:
        out = (out * gain).clamp(0.0, 1.0)
    return to_dtype_image(out, image.dtype, scale=True)


@functional
def posterize(inpt: Any, bits: int) -> None:
    """Each channel in so many bits."""


@image_kernel(posterize)
def posterize_image(image: Any, bits: int) -> Any:
    """An image in so many bits a channel."""
    if not isinstance(bits, int) or not 0 <= bits <= 8:
        raise TypeError(f"bits must be a positive integer in the range [0, 8], got {bits} instead.")
    if image.is_floating_point():
        levels = 1 << bits
        return (image * levels).floor().clamp(0, levels - 1) * (1.0 / levels)
    have = _num_value_bits(image.dtype)
    return image if bits >= have else image & (((1 << bits) - 1) << (have - bits))


@functional
def solarize(inpt: Any, threshold: Any) -> None:
    """Values from the threshold on inverted."""


@image_kernel(solarize)
def solarize_image(image: Any, threshold: Any) -> Any:
    """An image with values from the threshold on inverted."""
    if threshold > max_value(image.dtype):
        raise TypeError(
            f"Threshold should be less or equal the maximum value of the dtype, but got {threshold}"
        )
    return rl.where(image >= threshold, invert_image(image), image)


@functional
def autocontrast(inpt: Any) -> None:
    """Each channel stretched so that its darkest value is black and its brightest white."""


@image_kernel(autocontrast)
def autocontrast_image(image: Any) -> Any:
    """An image with each channel stretched from black to white."""
    _one_or_three(image)
    if image.numel() == 0:
        return image
    white = max_value(image.dtype)
    exact = image if image.is_floating_point() else image.float()
    low, high = exact.amin(dim=(-2, -1), keepdim=True), exact.amax(dim=(-2, -1), keepdim=True)
    flat = low == high  # a channel of one value is left alone
    scale = rl.where(flat, 1.0, (high - low) * (1.0 / white))
    return ((exact - rl.where(flat, 0.0, low)) / scale).clamp(0, white).to(image.dtype)


@functional
def equalize(inpt: Any) -> None:
    """Each channel with its histogram made flat."""


@image_kernel(equalize)
def equalize_image(image: Any) -> Any:
    """An image with the histogram of each channel made flat, by way of bytes, as Pillow does it."""
    if image.numel() == 0:
        return image
    levels = to_dtype_image(image, rl.uint8, scale=True)
    flat = levels.flatten(0, -3).flatten(1).long() if levels.ndim > 2 else levels.reshape(1, -1).long()
    histogram = rl.zeros(flat.shape[0], 256, dtype=rl.int64, device=image.device)
    histogram.scatter_add_(1, flat, rl.ones_like(flat))
    brightest = histogram.gather(1, flat.amax(1, keepdim=True))
    step = (flat.shape[1] - brightest) // 255
    table = (histogram.cumsum(1) - histogram + step // 2) // step.clamp(min=1)
    table = table.clamp(0, 255).to(rl.uint8)
    table[:, 0] = 0
    out = rl.where(step != 0, table.gather(1, flat), flat.to(rl.uint8)).reshape(image.shape)
    return to_dtype_image(out, image.dtype, scale=True)


@functional
def invert(inpt: Any) -> None:
    """The negative."""


@image_kernel(invert)
def invert_image(image: Any) -> Any:
    """The negative of an image."""
    if image.is_floating_point():
        return 1.0 - image
    return image.bitwise_xor((1 << _num_value_bits(image.dtype)) - 1)


@functional
def permute_channels(inpt: Any, permutation: Any) -> None:
    """Channels in another order."""


@image_kernel(permute_channels)
def permute_channels_image(image: Any, permutation: Any) -> Any:
    """An image with its channels in another order."""
    if len(permutation) != image.shape[-3]:
        raise ValueError(
            f"Length of permutation does not match number of channels: {len(permutation)} != {image.shape[-3]}"
        )
    return image if image.numel() == 0 else image[..., list(permutation), :, :]


@kernel_for(permute_channels, PIL_IMAGE)
def _permute_channels_image_pil(image: Any, permutation: Any) -> Any:
    return to_pil_image(permute_channels_image(pil_to_tensor(image), permutation=permutation))


_adjust_brightness_image_pil = kernel_for(adjust_brightness, PIL_IMAGE)(_FP.adjust_brightness)
_adjust_contrast_image_pil = kernel_for(adjust_contrast, PIL_IMAGE)(_FP.adjust_contrast)
_adjust_saturation_image_pil = kernel_for(adjust_saturation, PIL_IMAGE)(_FP.adjust_saturation)
_adjust_sharpness_image_pil = kernel_for(adjust_sharpness, PIL_IMAGE)(_FP.adjust_sharpness)
_adjust_hue_image_pil = kernel_for(adjust_hue, PIL_IMAGE)(_FP.adjust_hue)
_adjust_gamma_image_pil = kernel_for(adjust_gamma, PIL_IMAGE)(_FP.adjust_gamma)
_posterize_image_pil = kernel_for(posterize, PIL_IMAGE)(_FP.posterize)
_solarize_image_pil = kernel_for(solarize, PIL_IMAGE)(_FP.solarize)
_autocontrast_image_pil = kernel_for(autocontrast, PIL_IMAGE)(_FP.autocontrast)
_equalize_image_pil = kernel_for(equalize, PIL_IMAGE)(_FP.equalize)
_invert_image_pil = kernel_for(invert, PIL_IMAGE)(_FP.invert)
