"""Sizes: resizing, cutting, padding, flipping."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

import rushlight as rl

from . import functional as F
from ._checks import check_kind, check_padding
from ._interpolation import InterpolationMode, draw_int, mode_of_int, setup_size, uniform


class Resize(rl.nn.Module):
    """The image at another size: (h, w), or the length of its shorter edge."""

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if not isinstance(size, (int, list, tuple)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, (list, tuple)) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size = size
        self.max_size = max_size
        self.interpolation = mode_of_int(interpolation) if isinstance(interpolation, int) else interpolation
        self.antialias = antialias

    def forward(self, img: Any) -> Any:
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, interpolation={self.interpolation.value}, "
            f"max_size={self.max_size}, antialias={self.antialias})"
        )


class CenterCrop(rl.nn.Module):
    """The middle of an image, padded with black if it is smaller."""

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = setup_size(size)

    def forward(self, img: Any) -> Any:
        return F.center_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class Pad(rl.nn.Module):
    """The image with a border."""

    def __init__(self, padding: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        check_kind(padding, (numbers.Number, tuple, list), "Got inappropriate padding arg")
        check_kind(fill, (numbers.Number, str, tuple, list), "Got inappropriate fill arg")
        check_padding(padding, padding_mode)
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode})"


class RandomCrop(rl.nn.Module):
    """A rectangle at a drawn position, of the image padded before."""

    @staticmethod
    def get_params(img: Any, output_size: Any) -> Any:
        """(top, left, height, width) of a draw."""
        size, (height, width) = tuple(F.get_dimensions(img)[1:]), output_size
        spare = size[0] - height, size[1] - width
        if min(spare) < 0:
            raise ValueError(f"Required crop size {(height, width)} is larger than input image size {size}")
        if spare == (0, 0):  # nothing is drawn
            return 0, 0, height, width
        top, left = (draw_int(0, pixels + 1) for pixels in spare)
        return top, left, height, width

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = tuple(setup_size(size))
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, img: Any) -> Any:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        _, h, w = F.get_dimensions(img)
        if self.pad_if_needed and w < self.size[1]:
            img = F.pad(img, [self.size[1] - w, 0], self.fill, self.padding_mode)
        if self.pad_if_needed and h < self.size[0]:
            img = F.pad(img, [0, self.size[0] - h], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class RandomResizedCrop(rl.nn.Module):
    """A rectangle of drawn area and shape, at a given size."""

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = setup_size(size)
        if not isinstance(scale, (list, tuple)):
            raise TypeError("Scale should be a sequence")
        if not isinstance(ratio, (list, tuple)):
            raise TypeError("Ratio should be a sequence")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        self.interpolation = mode_of_int(interpolation) if isinstance(interpolation, int) else interpolation
        self.antialias = antialias
        self.scale = scale
        self.ratio = ratio

    @staticmethod
    def get_params(img: Any, scale: Any, ratio: Any) -> Any:
        """(top, left, height, width) of a draw."""
        _, height, width = F.get_dimensions(img)
        area = height * width
        log_ratio = rl.log(rl.tensor(ratio))
        for _ in range(10):
            target = area * uniform(scale[0], scale[1])
            aspect = rl.exp(rl.empty(1).uniform_(log_ratio[0].item(), log_ratio[1].item())).item()
            w, h = int(round(math.sqrt(target * aspect))), int(round(math.sqrt(target / aspect)))
            if 0 < w <= width and 0 < h <= height:
                top = draw_int(0, height - h + 1)
                return top, draw_int(0, width - w + 1), h, w
        # No draw fitted: the largest rectangle of a permitted shape, in the middle.
        w, h = width, height
        if width / height < min(ratio):
            h = int(round(w / min(ratio)))
        elif width / height > max(ratio):
            w = int(round(h * max(ratio)))
        return (height - h) // 2, (width - w) // 2, h, w

    def forward(self, img: Any) -> Any:
        top, left, height, width = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(
            img, top, left, height, width, self.size, self.interpolation, antialias=self.antialias
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, scale={tuple(round(s, 4) for s in self.scale)}, "
            f"ratio={tuple(round(r, 4) for r in self.ratio)}, interpolation={self.interpolation.value}, "
            f"antialias={self.antialias})"
        )


class RandomHorizontalFlip(rl.nn.Module):
    """Left and right exchanged with probability p."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        return F.hflip(img) if rl.rand(1) < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomVerticalFlip(rl.nn.Module):
    """Upside down with probability p."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        return F.vflip(img) if rl.rand(1) < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class FiveCrop(rl.nn.Module):
    """Four corners and the middle, as a tuple."""

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = setup_size(size)

    def forward(self, img: Any) -> Any:
        return F.five_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class TenCrop(rl.nn.Module):
    """Four corners and the middle, of the image and of its mirror image, as a tuple."""

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False) -> None:
        super().__init__()
        self.size = setup_size(size)
        self.vertical_flip = vertical_flip

    def forward(self, img: Any) -> Any:
        return F.ten_crop(img, self.size, self.vertical_flip)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, vertical_flip={self.vertical_flip})"
