"""Coordinates in pixels, and flow at a larger size."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.nn import functional as F


def grid_sample(
    img: rl.Tensor, absolute_grid: Any, mode: str = "bilinear", align_corners: Any = None
) -> rl.Tensor:
    """`grid_sample` at coordinates in pixels."""
    h, w = img.shape[-2:]
    x, y = absolute_grid.split([1, 1], dim=-1)
    x = 2 * x / (w - 1) - 1
    y = 2 * y / (h - 1) - 1 if h > 1 else y
    return F.grid_sample(img, rl.cat([x, y], dim=-1), mode=mode, align_corners=align_corners)


def make_coords_grid(batch_size: Any, h: Any, w: Any, device: str = "cpu") -> rl.Tensor:
    """The coordinates (N, 2, h, w) of pixels, x before y."""
    y, x = rl.meshgrid(rl.arange(h, device=device), rl.arange(w, device=device), indexing="ij")
    return rl.stack((x, y)).float()[None].repeat(batch_size, 1, 1, 1)


def upsample_flow(flow: Any, up_mask: Any = None, factor: int = 8) -> Any:
    """Flow at a larger size, interpolated or as means of nine neighbours with predicted weights."""
    n, channels, h, w = flow.shape
    size = (h * factor, w * factor)
    if up_mask is None:
        return factor * F.interpolate(flow, size=size, mode="bilinear", align_corners=True)
    weights = up_mask.view(n, 1, 9, factor, factor, h, w).softmax(dim=2)
    near = F.unfold(factor * flow, kernel_size=3, padding=1).view(n, channels, 9, 1, 1, h, w)
    return (weights * near).sum(dim=2).permute(0, 1, 4, 2, 5, 3).reshape(n, channels, *size)
