"""Colours of images in tensors (..., C, H, W)."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from ._tensor_base import assert_channels, assert_image_tensor, cast_in, cast_out, get_dimensions, max_value


def _blend(one: Any, other: Any, ratio: Any) -> Any:
    """ratio * one + (1 - ratio) * other, within black and white."""
    ratio = float(ratio)
    return (ratio * one + (1.0 - ratio) * other).clamp(0, max_value(one.dtype)).to(one.dtype)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    if img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.ndim}")
    assert_channels(img, [1, 3])
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    if img.shape[-3] == 1:
        return img.clone()
    red, green, blue = img.unbind(-3)
    grey = (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype).unsqueeze(-3)
    return grey.expand(img.shape) if num_output_channels == 3 else grey


def _check_factor(name: Any, factor: Any) -> None:
    if factor < 0:
        raise ValueError(f"{name} ({factor}) is not non-negative.")


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    _check_factor("brightness_factor", brightness_factor)
    assert_image_tensor(img)
    assert_channels(img, [1, 3])
    return _blend(img, rl.zeros_like(img), brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    _check_factor("contrast_factor", contrast_factor)
    assert_image_tensor(img)
    assert_channels(img, [1, 3])
    dtype = img.dtype if img.is_floating_point() else rl.float32
    grey = rgb_to_grayscale(img) if get_dimensions(img)[0] == 3 else img
    return _blend(img, grey.to(dtype).mean(dim=(-3, -2, -1), keepdim=True), contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    _check_factor("saturation_factor", saturation_factor)
    assert_image_tensor(img)
    assert_channels(img, [1, 3])
    if get_dimensions(img)[0] == 1:
        return img
    return _blend(img, rgb_to_grayscale(img), saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    from ._tensor_base import convert_image_dtype

    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    assert_image_tensor(img)
    assert_channels(img, [1, 3])
    if get_dimensions(img)[0] == 1:
        return img
    dtype = img.dtype
    h, s, v = _hsv(convert_image_dtype(img, rl.float32)).unbind(dim=-3)
    return convert_image_dtype(_rgb(rl.stack(((h + hue_factor) % 1.0, s, v), dim=-3)), dtype)


def _hsv(img: Any) -> rl.Tensor:
    """Hue, saturation, value of red, green, blue; all in [0, 1]."""
    r, g, b = img.unbind(dim=-3)
    top, bottom = img.max(dim=-3).values, img.min(dim=-3).values
    grey = top == bottom
    spread = top - bottom
    one = rl.ones_like(top)
    saturation = spread / rl.where(grey, one, top)
    divisor = rl.where(grey, one, spread)
    to_r, to_g, to_b = (top - r) / divisor, (top - g) / divisor, (top - b) / divisor
    # The hue of the strongest channel, and how far the other two pull.
    hue = (top == r) * (to_b - to_g)
    hue = hue + ((top == g) & (top != r)) * (2.0 + to_r - to_b)
    hue = hue + ((top != g) & (top != r)) * (4.0 + to_g - to_r)
    return rl.stack((rl.fmod(hue / 6.0 + 1.0, 1.0), saturation, top), dim=-3)


def _rgb(img: Any) -> rl.Tensor:
    """Red, green, blue of hue, saturation, value."""
    h, s, v = img.unbind(dim=-3)
    sextant = rl.floor(h * 6.0)
    f = h * 6.0 - sextant
    sextant = sextant.to(rl.int32) % 6
    p = (v * (1.0 - s)).clamp(0.0, 1.0)
    q = (v * (1.0 - s * f)).clamp(0.0, 1.0)
    t = (v * (1.0 - s * (1.0 - f))).clamp(0.0, 1.0)
    # In each sextant of the circle one channel is v, one p, and one moves between them.
    channels = ((v, q, p, p, t, v), (t, v, v, q, p, p), (p, p, t, v, v, q))
    return rl.stack(
        [
            rl.stack(channel, dim=-3).gather(-3, sextant.unsqueeze(-3).long()).squeeze(-3)
            for channel in channels
        ],
        dim=-3,
    )


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    from ._tensor_base import convert_image_dtype

    assert_image_tensor(img)
    assert_channels(img, [1, 3])
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    dtype = img.dtype
    x = img if img.is_floating_point() else convert_image_dtype(img, rl.float32)
    return convert_image_dtype((gain * x**gamma).clamp(0, 1), dtype)


def invert(img: Any) -> Any:
    assert_image_tensor(img)
    if img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.ndim}")
    assert_channels(img, [1, 3])
    return max_value(img.dtype) - img


def posterize(img: Any, bits: int) -> Any:
    assert_image_tensor(img)
    if img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.ndim}")
    if img.dtype != rl.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    assert_channels(img, [1, 3])
    return img & (256 - 2 ** (8 - bits))


def solarize(img: Any, threshold: Any) -> rl.Tensor:
    assert_image_tensor(img)
    if img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.ndim}")
    assert_channels(img, [1, 3])
    if threshold > max_value(img.dtype):
        raise TypeError("Threshold should be less than bound of img.")
    return rl.where(img >= threshold, invert(img), img)


def _softened(img: Any) -> Any:
    """The image smoothed by a 3 x 3 filter, its border as it was."""
    dtype = img.dtype if img.is_floating_point() else rl.float32
    weights = rl.tensor([[1, 1, 1], [1, 5, 1], [1, 1, 1]], dtype=dtype, device=img.device)
    kernel = (weights / 13).expand(img.shape[-3], 1, 3, 3)
    batch, cast, squeeze, old = cast_in(img, [kernel.dtype])
    inner = cast_out(rl.nn.functional.conv2d(batch, kernel, groups=batch.shape[-3]), cast, squeeze, old)
    whole = img.clone()
    whole[..., 1:-1, 1:-1] = inner
    return whole


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    _check_factor("sharpness_factor", sharpness_factor)
    assert_image_tensor(img)
    assert_channels(img, [1, 3])
    if img.shape[-1] <= 2 or img.shape[-2] <= 2:
        return img
    return _blend(img, _softened(img), sharpness_factor)


def autocontrast(img: Any) -> Any:
    assert_image_tensor(img)
    if img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.ndim}")
    assert_channels(img, [1, 3])
    white = max_value(img.dtype)
    dtype = img.dtype if img.is_floating_point() else rl.float32
    low = img.amin(dim=(-2, -1), keepdim=True).to(dtype)
    high = img.amax(dim=(-2, -1), keepdim=True).to(dtype)
    scale = white / (high - low)
    flat = ~rl.isfinite(scale)  # a channel of one value is left alone
    low = rl.where(flat, rl.zeros_like(low), low)
    scale = rl.where(flat, rl.ones_like(scale), scale)
    return ((img - low) * scale).clamp(0, white).to(img.dtype)


def _equalized(channel: Any) -> Any:
    """One channel (H, W) of bytes with its histogram made flat, as Pillow does it."""
    histogram = rl.bincount(channel.reshape(-1).long(), minlength=256)
    present = histogram[histogram != 0]
    step = rl.div(present[:-1].sum(), 255, rounding_mode="floor")
    if step == 0:
        return channel
    table = rl.div(histogram.cumsum(0) + rl.div(step, 2, rounding_mode="floor"), step, rounding_mode="floor")
    table = rl.cat([table.new_zeros(1), table[:-1]]).clamp(0, 255)
    return table[channel.long()].to(rl.uint8)


def equalize(img: Any) -> rl.Tensor:
    assert_image_tensor(img)
    if not 3 <= img.ndim <= 4:
        raise TypeError(f"Input image tensor should have 3 or 4 dimensions, but found {img.ndim}")
    if img.dtype != rl.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    assert_channels(img, [1, 3])
    channels = img.reshape(-1, *img.shape[-2:])
    return rl.stack([_equalized(c) for c in channels]).reshape(img.shape)
