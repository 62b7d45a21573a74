"""What prepares images for trained weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import rushlight as rl

from . import functional as F
from ._interpolation import InterpolationMode

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # ImageNet's


def _as_float_tensor(img: Any) -> Any:
    return F.convert_image_dtype(img if isinstance(img, rl.Tensor) else F.pil_to_tensor(img), rl.float)


class _Preset(rl.nn.Module):
    """Resizing and normalization, as the weights were trained with them; `_shown` are the options in the repr."""

    _shown: tuple[str, ...] = ("resize_size", "mean", "std", "interpolation")

    def __init__(
        self,
        resize_size: Any,
        mean: Sequence[float],
        std: Sequence[float],
        interpolation: InterpolationMode | int,
        antialias: bool | None,
    ) -> None:
        super().__init__()
        self.resize_size = None if resize_size is None else [resize_size]
        self.mean, self.std = list(mean), list(std)
        self.interpolation, self.antialias = InterpolationMode(interpolation), antialias

    def _resized(self, img: Any) -> Any:
        return F.resize(img, self.resize_size, interpolation=self.interpolation, antialias=self.antialias)

    def _normalized(self, img: Any) -> Any:
        return F.normalize(_as_float_tensor(img), mean=self.mean, std=self.std)

    def __repr__(self) -> str:
        lines = [f"\n    {name}={getattr(self, name)}" for name in self._shown]
        return "".join([f"{type(self).__name__}(", *lines, "\n)"])


class ImageClassification(_Preset):
    """The middle of the resized image, as floats with the mean and deviation of the training."""

    _shown = ("crop_size", *_Preset._shown)

    def __init__(
        self,
        *,
        crop_size: int | Sequence[int],
        resize_size: int = 256,
        mean: Sequence[float] = _MEAN,
        std: Sequence[float] = _STD,
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__(resize_size, mean, std, interpolation, antialias)
        self.crop_size = [crop_size]

    def forward(self, img: Any) -> Any:
        return self._normalized(F.center_crop(self._resized(img), self.crop_size))


class SemanticSegmentation(_Preset):
    """The resized image, as floats with the mean and deviation of the training."""

    def __init__(
        self,
        *,
        resize_size: Any,
        mean: Sequence[float] = _MEAN,
        std: Sequence[float] = _STD,
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__(resize_size, mean, std, interpolation, antialias)

    def forward(self, img: Any) -> Any:
        return self._normalized(img if self.resize_size is None else self._resized(img))


class ObjectDetection(rl.nn.Module):
    """The image as floats in [0, 1]; detectors resize and normalize by themselves."""

    def forward(self, img: Any) -> Any:
        return _as_float_tensor(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class VideoClassification(_Preset):
    """Frames (..., T, C, H, W) resized, their middle, normalized: (..., C, T, H, W)."""

    _shown = ("crop_size", *_Preset._shown)

    def __init__(
        self,
        *,
        crop_size: int | Sequence[int],
        resize_size: Any,
        mean: Sequence[float] = (0.43216, 0.394666, 0.37645),
        std: Sequence[float] = (0.22803, 0.22145, 0.216989),
        interpolation: InterpolationMode | int = F.InterpolationMode.BILINEAR,
    ) -> None:
        super().__init__(None, mean, std, interpolation, antialias=False)
        self.crop_size, self.resize_size = list(cast(Any, crop_size)), list(resize_size)

    def forward(self, vid: Any) -> Any:
        frames = vid.reshape(-1, *vid.shape[-3:])
        frames = self._resized(frames)
        frames = F.convert_image_dtype(F.center_crop(frames, self.crop_size), rl.float32)
        frames = F.normalize(frames, mean=self.mean, std=self.std)
        return frames.view(*vid.shape[:-2], *self.crop_size).transpose(-4, -3)


class OpticalFlow(rl.nn.Module):
    """Two images in [-1, 1]."""

    def forward(self, img1: Any, img2: Any) -> Any:
        images = (_as_float_tensor(img) for img in (img1, img2))
        return tuple(F.normalize(img, mean=[0.5] * 3, std=[0.5] * 3).contiguous() for img in images)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
