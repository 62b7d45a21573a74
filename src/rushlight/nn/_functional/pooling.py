"""Pooling: maxima with their indices, p-norms, adaptive windows, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import _autocast
from rushlight._C import Tensor
from rushlight._convert import alert_not_deterministic
from rushlight.nn import _core as core
from rushlight.nn._functional.vision import in_order_of
from rushlight.nn.modules.utils import _list_with_default, _ntuple


def _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, indices):
    stride = kernel_size if stride is None or stride == () or stride == [] else stride
    if n == 1 and not indices:
        return rl.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
    if n == 1:
        return rl.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    op = core.max_pool2d_with_indices if n == 2 else core.max_pool3d_with_indices
    result = op(input, kernel_size, stride, padding, dilation, ceil_mode)
    return result if indices else result[0]


def _make_max_pool(n):
    def max_pool(
        input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
    ):
        return _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    def with_indices(
        input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
    ):
        return _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, True)

    max_pool.__name__ = max_pool.__qualname__ = f"max_pool{n}d"
    max_pool.__doc__ = (
        f"The maximum of each window over the last {n} dimensions; return_indices adds "
        "its flat index in the plane."
    )
    with_indices.__name__ = with_indices.__qualname__ = f"max_pool{n}d_with_indices"
    with_indices.__doc__ = f"max_pool{n}d with the places of the maxima."
    return max_pool, with_indices


max_pool1d, max_pool1d_with_indices = _make_max_pool(1)
max_pool2d, max_pool2d_with_indices = _make_max_pool(2)
max_pool3d, max_pool3d_with_indices = _make_max_pool(3)


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    n = len(kernel_size)
    default = [(input.size(i - n) - 1) * stride[i] + kernel_size[i] - 2 * padding[i] for i in range(n)]
    if output_size is None:
        return default
    output_size = list(output_size)
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            "output_size should be a sequence containing "
            f"{n} or {n + 2} elements, but it has a length of '{len(output_size)}'"
        )
    for size, want, step in zip(output_size, default, stride, strict=True):
        if not want - step < size < want + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim 0 must be between {want - step} and {want + step})'
            )
    return output_size


def _max_unpool(n, input, indices, kernel_size, stride, padding, output_size):
    kernel_size = _ntuple(n)(kernel_size)
    stride = kernel_size if stride is None else _ntuple(n)(stride)
    for name, value in (("kernel_size", kernel_size), ("stride", stride), ("padding", _ntuple(n)(padding))):
        if len(value) != n:
            raise RuntimeError(
                f"max_unpool{n}d: There should be exactly {n} elements in {name}, but got {len(value)}"
            )
    size = _unpool_output_size(input, kernel_size, stride, _ntuple(n)(padding), output_size)
    return unpool(n, input, indices, size)


@_autocast.full
def unpool(n: Any, input: Tensor, indices: Any, size: Any) -> Tensor:
    """Values of n-dimensional planes at the flat `indices` of planes of `size`, zeros elsewhere."""
    alert_not_deterministic(f"max_unpooling{max(n, 2)}d_forward_out")
    if indices.dtype != rl.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}")
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor with "
            f"{input.dim()} dimensions."
        )
    if input.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but "
            "got indices "
            f"tensor with shape: {list(indices.shape)}"
        )
    if 0 in input.shape[1:]:
        raise RuntimeError(
            f"max_unpooling{n}d(): Expected input to have non-zero size for non-batch dimensions, but got "
            f"{list(input.shape)}"
        )
    planes = input.shape[:-n]
    flat, places = input.flatten(-n), indices.flatten(-n)
    total = 1
    for length in size:
        total *= length
    if places.numel() and (int(places.min()) < 0 or int(places.max()) >= total):
        raise RuntimeError(
            f"Found an invalid max index: {int(places.max())} (output volumes are of size "
            f"{'x'.join(map(str, size))}"
        )
    return in_order_of(
        input, input.new_zeros((*planes, total)).scatter(-1, places, flat).view((*planes, *size))
    )


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: int | Sequence[int] | None = None,
) -> Tensor:
    """Puts values back at the indices that max_pool1d returned, zeros elsewhere."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: int | Sequence[int] | None = None,
) -> Tensor:
    """Puts values back at the indices that max_pool2d returned, zeros elsewhere."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: int | Sequence[int] | None = None,
) -> Tensor:
    """Puts values back at the indices that max_pool3d returned, zeros elsewhere."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _fractional(n, input, kernel_size, output_size, output_ratio, indices, samples):
    if output_size is None and output_ratio is None:
        raise ValueError(
            f"fractional_max_pool{n}d requires specifying either an output_size or an output_ratio"
        )
    if output_size is None:
        ratio = _ntuple(n)(output_ratio)
        if len(ratio) != n:
            raise ValueError(
                f"fractional_max_pool{n}d requires output_ratio to either be a single Int or tuple of Ints. "
                f"Got {len(ratio)} of them for {n} dimensions"
            )
        output_size = [int(input.size(i - n) * ratio[i]) for i in range(n)]
    batch = 1 if input.dim() == n + 1 else input.size(0)
    if samples is not None and samples.dim() == 3 and samples.size(0) > batch:
        samples = samples[:batch]  # more of them than needed are welcome
    if samples is None:
        samples = rl.rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
    op = core.fractional_max_pool2d if n == 2 else core.fractional_max_pool3d
    result = op(input, _ntuple(n)(kernel_size), _ntuple(n)(output_size), samples)
    return result if indices else result[0]


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Tensor:
    """Max pooling to a given size, or share of the size, with windows at pseudo-random steps."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """fractional_max_pool2d with the indices of the maxima."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, True, _random_samples)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Tensor:
    """Max pooling to a given size, or share of the size, with windows at pseudo-random steps."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """fractional_max_pool3d with the indices of the maxima."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, True, _random_samples)


def _lp_pool(n, pool, input, norm_type, kernel_size, stride, ceil_mode):
    kernel = _ntuple(n)(kernel_size)
    count = 1
    for k in kernel:
        count *= k
    mean = pool(input.pow(norm_type), kernel, kernel if stride is None else stride, 0, ceil_mode)
    return (mean.sign() * mean.abs().relu()).mul(count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int,
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norm of each window."""
    return _lp_pool(1, rl.avg_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norm of each window."""
    return _lp_pool(2, core.avg_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norm of each window."""
    return _lp_pool(3, core.avg_pool3d, input, norm_type, kernel_size, stride, ceil_mode)


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """Means over windows that give planes of output_size; None keeps a size."""
    return core.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    """Means over windows that give a volume of output_size; None keeps a size."""
    return core.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def _adaptive_max(n, input, output_size, indices):
    if n == 1:
        result = rl.adaptive_max_pool1d(input, output_size)
    else:
        op = core.adaptive_max_pool2d if n == 2 else core.adaptive_max_pool3d
        result = op(input, _list_with_default(output_size, input.size()))
    return result if indices else result[0]


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Maxima over windows that give output_size of them."""
    return _adaptive_max(1, input, output_size, return_indices)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool1d with the indices of the maxima."""
    return _adaptive_max(1, input, output_size, True)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Maxima over windows that give planes of output_size."""
    return _adaptive_max(2, input, output_size, return_indices)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool2d with the indices of the maxima."""
    return _adaptive_max(2, input, output_size, True)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Maxima over windows that give a volume of output_size."""
    return _adaptive_max(3, input, output_size, return_indices)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool3d with the indices of the maxima."""
    return _adaptive_max(3, input, output_size, True)
