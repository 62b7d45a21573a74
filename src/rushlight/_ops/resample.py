"""The primitives behind nn.functional's resizing and sampling, by PyTorch's internal names."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight._C import Tensor

from .._core.compose import op

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _grid_sample(name, input, grid, interpolation_mode, padding_mode, align_corners):
    from ..nn._functional.grid_sample import grid_sample

    if not 0 <= interpolation_mode < len(_MODES) or not 0 <= padding_mode < len(_PADDINGS):
        raise RuntimeError(
            f"{name}(): expected interpolation_mode and padding_mode to be 0, 1 or 2, got "
            f"{interpolation_mode} "
            f"and {padding_mode}"
        )
    return grid_sample(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], bool(align_corners))


@op
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Values of images or volumes at a grid's points; F.grid_sample takes modes by name.

    Args:
        input (Tensor): (N, C, H, W) or (N, C, D, H, W).
        grid (Tensor): (N, H_out, W_out, 2) or (N, D_out, H_out, W_out, 3), in [-1, 1], x first.
        interpolation_mode (int): 0 bilinear, 1 nearest, 2 bicubic.
        padding_mode (int): 0 zeros, 1 border, 2 reflection.
        align_corners (bool): whether -1 and 1 are the centres of the corner pixels rather than their outer edges.

    Example:
        >>> x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> torch.grid_sampler(x, torch.zeros(1, 1, 1, 2), 0, 0, False)
        tensor([[[[2.5000]]]])
    """
    return _grid_sample("grid_sampler", input, grid, interpolation_mode, padding_mode, align_corners)


_OF_RANK = """torch.grid_sampler of {what}.

Args:
    input (Tensor): {sizes}.
    grid (Tensor): {points}.
    interpolation_mode, padding_mode, align_corners: as there.

Example:
    >>> torch.{name}({image}, {one}, 0, 1, False)
    tensor({shown})
"""


def _of_rank(name, rank):
    def sampler(input, grid, interpolation_mode, padding_mode, align_corners):
        # Whether grid and input belong together comes first, and grid_sample says it.
        if input.dim() != rank and 0 < grid.dim() == input.dim() and grid.size(0) == input.size(0):
            raise RuntimeError(f"{name}(): expected {rank}D input, got sizes {list(input.shape)}")
        return _grid_sample(name, input, grid, interpolation_mode, padding_mode, align_corners)

    sampler.__name__ = sampler.__qualname__ = name
    sampler.__doc__ = _OF_RANK.format(
        name=name,
        what="images" if rank == 4 else "volumes",
        sizes="(N, C, H, W)" if rank == 4 else "(N, C, D, H, W)",
        points="(N, H_out, W_out, 2)" if rank == 4 else "(N, D_out, H_out, W_out, 3)",
        image=f"torch.ones({(1,) * rank})",
        one=f"torch.zeros({(1,) * (rank - 1)} + ({rank - 2},))",
        shown="[" * rank + "1." + "]" * rank,
    )
    op(sampler, alias=("_grid_sampler_2d_cpu_fallback",) if rank == 4 else ())


_of_rank("grid_sampler_2d", 4)
_of_rank("grid_sampler_3d", 5)


@op
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """The grid at which grid_sampler applies the affine maps theta.

    Args:
        theta (Tensor): (N, 2, 3) or (N, 3, 4).
        size (sequence of ints): of the images, (N, C, H, W) or (N, C, D, H, W).
        align_corners (bool): whether -1 and 1 are the centres of the corner pixels rather than their outer edges.

    Returns:
        Tensor: (N, H, W, 2) or (N, D, H, W, 3), x first.

    Example:
        >>> torch.affine_grid_generator(torch.eye(2, 3)[None], (1, 1, 2, 2), True)[0, 0]
        tensor([[-1., -1.],
                [ 1., -1.]])
    """
    from ..nn._functional.vision import affine_grid

    if len(size) not in (4, 5):
        raise RuntimeError(
            f"AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs, got size {list(size)}"
        )
    return affine_grid(theta, list(size), bool(align_corners))


def _target(name, n, input, output_size, scales):
    """(sizes, factors) of either form: sizes and one scale per dimension, or sizes or a list of scales."""
    if input.dim() != n + 2:
        raise RuntimeError(
            f"It is expected input_size equals to {n + 2}, but got size {input.dim()} ({name} of "
            f"{list(input.shape)})"
        )
    if len(scales) == 1 and isinstance(scales[0], list | tuple):
        scales = scales[0]
    elif all(s is None for s in scales):
        scales = None
    if output_size is None:
        if scales is None or len(scales) != n:
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        return [math.floor(input.size(i + 2) * s) for i, s in enumerate(scales)], list(scales)
    output_size = [output_size] if isinstance(output_size, int) else [int(s) for s in output_size]
    if len(output_size) != n:
        raise RuntimeError(f"It is expected output_size equals to {n}, but got size {len(output_size)}")
    if scales is not None:
        if len(scales) > n:
            raise TypeError(f"{name}() takes at most {n} scales, got {len(scales)}")
        scales = [*scales, *[None] * (n - len(scales))]
    return output_size, scales


def _upsample(name, n, mode, antialias=False):
    letters = ("scales",) if n == 1 else ("scales_d", "scales_h", "scales_w")[-n:]

    def resized(input, output_size, align_corners, scales, named):
        from ..nn._functional.interpolate import resize

        if named:
            given = named.pop("scale_factors", None)
            scales = (
                (given,)
                if given is not None
                else (*scales, *(named.pop(k, None) for k in letters[len(scales) :]))
            )
            if named:
                raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(named))}'")
        sizes, factors = _target(name, n, input, output_size, scales)
        return resize(input, sizes, factors, mode, align_corners, antialias)

    def nearest(input, output_size, *scales, **named):
        return resized(input, output_size, None, scales, named)

    def smooth(input, output_size, align_corners, *scales, **named):
        return resized(input, output_size, bool(align_corners), scales, named)

    upsample = nearest if mode.startswith("nearest") else smooth
    upsample.__name__ = upsample.__qualname__ = name
    upsample.__doc__ = f"interpolate(mode='{mode}') of {n + 2}-dimensional inputs."
    op(upsample, name="_nn." + name, out="exact")


for _n, _linear in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    _upsample(f"upsample_nearest{_n}d", _n, "nearest")
    _upsample(f"_upsample_nearest_exact{_n}d", _n, "nearest-exact")
    _upsample(f"upsample_{_linear}{_n}d", _n, _linear)
_upsample("upsample_bicubic2d", 2, "bicubic")
for _mode in ("bilinear", "bicubic", "lanczos"):
    _upsample(f"_upsample_{_mode}2d_aa", 2, _mode, antialias=True)


@op(name="_nn.im2col")
def im2col(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    stride: int | Sequence[int],
) -> Tensor:
    """im2col: windows of images as columns."""
    from ..nn._functional.vision import unfold

    return unfold(input, kernel_size, dilation, padding, stride)


@op(name="_nn.col2im")
def col2im(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    stride: int | Sequence[int],
) -> Tensor:
    """col2im: columns of windows summed back into images."""
    from ..nn._functional.vision import fold

    return fold(input, output_size, kernel_size, dilation, padding, stride)
