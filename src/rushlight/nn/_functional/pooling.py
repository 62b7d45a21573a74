"""Pooling: maxima with their indices, p-norms, adaptive windows, and unpooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight._core import autocast as _autocast
from rushlight._core.convert import alert_not_deterministic
from rushlight.nn import _core as core
from rushlight.nn._functional.vision import in_order_of
from rushlight.nn.modules._doc import _T, documented
from rushlight.nn.modules.utils import _list_with_default, _ntuple

# Completed for each function by `_described`.
_MAX_POOL_DOC = """Takes the maximum of each window of {data}; see `nn.MaxPool{n}d`.

Args:
    input (Tensor): (N, C, {L}) or (C, {L}).
    kernel_size ({ints}): size of the windows.
    stride ({ints}): step from one window to the next. Default: None, kernel_size
    padding ({ints}): what is added at both ends, counting as -infinity. Default: 0
    dilation ({ints}): spacing of the elements of a window. Default: 1
    ceil_mode (bool): rounds the output size up. Default: False
    return_indices (bool): {indices}

Example:
    >>> F.{name}(torch.arange(4.0).view({view}), {kernel}){shown}
"""
_MAX_UNPOOL_DOC = """Puts maxima of {data} back to where they were, 0 elsewhere; see `nn.MaxUnpool{n}d`.

Args:
    input (Tensor): (N, C, {L}) or (C, {L}).
    indices (Tensor): int64 like input, flat indices in the output, from max_pool{n}d.
    kernel_size ({ints}): size of the windows.
    stride ({ints}): step from one window to the next. Default: None, kernel_size
    padding ({ints}): padding of the pooling. Default: 0
    output_size (tuple): the size that was pooled, where several pool to one. Default: None

Example:
    >>> y, indices = F.max_pool{n}d(torch.arange(4.0).view({view}), {kernel}, return_indices=True)
    >>> F.max_unpool{n}d(y, indices, {kernel}).flatten()
    tensor([0., 1., 0., 3.])
"""
_FRACTIONAL_DOC = """Takes maxima over windows of {data} at pseudo-random steps; see `nn.FractionalMaxPool{n}d`.

Args:
    input (Tensor): (N, C, {L}) or (C, {L}).
    kernel_size ({ints}): size of the windows.
    output_size ({ints}): size of the output; either this or output_ratio. Default: None
    output_ratio (float or tuple): share of the input's size. Default: None
    return_indices (bool): {indices}

Example:
    >>> F.{name}(torch.randn({given}), 2, output_size=3){shown}
"""
_LP_POOL_DOC = """Takes the p-norm of each window of {data}: y = (sum_k x_k^p)^(1/p); see `nn.LPPool{n}d`.

Args:
    input (Tensor): (N, C, {L}) or (C, {L}).
    norm_type (float): p.
    kernel_size ({ints}): size of the windows.
    stride ({ints}): step from one window to the next. Default: None, kernel_size
    ceil_mode (bool): rounds the output size up. Default: False

Example:
    >>> F.lp_pool{n}d(torch.tensor([3.0, 4.0, 0.0, 1.0]).view({view}), 2, {kernel}).flatten()
    tensor([5., 1.])
"""
_ADAPTIVE_DOC = """Takes the {what} of as many windows of {data} as output_size says; see `nn.Adaptive{kind}Pool{n}d`.

Args:
    input (Tensor): (N, C, {L}) or (C, {L}).
    output_size ({ints}): size of the output{none}.{indices}

Example:
    >>> F.{name}(torch.arange(4.0).view({view}), {kernel}){shown}
"""
_ASKED = "returns (maxima, their flat indices in the input) instead. Default: False"
_ALWAYS = "accepted: this form always returns (maxima, their indices). Default: False"


def _described(template: str, n: int, **further: Any) -> Callable[[_T], _T]:
    """`documented` with the example's input, a row of four elements, and a window of two of them."""
    kernel = "2" if n == 1 else f"({'1, ' * (n - 1)}2)"
    return documented(template, n, view="1, " * n + "4", kernel=kernel, **further)


def _describe_max(template: str, n: int, name: str, always: bool, **further: Any) -> Callable[[_T], _T]:
    shown = "[1].flatten()\n    tensor([1, 3])" if always else ".flatten()\n    tensor([1., 3.])"
    given = {"indices": _ALWAYS if always else _ASKED, "shown": shown, **further}
    return _described(template, n, name=name + "_with_indices" * always, **given)


def _fractional_doc(n: int, always: bool) -> Callable[[_T], _T]:
    shown = f"{'[0]' * always}.shape\n    torch.Size([1, {', '.join('3' * n)}])"
    given = "1, " + ", ".join("6" * n)
    return _describe_max(_FRACTIONAL_DOC, n, f"fractional_max_pool{n}d", always, given=given, shown=shown)


def _adaptive_doc(kind: str, n: int, always: bool = False) -> Callable[[_T], _T]:
    none = "" if n == 1 else "; None keeps the input's"
    if kind == "Avg":
        shown = ".flatten()\n    tensor([0.5000, 2.5000])"
        words = {"name": f"adaptive_avg_pool{n}d", "indices": "", "shown": shown}
        return _described(_ADAPTIVE_DOC, n, kind=kind, what="mean", none=none, **words)
    indices = f"\n    return_indices (bool): {_ALWAYS if always else _ASKED}"
    words = {"kind": kind, "what": "maximum", "none": none, "indices": indices}
    return _describe_max(_ADAPTIVE_DOC, n, f"adaptive_max_pool{n}d", always, **words)


def _max_pool(
    n: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: bool,
) -> Any:
    stride = kernel_size if stride is None or stride == () or stride == [] else stride
    if n == 1 and not indices:
        return rl.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
    if n == 1:
        return rl.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    op = core.max_pool2d_with_indices if n == 2 else core.max_pool3d_with_indices
    result = op(input, kernel_size, stride, padding, dilation, ceil_mode)
    return result if indices else result[0]


def _make_max_pool(n: int) -> tuple[Any, Any]:
    def max_pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, True)

    for function, always in ((max_pool, False), (with_indices, True)):
        function.__name__ = function.__qualname__ = f"max_pool{n}d" + "_with_indices" * always
        _describe_max(_MAX_POOL_DOC, n, f"max_pool{n}d", always)(function)
    return max_pool, with_indices


max_pool1d, max_pool1d_with_indices = _make_max_pool(1)
max_pool2d, max_pool2d_with_indices = _make_max_pool(2)
max_pool3d, max_pool3d_with_indices = _make_max_pool(3)


def _unpool_output_size(
    input: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_size: Sequence[int] | None,
) -> list[int]:
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


def _max_unpool(
    n: int, input: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
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
    flat, index = input.flatten(-n), indices.flatten(-n)
    total = 1
    for length in size:
        total *= length
    if index.numel() and (int(index.min()) < 0 or int(index.max()) >= total):
        raise RuntimeError(
            f"Found an invalid max index: {int(index.max())} (output volumes are of size "
            f"{'x'.join(map(str, size))}"
        )
    return in_order_of(
        input, input.new_zeros((*planes, total)).scatter(-1, index, flat).view((*planes, *size))
    )


@_described(_MAX_UNPOOL_DOC, 1)
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: int | Sequence[int] | None = None,
) -> Tensor:
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@_described(_MAX_UNPOOL_DOC, 2)
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: int | Sequence[int] | None = None,
) -> Tensor:
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@_described(_MAX_UNPOOL_DOC, 3)
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: int | Sequence[int] | None = None,
) -> Tensor:
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _fractional(
    n: int,
    input: Tensor,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    indices: bool,
    samples: Tensor | None,
) -> Any:
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


@_fractional_doc(2, always=False)
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Tensor:
    out: Tensor = _fractional(
        2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return out


@_fractional_doc(2, always=True)
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = _fractional(
        2, input, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return result


@_fractional_doc(3, always=False)
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Tensor:
    out: Tensor = _fractional(
        3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return out


@_fractional_doc(3, always=True)
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    output_size: int | Sequence[int] | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = _fractional(
        3, input, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return result


def _lp_pool(
    n: int, pool: Any, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    kernel = _ntuple(n)(kernel_size)
    count = 1
    for k in kernel:
        count *= k
    mean = pool(input.pow(norm_type), kernel, kernel if stride is None else stride, 0, ceil_mode)
    out: Tensor = (mean.sign() * mean.abs().relu()).mul(count).pow(1.0 / norm_type)
    return out


@_described(_LP_POOL_DOC, 1)
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int,
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    return _lp_pool(1, rl.avg_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


@_described(_LP_POOL_DOC, 2)
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    return _lp_pool(2, core.avg_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


@_described(_LP_POOL_DOC, 3)
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    return _lp_pool(3, core.avg_pool3d, input, norm_type, kernel_size, stride, ceil_mode)


@_adaptive_doc("Avg", 2)
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    out: Tensor = core.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))
    return out


@_adaptive_doc("Avg", 3)
def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int]) -> Tensor:
    out: Tensor = core.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))
    return out


def _adaptive_max(n: int, input: Tensor, output_size: Any, indices: bool) -> Any:
    if n == 1:
        result = rl.adaptive_max_pool1d(input, output_size)
    else:
        op = core.adaptive_max_pool2d if n == 2 else core.adaptive_max_pool3d
        result = op(input, _list_with_default(output_size, input.size()))
    return result if indices else result[0]


@_adaptive_doc("Max", 1)
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    out: Tensor = _adaptive_max(1, input, output_size, return_indices)
    return out


@_adaptive_doc("Max", 1, always=True)
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = _adaptive_max(1, input, output_size, True)
    return result


@_adaptive_doc("Max", 2)
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    out: Tensor = _adaptive_max(2, input, output_size, return_indices)
    return out


@_adaptive_doc("Max", 2, always=True)
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = _adaptive_max(2, input, output_size, True)
    return result


@_adaptive_doc("Max", 3)
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    out: Tensor = _adaptive_max(3, input, output_size, return_indices)
    return out


@_adaptive_doc("Max", 3, always=True)
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = _adaptive_max(3, input, output_size, True)
    return result
