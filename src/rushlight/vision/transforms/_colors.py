"""Transforms of colours."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, cast

import rushlight as rl

from . import functional as F
from ._checks import factor_ends
from ._interpolation import setup_kernel, uniform


class ColorJitter(rl.nn.Module):
    """Brightness, contrast, saturation and hue changed by drawn factors, in a drawn order."""

    def __init__(
        self,
        brightness: float | Sequence[float] = 0,
        contrast: float | Sequence[float] = 0,
        saturation: float | Sequence[float] = 0,
        hue: float | Sequence[float] = 0,
    ) -> None:
        super().__init__()
        for name, value in (("brightness", brightness), ("contrast", contrast), ("saturation", saturation)):
            setattr(self, name, self._check_input(value, name))
        self.hue = self._check_input(hue, "hue", 0, (-0.5, 0.5), clip_first_on_zero=False)

    def _check_input(
        self,
        value: Any,
        name: Any,
        center: Any = 1,
        bound: Any = (0, float("inf")),
        clip_first_on_zero: bool = True,
    ) -> tuple[float, float] | None:
        """The range (low, high) of a factor, or None where it changes nothing."""
        wanted = f"{name} should be a single number or a list/tuple with length 2."
        low, high = map(float, factor_ends(value, name, center, clip_first_on_zero, wanted))
        if not bound[0] <= low <= high <= bound[1]:
            raise ValueError(f"{name} values should be between {bound}, but got {[low, high]}.")
        return None if low == high == center else (low, high)

    @staticmethod
    def get_params(brightness: Any, contrast: Any, saturation: Any, hue: Any) -> Any:
        """(order, brightness, contrast, saturation, hue) of a draw; None for what stays."""
        order = rl.randperm(4)
        return (order, *(None if r is None else uniform(*r) for r in (brightness, contrast, saturation, hue)))

    def forward(self, img: Any) -> Any:
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for i in order.tolist():
            if factors[i] is not None:
                img = changes[i](img, factors[i])
        return img

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(brightness={self.brightness}, contrast={self.contrast}, "
            f"saturation={self.saturation}, hue={self.hue})"
        )


class Grayscale(rl.nn.Module):
    """The image without colours, in one or three channels."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        return F.rgb_to_grayscale(img, num_output_channels=self.num_output_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"


class RandomGrayscale(rl.nn.Module):
    """The image without colours with probability p, in as many channels as before."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        channels = F.get_dimensions(img)[0]
        return F.rgb_to_grayscale(img, num_output_channels=channels) if rl.rand(1) < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class _WithProbability(rl.nn.Module):
    """A change that happens with probability p."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def change(self, img: Any) -> Any:
        raise NotImplementedError

    def forward(self, img: Any) -> Any:
        return self.change(img) if rl.rand(1).item() < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomInvert(_WithProbability):
    """The negative with probability p."""

    def change(self, img: Any) -> Any:
        return F.invert(img)


class RandomAutocontrast(_WithProbability):
    """Full contrast with probability p."""

    def change(self, img: Any) -> Any:
        return F.autocontrast(img)


class RandomEqualize(_WithProbability):
    """A flat histogram with probability p."""

    def change(self, img: Any) -> rl.Tensor:
        return F.equalize(img)


class RandomPosterize(_WithProbability):
    """Fewer bits a channel with probability p."""

    def __init__(self, bits: int, p: float = 0.5) -> None:
        super().__init__(p)
        self.bits = bits

    def change(self, img: Any) -> Any:
        return F.posterize(img, self.bits)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bits={self.bits},p={self.p})"


class RandomSolarize(_WithProbability):
    """Bright values inverted with probability p."""

    def __init__(self, threshold: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.threshold = threshold

    def change(self, img: Any) -> rl.Tensor:
        return F.solarize(img, self.threshold)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(threshold={self.threshold},p={self.p})"


class RandomAdjustSharpness(_WithProbability):
    """Sharper by a factor with probability p."""

    def __init__(self, sharpness_factor: float, p: float = 0.5) -> None:
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def change(self, img: Any) -> Any:
        return F.adjust_sharpness(img, self.sharpness_factor)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sharpness_factor={self.sharpness_factor},p={self.p})"


class GaussianBlur(rl.nn.Module):
    """Smoothed by a Gaussian of drawn width."""

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size = setup_kernel(kernel_size)
        if isinstance(sigma, numbers.Number):
            sigma = cast(float, sigma)
            if sigma <= 0:
                raise ValueError("If sigma is a single number, it must be positive.")
            sigma = (sigma, sigma)
        elif isinstance(sigma, (list, tuple)) and len(sigma) == 2:
            if not 0.0 < sigma[0] <= sigma[1]:
                raise ValueError(f"sigma values should be positive and of the form (min, max). Got {sigma}")
        else:
            raise TypeError("sigma should be a single number or a list/tuple with length 2.")
        self.sigma = sigma

    @staticmethod
    def get_params(sigma_min: Any, sigma_max: Any) -> Any:
        """The width of a draw."""
        return uniform(sigma_min, sigma_max)

    def forward(self, img: Any) -> Any:
        return F.gaussian_blur(img, self.kernel_size, [self.get_params(*self.sigma)] * 2)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kernel_size={self.kernel_size}, sigma={self.sigma})"
