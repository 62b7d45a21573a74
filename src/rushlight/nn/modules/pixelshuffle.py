"""Moving pixels between channels and space."""

from __future__ import annotations

from rushlight._C import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Moves channels into space: y[c, h r + i, w r + j] = x[c r^2 + i r + j, h, w], r = upscale_factor.

    The last layer of super-resolution networks: a convolution gives C r^2 channels, which become an image r
    times as high and wide.

    Args:
        upscale_factor (int): r.

    Shape:
        input (*, C r^2, H, W) -> (*, C, H r, W r)

    Example:
        >>> nn.PixelShuffle(3)(torch.randn(1, 9, 4, 4)).shape
        torch.Size([1, 1, 12, 12])
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Moves space into channels: y[c r^2 + i r + j, h, w] = x[c, h r + i, w r + j], r = downscale_factor.

    The inverse of `nn.PixelShuffle`: it makes an image smaller without losing a pixel.

    Args:
        downscale_factor (int): r, which divides height and width.

    Shape:
        input (*, C, H r, W r) -> (*, C r^2, H, W)

    Example:
        >>> nn.PixelUnshuffle(3)(torch.randn(1, 1, 12, 12)).shape
        torch.Size([1, 9, 4, 4])
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
