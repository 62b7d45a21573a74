"""From Pillow and arrays to images, and back."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight as rl
from rushlight.vision.tv_tensors import Image

from ...._pil import is_pil
from ... import functional as _F
from ..._to_from import pil_to_tensor, to_pil_image

__all__ = ["get_image_size", "pil_to_tensor", "to_image", "to_pil_image", "to_tensor"]


def to_image(inpt: Any) -> Image:
    """An image of Pillow, an array (H, W, C) or a tensor as an Image, in its own type."""
    if is_pil(inpt):
        return Image(pil_to_tensor(inpt))
    if isinstance(inpt, rl.Tensor):
        return Image(inpt)
    if type(inpt).__module__ == "numpy":
        array = inpt[:, :, None] if inpt.ndim == 2 else inpt
        return Image(rl.from_numpy(array).permute((2, 0, 1)).contiguous())
    raise TypeError(
        f"Input can either be a pure Tensor, a numpy array, or a PIL image, but got {type(inpt)} instead."
    )


def to_tensor(inpt: Any) -> Any:
    """Deprecated: `to_image`, then `to_dtype` with scale=True."""
    warnings.warn(
        "`to_tensor` is deprecated and will be removed: call `to_image`, then `to_dtype` with torch.float32 and scale=True.",
        stacklevel=2,
    )
    return _F.to_tensor(inpt)


def get_image_size(inpt: Any) -> list[Any]:
    """Deprecated: [width, height]; `get_size` gives [height, width]."""
    warnings.warn(
        "`get_image_size` is deprecated and will be removed: `get_size` gives the height first, then the width.",
        stacklevel=2,
    )
    return _F.get_image_size(inpt)
