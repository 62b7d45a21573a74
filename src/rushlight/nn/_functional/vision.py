"""Padding, windows (fold and unfold), and resampling on affine grids."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import _C
from rushlight._C import Tensor, memory_format
from rushlight.nn.modules.utils import _pair


def last_order(input: Tensor) -> memory_format | None:
    """The memory format of (N, C, ...) with its channels last, if that is input's; else None."""
    order = None if input.is_contiguous() else {4: rl.channels_last, 5: rl.channels_last_3d}.get(input.dim())
    return order if order is not None and input.is_contiguous(memory_format=order) else None


def in_order_of(input: Tensor, result: Any) -> Tensor:
    """The result of (N, C, ...), with its channels last in memory where the input has them there."""
    order = last_order(input)
    out: Tensor = result if order is None else result.contiguous(memory_format=order)
    return out


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pads the last dimensions: a row 1 2 3 padded by (2, 1) becomes 0 0 1 2 3 0.

    Args:
        input (Tensor): any shape; (C, *) or (N, C, *) for modes other than 'constant', which pad * alone.
        pad (sequence of int): elements before and after each dimension, the last dimension first: (left, right,
            top, bottom, front, back). Negative ones crop.
        mode (str): 'constant' (0 0 1 2 3 0), 'reflect' (3 2 1 2 3 2), 'replicate' (1 1 1 2 3 3) or 'circular'
            (2 3 1 2 3 1). Default: 'constant'
        value (float): what is put there, for 'constant'. Default: None, 0

    Example:
        >>> F.pad(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), (1, 0))
        tensor([[0., 1., 2.],
                [0., 3., 4.]])
    """
    if len(pad) % 2 != 0:
        raise RuntimeError(f"Padding length must be divisible by 2, but got {len(pad)}")
    if len(pad) // 2 > input.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding "
            "length "
            f"{len(pad)} and input of dimension {input.dim()}"
        )
    if mode == "constant":
        if isinstance(value, complex | str):
            kind = type(value).__name__
            raise TypeError(f"pad(): argument 'value' (position 4) must be float, not {kind}")
        return rl.constant_pad_nd(input, pad, 0.0 if value is None else float(value))
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    n = len(pad) // 2
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if not (n in (1, 2, 3) and input.dim() in (n + 1, n + 2)):
        raise NotImplementedError(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: "
            f"got an input of {input.dim()} dimensions and {n} pairs of sizes"
        )
    if 0 in input.shape[1 if input.dim() == n + 2 else 0 :]:
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other "
            "non-zero dimensions "
            f"for input, but got: {list(input.shape)}"
        )
    if mode == "circular":
        out: Tensor = _C.ops["_nn.wrap"](input, pad)
        return out
    return in_order_of(input, _C.ops["_nn.extend"](input, pad, 0 if mode == "reflect" else 1))


def _tap_positions(length: int, kernel: int, dilation: int, padding: int, stride: int) -> int:
    """How many windows there are."""
    return (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _windows(outputs: int, kernel: int, dilation: int, stride: int, device: Any) -> Tensor:
    """(kernel, outputs): the padded position that each kernel element sees for each output."""
    at = rl.arange(kernel, device=device).unsqueeze(1) * dilation
    return at + rl.arange(outputs, device=device) * stride


def _check_windows(name: str, **sizes: Any) -> None:
    for what, (values, low) in sizes.items():
        if len(values) != 2:
            raise RuntimeError(f"It is expected {what} equals to 2, but got size {len(values)}")
        if any(v < low for v in values):
            kind = "greater than zero" if low == 1 else "non-negative"
            raise RuntimeError(f"{what} should be {kind}, but got {what}: {list(values)} in {name}")


def unfold(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Takes sliding blocks out of images, each as a column (im2col); see `nn.Unfold` for the number of blocks.

    Args:
        input (Tensor): (N, C, H, W) or (C, H, W).
        kernel_size (int or (int, int)): size of a block.
        dilation (int or (int, int)): spacing of the elements of a block. Default: 1
        padding (int or (int, int)): zeros put around the image. Default: 0
        stride (int or (int, int)): step from one block to the next. Default: 1

    Returns:
        A tensor (N, C x kH x kW, number of blocks), without N for one image.

    Example:
        >>> F.unfold(torch.arange(4.0).view(1, 1, 4), (1, 2))
        tensor([[0., 1., 2.],
                [1., 2., 3.]])
    """
    kernel, dilation, padding, stride = _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)
    _check_windows(
        "unfold", kernel_size=(kernel, 1), dilation=(dilation, 1), padding=(padding, 0), stride=(stride, 1)
    )
    if input.dim() not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            "dimensions for input, "
            f"but got: {list(input.shape)}"
        )
    x = input.unsqueeze(0) if input.dim() == 3 else input
    rows = _tap_positions(x.size(2), kernel[0], dilation[0], padding[0], stride[0])
    cols = _tap_positions(x.size(3), kernel[1], dilation[1], padding[1], stride[1])
    if rows < 1 or cols < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(x.shape[2:])}, kernel_size={kernel}, "
            f"dilation={dilation}, padding={padding}, "
            f"calculated shape of the array of sliding blocks as ({max(rows, 0)}, {max(cols, 0)}), but its "
            "components must be at least one."
        )
    if padding != (0, 0):
        x = rl.constant_pad_nd(x, (padding[1], padding[1], padding[0], padding[0]), 0)
    n, c = x.shape[:2]
    # A view of all windows, (N, C, rows, cols, kernel, kernel), and one copy of it.
    x = x.unfold(2, (kernel[0] - 1) * dilation[0] + 1, stride[0])
    x = x.unfold(3, (kernel[1] - 1) * dilation[1] + 1, stride[1])
    x = x[..., :: dilation[0], :: dilation[1]].permute(0, 1, 4, 5, 2, 3)
    out = x.clone(memory_format=rl.contiguous_format).view(n, c * kernel[0] * kernel[1], rows * cols)
    return out.squeeze(0) if input.dim() == 3 else out


def fold(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Adds columns of sliding blocks up into images (col2im), the transpose of `unfold`; see `nn.Fold`.

    Args:
        input (Tensor): (N, C x kH x kW, number of blocks), or without N.
        output_size (int or (int, int)): height and width of the images.
        kernel_size (int or (int, int)): size of a block.
        dilation (int or (int, int)): spacing of the elements of a block. Default: 1
        padding (int or (int, int)): zeros that were around the image. Default: 0
        stride (int or (int, int)): step from one block to the next. Default: 1

    Returns:
        A tensor (N, C, *output_size), without N for one image.

    Example:
        >>> F.fold(torch.ones(2, 3), (1, 4), (1, 2))
        tensor([[[1., 2., 2., 1.]]])
    """
    size, kernel, dilation, padding, stride = (
        _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride),
    )  # fmt: skip
    _check_windows(
        "fold",
        output_size=(size, 1),
        kernel_size=(kernel, 1),
        dilation=(dilation, 1),
        padding=(padding, 0),
        stride=(stride, 1),
    )
    if input.dim() not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
            "dimensions for input, "
            f"but got: {list(input.shape)}"
        )
    x = input.unsqueeze(0) if input.dim() == 2 else input
    area = kernel[0] * kernel[1]
    if x.size(1) % area != 0:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={x.size(1)} and kernel_size={kernel}."
        )
    rows = _tap_positions(size[0], kernel[0], dilation[0], padding[0], stride[0])
    cols = _tap_positions(size[1], kernel[1], dilation[1], padding[1], stride[1])
    given = f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}, "
    if rows < 1 or cols < 1:
        raise RuntimeError(
            f"{given}calculated shape of the array of sliding blocks as ({rows}, {cols}), which is too small "
            "(non-positive)"
        )
    blocks = rows * cols
    if x.size(2) != blocks:
        raise RuntimeError(
            f"{given}"
            "expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{rows} * {cols} = {blocks}, "
            f"but got input.size(2)={x.size(2)}."
        )
    n, c = x.size(0), x.size(1) // area
    high, wide = size[0] + 2 * padding[0], size[1] + 2 * padding[1]
    x = x.view(n, c, kernel[0], kernel[1], rows, cols)
    if stride == kernel and dilation == (1, 1) and (rows * stride[0], cols * stride[1]) == (high, wide):
        x = x.permute(0, 1, 4, 2, 5, 3)  # windows that tile the image
        x = x.clone(memory_format=rl.contiguous_format).view(n, c, high, wide)
    else:
        down = _windows(rows, kernel[0], dilation[0], stride[0], x.device).flatten()
        across = _windows(cols, kernel[1], dilation[1], stride[1], x.device).flatten()
        x = x.permute(0, 1, 2, 4, 3, 5).reshape(n, c, down.numel(), across.numel())
        x = x.new_zeros((n, c, down.numel(), wide)).index_add(3, across, x)
        x = x.new_zeros((n, c, high, wide)).index_add(2, down, x)
    out = x[:, :, padding[0] : padding[0] + size[0], padding[1] : padding[1] + size[1]].contiguous()
    return out.squeeze(0) if input.dim() == 2 else out


def _axis(length: int, align_corners: bool, like: Tensor) -> Tensor:
    """Coordinates of `length` pixels in [-1, 1]."""
    if length <= 1:
        return like.new_zeros((length,))
    points = rl.linspace(-1, 1, length, dtype=like.dtype, device=like.device)
    # In two steps, as PyTorch rounds: the middles of pixels are where the derivative of an image changes, and the last bit
    # decides on which side a point is.
    return points if align_corners else points * (length - 1) / length


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Makes the grid with which `grid_sample` applies affine maps: grid[n, y, x] = theta[n] (x, y, 1)^T.

    x and y run over [-1, 1]; theta maps positions of the output to those of the input they are read from.

    Args:
        theta (Tensor): (N, 2, 3) for images, (N, 3, 4) for volumes.
        size (sequence of int): size of the output, (N, C, H, W) or (N, C, D, H, W).
        align_corners (bool): whether -1 and 1 are the centres of the corner pixels rather than their outer
            edges; as in grid_sample. Default: None, which is False with a warning

    Returns:
        A tensor (N, H, W, 2) or (N, D, H, W, 3).

    Example:
        >>> F.affine_grid(torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2), align_corners=False)
        tensor([[[[-0.5000,  0.0000],
                  [ 0.5000,  0.0000]]]])
    """
    import warnings

    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
            "Please specify align_corners=True if the old behavior is desired.",
            stacklevel=2,
        )
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got "
            f"size {size}."
        )
    if theta.dim() != 3 or theta.size(-2) != n or theta.size(-1) != n + 1:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "affine_grid behavior has changed for unit-size grids when align_corners=True since 1.3.0: their one "
            "place is 0, not -1. See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    space = list(size[2:])
    axes = rl.meshgrid(*[_axis(length, align_corners, theta) for length in space], indexing="ij")
    base = rl.stack([*reversed(axes), rl.ones_like(axes[0])], -1).view(1, -1, n + 1)  # x first
    out: Tensor = _affine_map().apply(theta, base).view(theta.size(0), *space, n)
    return out


@functools.cache
def _affine_map() -> Any:
    """base (1, pixels, n + 1) through each map of theta (N, n, n + 1); its backward saves nothing, so that it can run
    again. (autograd.Function is loaded when needed.)"""

    class AffineGridGeneratorBackward0(rl.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(theta: Tensor, base: Tensor) -> Any:
            return base.expand(theta.size(0), -1, -1) @ theta.transpose(1, 2)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> Any:
            ctx.base = inputs[1]

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad.transpose(1, 2) @ ctx.base.expand(grad.size(0), -1, -1), None

    return AffineGridGeneratorBackward0
