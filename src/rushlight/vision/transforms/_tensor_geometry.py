"""Geometry of images in tensors (..., C, H, W)."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from ._checks import check_kind, check_padding
from ._tensor_base import assert_image_tensor, cast_in, cast_out, get_dimensions

_FLOATS = [rl.float32, rl.float64]


def hflip(img: Any) -> Any:
    assert_image_tensor(img)
    return img.flip(-1)


def vflip(img: Any) -> Any:
    assert_image_tensor(img)
    return img.flip(-2)


def crop(img: Any, top: Any, left: Any, height: Any, width: Any) -> Any:
    assert_image_tensor(img)
    _, h, w = get_dimensions(img)
    right, bottom = left + width, top + height
    if left < 0 or top < 0 or right > w or bottom > h:  # what lies outside is black
        outside = [max(-left + min(0, right), 0), max(right - max(w, left), 0), max(-top + min(0, bottom), 0), max(bottom - max(h, top), 0)]  # fmt: skip
        inside = img[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
        return rl.nn.functional.pad(inside, outside, value=0.0)
    return img[..., top:bottom, left:right]


def _sides(padding: Any) -> Any:
    """[left, right, top, bottom]"""
    padding = [padding] if isinstance(padding, int) else list(padding)
    if len(padding) == 1:
        return padding * 4
    if len(padding) == 2:
        return [padding[0], padding[0], padding[1], padding[1]]
    return [padding[0], padding[2], padding[1], padding[3]]


def _mirrored(length: Any, before: Any, after: Any, device: Any) -> rl.Tensor:
    """Indices along one dimension, the ends mirrored with the border repeated; negative sides cut off."""
    indices = rl.arange(-before, length + after, device=device)
    around = indices % (2 * length)
    return rl.where(around < length, around, 2 * length - 1 - around)


def _pad_symmetric(img: Any, sides: Any) -> Any:
    rows = _mirrored(img.shape[-2], sides[2], sides[3], img.device)
    columns = _mirrored(img.shape[-1], sides[0], sides[1], img.device)
    return img[..., rows[:, None], columns[None, :]]


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    assert_image_tensor(img)
    fill = 0 if fill is None else fill
    check_kind(padding, (int, tuple, list), "Got inappropriate padding arg")
    check_kind(fill, (int, float), "Got inappropriate fill arg")
    check_kind(padding_mode, str, "Got inappropriate padding_mode arg")
    check_padding(padding, padding_mode)
    sides = _sides(padding)
    if padding_mode == "symmetric":
        return _pad_symmetric(img, sides)
    if padding_mode == "constant":
        return rl.nn.functional.pad(
            img, sides, mode="constant", value=float(fill) if img.is_floating_point() else int(fill)
        )
    # The other modes want a batch of images, and floats.
    batch, cast, squeeze, old = cast_in(img, _FLOATS)
    mode = "replicate" if padding_mode == "edge" else padding_mode
    return cast_out(rl.nn.functional.pad(batch, sides, mode=mode), cast, squeeze, old)


def resize(img: Any, size: Any, interpolation: Any = "bilinear", antialias: Any = True) -> Any:
    assert_image_tensor(img)
    if not isinstance(size, (tuple, list)):
        raise TypeError("Got inappropriate size arg")
    if interpolation not in ("nearest", "bilinear", "bicubic", "nearest-exact"):
        raise ValueError(f"This interpolation mode is unsupported with Tensor input: {interpolation}")
    smooth = interpolation in ("bilinear", "bicubic")
    batch, cast, squeeze, old = cast_in(img, _FLOATS)
    options = {"align_corners": False, "antialias": bool(antialias)} if smooth else {}
    out = rl.nn.functional.interpolate(batch, size=list(size), mode=interpolation, **options)
    if interpolation == "bicubic" and old == rl.uint8:
        out = out.clamp(0, 255)
    return cast_out(out, cast, squeeze, old)


def _check_warp(img: Any, interpolation: Any, allowed: Any, fill: Any) -> None:
    assert_image_tensor(img)
    if fill is not None and not isinstance(fill, (int, float, tuple, list)):
        raise TypeError("Argument fill should be either int, float, tuple or list")
    channels = get_dimensions(img)[0]
    if isinstance(fill, (tuple, list)) and len(fill) > 1 and len(fill) != channels:
        raise ValueError(
            "The number of elements in 'fill' cannot broadcast to match the number of "
            f"channels of the image ({len(fill)} != {channels})"
        )
    if interpolation not in allowed:
        raise ValueError(f"Interpolation mode '{interpolation}' is unsupported with Tensor input")


def sample(img: Any, grid: Any, mode: Any, fill: Any) -> Any:
    """The image sampled at the positions of a grid (1 or N, h, w, 2) of [-1, 1]; `fill` outside."""
    batch, cast, squeeze, old = cast_in(img, [grid.dtype])
    grid = grid.expand(batch.shape[0], *grid.shape[1:])
    if fill is not None:  # one channel more says how much of a pixel lies inside
        batch = rl.cat((batch, batch.new_ones(batch.shape[0], 1, *batch.shape[-2:])), dim=1)
    batch = rl.nn.functional.grid_sample(batch, grid, mode=mode, padding_mode="zeros", align_corners=False)
    if fill is not None:
        inside, batch = batch[:, -1:], batch[:, :-1]
        colors = [float(f) for f in fill] if isinstance(fill, (tuple, list)) else [float(fill)]
        colors = rl.tensor(colors, dtype=batch.dtype, device=batch.device).view(1, -1, 1, 1).expand_as(batch)
        if mode == "nearest":
            batch = rl.where(inside < 0.5, colors, batch)
        else:
            batch = batch * inside + (1.0 - inside) * colors
    return cast_out(batch, cast, squeeze, old)


def _affine_grid(theta: Any, w: Any, h: Any, ow: Any, oh: Any) -> rl.Tensor:
    """Where each pixel of an image (oh, ow) comes from in one of (h, w), in [-1, 1]: (1, oh, ow, 2)."""
    base = rl.empty(1, oh, ow, 3, dtype=theta.dtype, device=theta.device)
    base[..., 0] = rl.linspace(-ow * 0.5 + 0.5, ow * 0.5 + 0.5 - 1, steps=ow, device=theta.device)
    base[..., 1] = rl.linspace(-oh * 0.5 + 0.5, oh * 0.5 + 0.5 - 1, steps=oh, device=theta.device).unsqueeze(
        -1
    )
    base[..., 2] = 1
    scaled = theta.transpose(1, 2) / rl.tensor([0.5 * w, 0.5 * h], dtype=theta.dtype, device=theta.device)
    return base.view(1, oh * ow, 3).bmm(scaled).view(1, oh, ow, 2)


def _theta(img: Any, matrix: Any) -> rl.Tensor:
    dtype = img.dtype if img.is_floating_point() else rl.float32
    return rl.tensor(matrix, dtype=dtype, device=img.device).reshape(1, 2, 3)


def affine(img: Any, matrix: Any, interpolation: Any = "nearest", fill: Any = None) -> Any:
    _check_warp(img, interpolation, ("nearest", "bilinear"), fill)
    h, w = img.shape[-2:]
    return sample(img, _affine_grid(_theta(img, matrix), w, h, w, h), interpolation, fill)


def rotate(
    img: Any, matrix: Any, interpolation: Any = "nearest", expand: bool = False, fill: Any = None
) -> Any:
    from ._geometry import affine_output_size

    _check_warp(img, interpolation, ("nearest", "bilinear"), fill)
    h, w = img.shape[-2:]
    ow, oh = affine_output_size(matrix, w, h) if expand else (w, h)
    return sample(img, _affine_grid(_theta(img, matrix), w, h, ow, oh), interpolation, fill)


def perspective_grid(coeffs: Any, ow: Any, oh: Any, dtype: Any, device: Any) -> rl.Tensor:
    """Where each pixel of an image (oh, ow) comes from under eight coefficients: (1, oh, ow, 2) of [-1, 1]."""
    top = rl.tensor([coeffs[0:3], coeffs[3:6]], dtype=dtype, device=device)
    below = rl.tensor([[*coeffs[6:8], 1.0]] * 2, dtype=dtype, device=device)
    base = rl.empty(oh * ow, 3, dtype=dtype, device=device)
    base[:, 0] = rl.linspace(0.5, ow - 0.5, steps=ow, device=device).repeat(oh)
    base[:, 1] = rl.linspace(0.5, oh - 0.5, steps=oh, device=device).repeat_interleave(ow)
    base[:, 2] = 1
    numerator = base @ (top.T / rl.tensor([0.5 * ow, 0.5 * oh], dtype=dtype, device=device))
    return (numerator / (base @ below.T) - 1.0).view(1, oh, ow, 2)


def perspective(img: Any, perspective_coeffs: Any, interpolation: Any = "bilinear", fill: Any = None) -> Any:
    _check_warp(img, interpolation, ("nearest", "bilinear"), fill)
    dtype = img.dtype if img.is_floating_point() else rl.float32
    grid = perspective_grid(perspective_coeffs, img.shape[-1], img.shape[-2], dtype, img.device)
    return sample(img, grid, interpolation, fill)


def elastic_transform(img: Any, displacement: Any, interpolation: Any = "bilinear", fill: Any = None) -> Any:
    """Each pixel from its position moved by a displacement (1, h, w, 2) of [-1, 1]."""
    _check_warp(img, interpolation, ("nearest", "bilinear", "bicubic"), fill)
    h, w = img.shape[-2:]
    device, dtype = img.device, img.dtype if img.is_floating_point() else rl.float32
    y = rl.linspace((-h + 1) / h, (h - 1) / h, h, device=device, dtype=dtype)
    x = rl.linspace((-w + 1) / w, (w - 1) / w, w, device=device, dtype=dtype)
    grid = rl.stack((x.expand(h, w), y[:, None].expand(h, w)), dim=-1)[None]
    return sample(img, grid + displacement.to(device), interpolation, fill)


def _gaussian(size: Any, sigma: Any, dtype: Any, device: Any) -> rl.Tensor:
    half = (size - 1) * 0.5
    x = rl.linspace(-half, half, steps=size, dtype=dtype, device=device)
    weights = rl.exp(-0.5 * (x / sigma).pow(2))
    return weights / weights.sum()


def gaussian_blur(img: Any, kernel_size: Any, sigma: Any) -> Any:
    assert_image_tensor(img)
    dtype = img.dtype if img.is_floating_point() else rl.float32
    across = _gaussian(kernel_size[0], sigma[0], dtype, img.device)
    down = _gaussian(kernel_size[1], sigma[1], dtype, img.device)
    kernel = (down[:, None] @ across[None, :]).expand(
        get_dimensions(img)[0], 1, kernel_size[1], kernel_size[0]
    )
    batch, cast, squeeze, old = cast_in(img, [dtype])
    x, y = kernel_size[0] // 2, kernel_size[1] // 2
    batch = rl.nn.functional.pad(batch, [x, x, y, y], mode="reflect")
    return cast_out(rl.nn.functional.conv2d(batch, kernel, groups=batch.shape[-3]), cast, squeeze, old)


def erase(img: Any, i: Any, j: Any, h: Any, w: Any, v: Any, inplace: bool = False) -> Any:
    assert_image_tensor(img)
    if not inplace:
        img = img.clone()
    img[..., i : i + h, j : j + w] = v
    return img


def normalize(tensor: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
    assert_image_tensor(tensor)
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {tensor.size()}"
        )
    dtype = tensor.dtype
    mean = rl.as_tensor(mean, dtype=dtype, device=tensor.device)
    std = rl.as_tensor(std, dtype=dtype, device=tensor.device)
    if (std == 0).any():
        raise ValueError(f"std evaluated to zero after conversion to {dtype}, leading to division by zero.")
    mean = mean.view(-1, 1, 1) if mean.ndim == 1 else mean
    std = std.view(-1, 1, 1) if std.ndim == 1 else std
    return tensor.sub_(mean).div_(std) if inplace else tensor.sub(mean).div_(std)
