"""Sampling images and volumes at given points: a kernel for floats and doubles, else written with gather."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any, cast

import rushlight as rl
from rushlight._C import Tensor
from rushlight._core import autocast as _autocast
from rushlight.nn import _core as core

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def _to_pixels(x: Tensor, size: int, align_corners: bool) -> Tensor:
    """Coordinates in [-1, 1] as positions in pixels."""
    return (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2


def _reflect(x: Tensor, size: int, align_corners: bool) -> Tensor:
    low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
    if span == 0:
        return rl.zeros_like(x)
    x = (x - low).abs()
    flips = (x / span).floor()
    rest = x - flips * span
    return rl.where(flips.remainder(2) == 0, rest + low, span - rest + low)


def _keep_inside(x: Tensor, size: int, padding_mode: str, align_corners: bool) -> Tensor:
    if padding_mode == "border":
        return x.clamp(0, size - 1)
    if padding_mode == "reflection":
        return _reflect(x, size, align_corners).clamp(0, size - 1)
    return x


def _look_up(
    input: Tensor, at: Sequence[Tensor], weight: Tensor | None = None, total: Tensor | None = None
) -> Tensor:
    """total + weight * input (N, C, *sizes) at whole positions `at` (a tensor (N, *out) per dimension); 0 outside."""
    sizes = input.shape[2:]
    flat: Any = None
    inside: Any = None
    for x, size in zip(at, sizes, strict=True):
        ok = (x >= 0) & (x <= size - 1)
        index = rl.where(ok, x, rl.zeros_like(x)).long()
        flat = index if flat is None else flat * size + index
        inside = ok if inside is None else inside & ok
    n, c = input.shape[:2]
    out = at[0].shape[1:]
    index = flat.reshape(n, 1, -1).expand(n, c, -1)
    values = input.reshape(n, c, -1).gather(2, index).view(n, c, *out)
    # Outside, the weight is 0: (N, *out) elements to multiply rather than (N, C, *out).
    inside = inside.to(values.dtype)
    weight = (inside if weight is None else weight * inside).unsqueeze(1)
    return values * weight if total is None else rl.addcmul(total, values, weight)


def _cubic(t: Tensor) -> tuple[Tensor, ...]:
    """Keys' four weights (a = -0.75) of the neighbours of a point at t in [0, 1)."""
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _is_plain(input: Tensor, grid: Tensor) -> bool:
    """Whether the kernel applies."""
    sizes, points = input.shape, grid.shape
    n = len(sizes)
    if n not in (4, 5) or len(points) != n or sizes[0] != points[0] or points[n - 1] != n - 2:
        return False
    dtype = input.dtype
    area = sizes[2] * sizes[3] * (sizes[4] if n == 5 else 1)
    return dtype == grid.dtype and dtype in (rl.float32, rl.float64) and 0 < area < 2**31


@_autocast.full
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Reads images or volumes at the points of a grid: y[n, c, p] = input[n, c] interpolated at grid[n, p].

    Args:
        input (Tensor): (N, C, H, W) or (N, C, D, H, W).
        grid (Tensor): (N, H_out, W_out, 2) or (N, D_out, H_out, W_out, 3), coordinates in [-1, 1], x first.
        mode (str): 'bilinear' (trilinear for volumes), 'nearest' or, for images, 'bicubic'. Default: 'bilinear'
        padding_mode (str): what is outside: 'zeros', 'border' or 'reflection'. Default: 'zeros'
        align_corners (bool): whether -1 and 1 are the centres of the corner pixels rather than their outer
            edges. Default: None, which is False with a warning

    Returns:
        A tensor (N, C, H_out, W_out) or (N, C, D_out, H_out, W_out).

    Gradient:
        Goes to input and, except for 'nearest', to grid, which gets zeros there.

    Example:
        >>> x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> F.grid_sample(x, torch.zeros(1, 1, 1, 2), align_corners=False)
        tensor([[[[2.5000]]]])
    """
    modes = GRID_SAMPLE_INTERPOLATION_MODES.get(mode), GRID_SAMPLE_PADDING_MODES.get(padding_mode)
    known = None not in modes and (mode != "bicubic" or input.dim() == 4)
    if known and align_corners is not None and _is_plain(input, grid):
        out: Tensor = core.grid_sample(input, grid, *modes, align_corners)
        return out
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: "
            f"'{mode}'"
        )
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
            f"but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
            "Please specify align_corners=True if the old behavior is desired.",
            stacklevel=2,
        )
        align_corners = False
    n = input.dim() - 2
    shapes = f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.size(0) != grid.size(0):
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {shapes}")
    if grid.size(-1) != n:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {n} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    if n not in (2, 3) or grid.dim() != input.dim():
        raise RuntimeError(
            f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, {shapes}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
            f"{list(input.shape)}"
        )
    if mode == "bicubic" and n == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if _is_plain(input, grid):
        result: Tensor = core.grid_sample(input, grid, *modes, align_corners)
        return result
    sizes = input.shape[2:]
    at = [_to_pixels(grid[..., n - 1 - d], sizes[d], align_corners) for d in range(n)]

    if mode == "bicubic":
        whole = [x.floor() for x in at]
        weights = [_cubic(x - w) for x, w in zip(at, whole, strict=True)]
        total: Any = None
        for taps in itertools.product(range(4), repeat=n):
            points = [
                _keep_inside(w + (k - 1), s, padding_mode, align_corners)
                for w, k, s in zip(whole, taps, sizes, strict=True)
            ]
            weight = weights[0][taps[0]] * weights[1][taps[1]]
            total = _look_up(input, points, weight, total)
        return cast(Tensor, total)

    at = [_keep_inside(x, s, padding_mode, align_corners) for x, s in zip(at, sizes, strict=True)]
    if mode == "nearest":
        values = _look_up(input, [x.detach().round() for x in at])
        if grid.requires_grad:  # a gradient of zeros, rather than none
            nothing = rl.zeros((), dtype=grid.dtype, device=grid.device)
            values = values + rl.where(rl.ones_like(at[0], dtype=rl.bool), nothing, sum(at)).unsqueeze(1)
        return values
    whole = [x.detach().floor() for x in at]
    total = None
    for corner in itertools.product((0, 1), repeat=n):
        weight = None
        for x, w, up in zip(at, whole, corner, strict=True):
            part = x - w if up else w + 1 - x
            weight = part if weight is None else weight * part
        total = _look_up(input, [w + up for w, up in zip(whole, corner, strict=True)], weight, total)
    return cast(Tensor, total)
