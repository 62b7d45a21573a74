"""Functionals that take something away: a rectangle, details by JPEG, images of a video."""

from __future__ import annotations

import io
from typing import Any

import rushlight as rl
from rushlight.vision.tv_tensors import Video

from ...._pil import pil
from ..._to_from import pil_to_tensor, to_pil_image
from ._utils import PIL_IMAGE, functional, image_kernel, kernel_for


@functional
def erase(inpt: Any, i: Any, j: Any, h: Any, w: Any, v: Any, inplace: bool = False) -> None:
    """A rectangle replaced by values."""


@image_kernel(erase)
def erase_image(image: Any, i: Any, j: Any, h: Any, w: Any, v: Any, inplace: bool = False) -> Any:
    """An image with a rectangle replaced by values."""
    image = image if inplace else image.clone()
    image[..., i : i + h, j : j + w] = v
    return image


@kernel_for(erase, PIL_IMAGE)
def _erase_image_pil(image: Any, i: Any, j: Any, h: Any, w: Any, v: Any, inplace: bool = False) -> Any:
    out = erase_image(pil_to_tensor(image), i=i, j=j, h=h, w=w, v=v, inplace=inplace)
    return to_pil_image(out, mode=image.mode)


@functional
def jpeg(image: Any, quality: int) -> None:
    """What is left after JPEG compression."""


@image_kernel(jpeg)
def jpeg_image(image: Any, quality: int) -> Any:
    """What is left of an image after JPEG compression."""
    from rushlight.vision.io import decode_jpeg, encode_jpeg

    images = image.reshape(-1, *image.shape[-3:])
    if images.shape[0] == 0:
        return image.clone()
    out = [decode_jpeg(encode_jpeg(one, quality=quality)) for one in images]
    return rl.stack(out).reshape(image.shape)


@kernel_for(jpeg, PIL_IMAGE)
def _jpeg_image_pil(image: Any, quality: int) -> Any:
    raw = io.BytesIO()
    image.save(raw, format="JPEG", quality=quality)
    return pil().open(raw).copy()  # an image of no file


@functional
def uniform_temporal_subsample(inpt: Any, num_samples: Any) -> None:
    """So many images of a video, evenly spaced."""


@kernel_for(uniform_temporal_subsample, rl.Tensor, Video)
def uniform_temporal_subsample_video(video: Any, num_samples: Any) -> Any:
    """So many images of a video, evenly spaced."""
    indices = rl.linspace(0, video.shape[-4] - 1, num_samples, device=video.device).long()
    return video.index_select(-4, indices)
