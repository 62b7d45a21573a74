"""Resizing layers."""

from __future__ import annotations

from typing import Any

from rushlight._C import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d"]


class Upsample(Module):
    """Resizes sequences, images or volumes to a size or by a factor, by the interpolation of `mode`.

    Exactly one of size and scale_factor is given. For networks, 'nearest' followed by a convolution avoids the
    checkerboard patterns of transposed convolutions. `nn.functional.interpolate` has antialiasing too.

    Args:
        size (int or tuple): size of the output. Default: None
        scale_factor (float or tuple): what sizes are multiplied by. Default: None
        mode (str): 'nearest', 'nearest-exact' or 'area' for any input, 'linear' for (N, C, L), 'bilinear' and
            'bicubic' for (N, C, H, W), 'trilinear' for (N, C, D, H, W). Default: 'nearest'
        align_corners (bool): whether the centres of the corner pixels of input and output coincide, rather than
            their outer edges; not for the first three modes. Default: None, which is False
        recompute_scale_factor (bool): interpolates by the ratio of the sizes after rounding, rather than by
            scale_factor as given. Default: None

    Shape:
        input (N, C, L), (N, C, H, W) or (N, C, D, H, W) -> the same with new L, or H, W, or D, H, W, each
        floor(size x scale_factor)

    Example:
        >>> nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
        >>> nn.Upsample(scale_factor=2, mode="linear")(torch.tensor([[[1.0, 2.0]]]))
        tensor([[[1.0000, 1.2500, 1.7500, 2.0000]]])
    """

    __constants__ = ["size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor"]

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        if isinstance(scale_factor, tuple):
            scale_factor = tuple(map(float, scale_factor))
        elif scale_factor:
            scale_factor = float(scale_factor)
        self.name, self.size, self.scale_factor = type(self).__name__, size, scale_factor or None
        self.mode, self.align_corners = mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("recompute_scale_factor", True)
        super().__setstate__(state)

    def extra_repr(self) -> str:
        what = (
            f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        )
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resizes images by repeating the nearest pixel: `nn.Upsample` with mode='nearest'.

    Args:
        size (int or (int, int)): height and width of the output. Default: None
        scale_factor (float or (float, float)): what they are multiplied by, in place of size. Default: None

    Shape:
        input (N, C, H, W) -> (N, C, floor(H x scale), floor(W x scale)), or (N, C, *size)

    Example:
        >>> nn.UpsamplingNearest2d(scale_factor=2)(torch.tensor([[[[1.0, 2.0]]]]))
        tensor([[[[1., 1., 2., 2.],
                  [1., 1., 2., 2.]]]])
    """

    def __init__(
        self,
        size: int | tuple[int, int] | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes images bilinearly with aligned corners: `nn.Upsample` with mode='bilinear', align_corners=True.

    Args:
        size (int or (int, int)): height and width of the output. Default: None
        scale_factor (float or (float, float)): what they are multiplied by, in place of size. Default: None

    Shape:
        input (N, C, H, W) -> (N, C, floor(H x scale), floor(W x scale)), or (N, C, *size)

    Example:
        >>> nn.UpsamplingBilinear2d(size=(1, 3))(torch.tensor([[[[1.0, 2.0]]]]))
        tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(
        self,
        size: int | tuple[int, int] | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
