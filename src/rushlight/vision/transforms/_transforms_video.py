"""Transforms of clips (C, T, H, W), deprecated: transforms take images with any leading dimensions."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Any

import rushlight as rl

from ._crops import RandomCrop, RandomResizedCrop

__all__ = [
    "CenterCropVideo",
    "NormalizeVideo",
    "RandomCropVideo",
    "RandomHorizontalFlipVideo",
    "RandomResizedCropVideo",
    "ToTensorVideo",
]

warnings.warn(
    "The module _transforms_video is deprecated: the classes of rushlight.vision.transforms take videos too.",
    stacklevel=2,
)


def _check(clip: Any) -> rl.Tensor:
    if not isinstance(clip, rl.Tensor):
        raise TypeError(f"clip should be Tensor. Got {type(clip)}")
    if clip.ndim != 4:
        raise ValueError(f"clip should be 4D. Got {clip.ndim}D")
    return clip


def _pair(size: Any) -> Any:
    return (int(size), int(size)) if isinstance(size, (int, float)) else size


class RandomCropVideo(RandomCrop):
    """A rectangle at a drawn position."""

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = _pair(size)

    def __call__(self, clip: Any) -> Any:
        i, j, h, w = self.get_params(clip, self.size)
        return _check(clip)[..., i : i + h, j : j + w]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class RandomResizedCropVideo(RandomResizedCrop):
    """A rectangle of drawn area and shape, at a given size."""

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation_mode: str = "bilinear",
    ) -> None:
        self.size = size if isinstance(size, tuple) else (size, size)
        if len(self.size) != 2:
            raise ValueError(f"size should be tuple (height, width), instead got {size}")
        self.interpolation_mode = interpolation_mode
        self.scale: Any = scale
        self.ratio: Any = ratio

    def __call__(self, clip: Any) -> Any:
        i, j, h, w = self.get_params(clip, self.scale, self.ratio)
        part = _check(clip)[..., i : i + h, j : j + w]
        return rl.nn.functional.interpolate(
            part, size=self.size, mode=self.interpolation_mode, align_corners=False
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, interpolation_mode={self.interpolation_mode}, "
            f"scale={self.scale}, ratio={self.ratio})"
        )


class CenterCropVideo:
    """The middle."""

    def __init__(self, crop_size: int | Sequence[int]) -> None:
        self.crop_size = _pair(crop_size)

    def __call__(self, clip: Any) -> Any:
        (height, width), (h, w) = _check(clip).shape[-2:], self.crop_size
        if height < h or width < w:
            raise ValueError("height and width must be no smaller than crop_size")
        i, j = int(round((height - h) / 2.0)), int(round((width - w) / 2.0))
        return clip[..., i : i + h, j : j + w]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(crop_size={self.crop_size})"


class NormalizeVideo:
    """(clip - mean) / std by channels."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, clip: Any) -> Any:
        clip = _check(clip) if self.inplace else _check(clip).clone()
        mean, std = (rl.as_tensor(v, dtype=clip.dtype)[:, None, None, None] for v in (self.mean, self.std))
        return clip.sub_(mean).div_(std)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std}, inplace={self.inplace})"


class ToTensorVideo:
    """Bytes (T, H, W, C) as floats (C, T, H, W) in [0, 1]."""

    def __call__(self, clip: Any) -> Any:
        if _check(clip).dtype != rl.uint8:
            raise TypeError(f"clip tensor should have data type uint8. Got {clip.dtype}")
        return clip.float().permute(3, 0, 1, 2) / 255.0

    def __repr__(self) -> str:
        return type(self).__name__


class RandomHorizontalFlipVideo:
    """Left and right exchanged with probability p, drawn by Python's generator."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, clip: Any) -> Any:
        return _check(clip).flip(-1) if random.random() < self.p else clip

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"
