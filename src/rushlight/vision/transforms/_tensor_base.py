"""Checks and casts of tensors that hold images (..., C, H, W)."""

from __future__ import annotations

from typing import Any

import rushlight as rl


def is_tensor_a_torch_image(x: Any) -> Any:
    return x.ndim >= 2


def assert_image_tensor(img: Any) -> None:
    if not is_tensor_a_torch_image(img):
        raise TypeError("Tensor is not a torch image.")


def get_dimensions(img: Any) -> list[Any]:
    """[channels, height, width]"""
    assert_image_tensor(img)
    return [1 if img.ndim == 2 else img.shape[-3], *img.shape[-2:]]


def get_image_size(img: Any) -> list[Any]:
    assert_image_tensor(img)
    return [img.shape[-1], img.shape[-2]]


def get_image_num_channels(img: Any) -> Any:
    assert_image_tensor(img)
    if img.ndim == 2:
        return 1
    return img.shape[-3]


_MAX = {
    rl.uint8: 255, rl.int8: 127, rl.int16: 32767, rl.uint16: 65535, rl.int32: 2147483647, rl.int64: 9223372036854775807,
}  # fmt: skip


def max_value(dtype: Any) -> int:
    """What white is in this type: the largest integer, or 1."""
    return _MAX.get(dtype, 1)


def assert_channels(img: Any, permitted: Any) -> None:
    channels = get_dimensions(img)[0]
    if channels not in permitted:
        raise TypeError(f"Input image tensor permitted channel values are {permitted}, but found {channels}")


def convert_image_dtype(image: Any, dtype: Any = rl.float32) -> Any:
    """The image in another type, with white kept white."""
    if image.dtype == dtype:
        return image
    if image.is_floating_point():
        if dtype.is_floating_point:
            return image.to(dtype)
        if (image.dtype == rl.float32 and dtype in (rl.int32, rl.int64)) or (
            image.dtype == rl.float64 and dtype == rl.int64
        ):
            raise RuntimeError(f"The cast from {image.dtype} to {dtype} cannot be performed safely.")
        # Slightly less than one more step, so that every integer gets an equal share of [0, 1].
        return image.mul(max_value(dtype) + 1.0 - 1e-3).to(dtype)
    if dtype.is_floating_point:
        return image.to(dtype) / max_value(image.dtype)
    old, new = max_value(image.dtype), max_value(dtype)
    if old > new:
        return rl.div(image, (old + 1) // (new + 1), rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((new + 1) // (old + 1))


def cast_in(img: Any, dtypes: Any) -> tuple[Any, bool, Any, Any]:
    """(batch of images in one of the types, whether cast, whether a dimension was added, the old type)."""
    squeeze = img.ndim < 4
    if squeeze:
        img = img.unsqueeze(0)
    old = img.dtype
    cast = old not in dtypes
    return (img.to(dtypes[0]) if cast else img), cast, squeeze, old


def cast_out(img: Any, cast: Any, squeeze: Any, dtype: Any) -> Any:
    if squeeze:
        img = img.squeeze(0)
    if cast:
        if dtype in _MAX:
            img = rl.round(img)
        img = img.to(dtype)
    return img
