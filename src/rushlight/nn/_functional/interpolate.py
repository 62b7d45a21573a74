"""Resizing by nearest neighbours, linear and cubic interpolation, areas, and antialiased filters.

Every method is separable: each dimension is resized on its own, by the core or by index_select.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.nn import _core as core
from rushlight.nn import functional as F
from rushlight.nn._functional.vision import in_order_of, last_order


def _step(n_in: int, n_out: int, align_corners: bool, factor: float | None) -> float:
    """How far one step of the result goes in the input."""
    if align_corners:
        return (n_in - 1) / (n_out - 1) if n_out > 1 else 0.0
    return 1.0 / factor if factor is not None and factor > 0 else n_in / n_out


def _nearest_step(x: Tensor, dim: int, n_out: int, factor: float | None, exact: bool) -> float | None:
    """How far one step goes, or None for a dimension that stays."""
    n_in = x.size(dim)
    # PyTorch copies a dimension of images that keeps its size, whatever the factor.
    if n_in == n_out and (factor is None or factor == 1 or (x.dim() == 4 and not exact)):
        return None
    return _step(n_in, n_out, False, factor)


def _simple(step: float, n_in: int, n_out: int, exact: bool) -> tuple[int, int] | None:
    """(times, every): each element so many times, or every so manieth one, or None where indices need a list. Powers
    of two, which floats hold."""
    if n_out < 1 << 24 and math.frexp(step)[0] == 0.5:
        if step < 1 and n_out * step == n_in:
            return n_out // n_in, 1
        if step >= 1 and not exact and (n_out - 1) * step < n_in:
            return 1, int(step)
    return None


def _nearest(x: Tensor, dim: int, n_out: int, factor: float | None, exact: bool) -> Any:
    step = _nearest_step(x, dim, n_out, factor, exact)
    return x if step is None else core.nearest_dim(x, dim, n_out, step, exact)


def _nearest_at_once(
    x: Tensor, first: int, out: Sequence[int], factors: Any, exact: bool, repeats: Any
) -> Tensor | None:
    """All dimensions from `first` on in one copy, if they need no lists; else None. `repeats`: elements are repeated so
    too, which pays where others follow them in memory."""
    if not x.is_contiguous():
        return None
    simple: list[Any] = []
    for i, n_out in enumerate(out):
        step = _nearest_step(x, first + i, n_out, None if factors is None else factors[i], exact)
        simple.append((1, 1) if step is None else _simple(step, x.size(first + i), n_out, exact))
    if None in simple:
        return None
    if all(times == 1 for times, _ in simple):
        every = [slice(0, (n - 1) * s + 1, s) for n, (_, s) in zip(out, simple, strict=True)]
        return x[(slice(None),) * first + tuple(every)].clone(memory_format=rl.contiguous_format)
    if not repeats or any(s > 1 for _, s in simple):
        return None
    split, rest = list(x.shape[:first]), list(x.shape[first + len(out) :])
    for i in range(len(out)):
        split += [x.size(first + i), 1]
    y = x.view(split + rest)
    for i in range(len(out) - 1, -1, -1):  # one by one: so are the sums of the gradient
        wide = list(y.shape)
        wide[first + 2 * i + 1] = simple[i][0]
        y = y.expand(wide)
    return y.reshape(list(x.shape[:first]) + list(out) + rest)


def _linear(x: Tensor, dim: int, n_out: int, align_corners: bool, factor: float | None) -> Any:
    n_in = x.size(dim)
    if n_in == n_out:
        return x
    return core.resize_dim(x, dim, n_out, False, align_corners, _step(n_in, n_out, align_corners, factor))


def _cubic(x: Tensor, dim: int, n_out: int, align_corners: bool, factor: float | None) -> Any:
    n_in = x.size(dim)
    if n_in == n_out and (align_corners or factor is None or factor == 1):
        return x
    return core.resize_dim(x, dim, n_out, True, align_corners, _step(n_in, n_out, align_corners, factor))


_FILTERS = {"bilinear": 1, "bicubic": 2, "lanczos": 3}  # and how many elements wide they are to either side


def _antialias(x: Tensor, dim: int, n_out: int, kind: str, align_corners: bool, factor: float | None) -> Any:
    n_in = x.size(dim)
    if n_in == n_out:
        return x
    step = _step(n_in, n_out, align_corners, factor)
    return core.resize_dim(x, dim, n_out, False, align_corners, step, _FILTERS[kind])


def _whole(size: Any) -> int:
    """A size as an int; numbers and tensors that are no integers are refused."""
    try:
        return operator.index(size)
    except TypeError:
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
            f"with type {type(size)}: {size}"
        ) from None


def _sizes(input: Tensor, size: Any, scale_factor: Any, mode: str, recompute: bool | None) -> Any:
    """(size of the result, factors or None for each dimension)."""
    n = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, (list, tuple)):
            if len(size) != n:
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, but got "
                    f"{list(input.shape[2:])} after batch and channels, and the size {size}"
                )
            return [_whole(s) for s in size], None
        return [_whole(size)] * n, None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, (list, tuple)):
        if len(scale_factor) != n:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got "
                f"{list(input.shape[2:])} after batch and channels, and the factors {scale_factor}"
            )
        factors = [float(f) for f in scale_factor]
    else:
        factors = [float(scale_factor)] * n
    out = [math.floor(float(n_in) * f) for n_in, f in zip(input.shape[2:], factors, strict=True)]
    if any(abs(n_out) >= 1 << 63 for n_out in out):
        raise RuntimeError(
            f"value cannot be converted to type int64_t without overflow: scale_factor={scale_factor} of sizes "
            f"{list(input.shape[2:])}"
        )
    return out, None if recompute or mode == "area" else factors


def _check_sizes(input: Tensor, out: Sequence[int]) -> None:
    sizes = input.shape
    if min(out) > 0 and 0 not in sizes:
        return
    n = len(sizes) - 2
    if min(out) <= 0 or 0 in sizes[2:]:
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"{list(sizes[2:])} and output {out}"
        )
    if 0 in sizes[1:]:
        raise RuntimeError(
            f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {list(input.shape)}"
        )


def _order(sizes: Sequence[int], out: Sequence[int]) -> list[int]:
    """The dimensions in the order in which they are resized, so that the fewest elements are computed: first those that
    shrink, from the outermost, whose rows are longest, then those that grow, from the innermost."""
    dims = range(len(out))
    shrinking = [d for d in dims if out[d] < sizes[d]]
    return shrinking + [d for d in reversed(dims) if out[d] >= sizes[d]]


def resize(
    input: Tensor, out: Any, factors: Any, mode: str, align_corners: Any, antialias: bool = False
) -> Tensor:
    """(N, C, ...) resized to the sizes `out`; `factors` are the scales to take instead of the sizes' ratios, or None."""
    _check_sizes(input, out)
    n = input.dim() - 2
    exact = mode == "nearest-exact"
    # Integers are resized as floating point and rounded back; bytes are filtered as they are.
    filtered_bytes = antialias and input.dtype == rl.uint8
    nearest = mode.startswith("nearest")
    as_it_is = nearest or input.dtype.is_floating_point or filtered_bytes
    x = input if as_it_is else input.to(rl.float32)
    sizes = input.shape[2:]
    if nearest and not input.is_contiguous() and list(out) != list(sizes) and last_order(input) is not None:
        # As they are in memory, where the channels are one more dimension behind.
        x = x.movedim(1, -1)
        y = _nearest_at_once(x, 1, out, factors, exact, repeats=True)
        if y is None:
            y = x
            for dim in _order(x.shape[1:], out):
                y = _nearest(y, dim + 1, out[dim], None if factors is None else factors[dim], exact)
        return y.movedim(-1, 1)
    # Of small images, lists of indices are made faster than views.
    if nearest and (out[-1] < sizes[-1] or out[0] < sizes[0]) and input.numel() >= 2048:
        y = _nearest_at_once(x, 2, out, factors, exact, repeats=False)
        if y is not None:
            return y
    order = _order(x.shape[2:], out)
    if antialias:  # long filters along the last dimension cost most
        # Bytes are rounded in between, so that the order shows: it is PyTorch's.
        order = range(n - 1, -1, -1) if filtered_bytes else range(n)
    for i in order:
        dim = i + 2
        factor = None if factors is None else factors[dim - 2]
        if nearest:
            x = _nearest(x, dim, out[dim - 2], factor, exact)
        elif antialias:
            x = _antialias(x, dim, out[dim - 2], mode, align_corners, factor)
        elif mode == "bicubic":
            x = _cubic(x, dim, out[dim - 2], align_corners, factor)
        else:
            x = _linear(x, dim, out[dim - 2], align_corners, factor)
    if x.dtype != input.dtype:
        x = x.round().clamp(0, 255).to(input.dtype) if input.dtype == rl.uint8 else x.round().to(input.dtype)
    return x.clone() if x is input else in_order_of(input, x)


# The modes, and of how many dimensions each is; None for any number.
_DIMENSIONS = {
    "nearest": None, "nearest-exact": None, "area": None,
    "linear": 1, "bilinear": 2, "bicubic": 2, "lanczos": 2, "trilinear": 3,
}  # fmt: skip


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes sequences, images or volumes to a size or by a factor; see `nn.Upsample`.

    Args:
        input (Tensor): (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size (int or tuple): size of the output; either this or scale_factor. Default: None
        scale_factor (float or tuple): what sizes are multiplied by, rounded down. Default: None
        mode (str): 'nearest', 'nearest-exact', 'area', 'linear' (3-d input), 'bilinear', 'bicubic', 'lanczos'
            (4-d, the last with antialias only) or 'trilinear' (5-d). Default: 'nearest'
        align_corners (bool): whether the centres of the corner pixels coincide rather than their outer edges;
            not for 'nearest', 'nearest-exact' and 'area'. Default: None, which is False
        recompute_scale_factor (bool): interpolates by the ratio of sizes, not scale_factor. Default: None
        antialias (bool): filters what shrinks, for 'bilinear', 'bicubic' and 'lanczos'. Default: False

    Example:
        >>> F.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2, mode="linear")
        tensor([[[1.0000, 1.2500, 1.7500, 2.0000]]])
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | "
                "bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    n = input.dim() - 2
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful when size is explicitly specified.")
    out, factors = _sizes(input, size, scale_factor, mode, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and n == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if n not in (1, 2, 3) or mode not in _DIMENSIONS:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | "
            f"lanczos | area | nearest-exact (got {mode})"
        )
    want = _DIMENSIONS[mode]
    if want != n and want is not None:
        raise NotImplementedError(f"Got {n + 2}D input, but {mode} mode needs {want + 2}D input")
    if mode == "lanczos" and not antialias:
        raise ValueError("lanczos mode requires antialias=True")
    if mode != "area":
        return resize(input, out, factors, mode, align_corners, antialias)
    _check_sizes(input, out)
    return (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)[n - 1](input, out)


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Resizes sequences, images or volumes: the deprecated name of `interpolate`.

    Args:
        input (Tensor): as for interpolate.
        size (int or tuple): size of the output. Default: None
        scale_factor (float or tuple): what sizes are multiplied by. Default: None
        mode (str): as for interpolate. Default: 'nearest'
        align_corners (bool): as for interpolate. Default: None

    Example:
        >>> F.interpolate(torch.tensor([[[1.0, 2.0]]]), size=4)
        tensor([[[1., 1., 2., 2.]]])
    """
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return F.interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Resizes by repeating nearest elements: the deprecated form of `interpolate` with mode='nearest'.

    Args:
        input (Tensor): as for interpolate.
        size (int or tuple): size of the output. Default: None
        scale_factor (float or tuple): what sizes are multiplied by. Default: None

    Example:
        >>> F.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2, mode="nearest")
        tensor([[[1., 1., 2., 2.]]])
    """
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return F.interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """Resizes images bilinearly: the deprecated form of `interpolate` with mode='bilinear', align_corners=True.

    Args:
        input (Tensor): (N, C, H, W).
        size (int or tuple): size of the output. Default: None
        scale_factor (float or tuple): what sizes are multiplied by. Default: None

    Example:
        >>> F.interpolate(torch.tensor([[[[1.0, 2.0]]]]), (1, 3), mode="bilinear", align_corners=True)
        tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return F.interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
