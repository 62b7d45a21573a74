"""Pooling layers: a base class a kind, whose subclasses know their number of dimensions and their function."""

from __future__ import annotations

from typing import Any

from rushlight._C import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules._doc import documented
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _ntuple

__all__ = [
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
]  # fmt: skip


# Completed for each class by `documented`.
_MAX_POOL_DOC = """Takes the maximum of each window of {data}: y[o] = max_k x[stride o + dilation k - padding].

Channels are pooled each on its own. What is padded counts as -infinity. Nothing is learned, and training and
evaluation are the same.

Args:
    kernel_size ({ints}): size of the windows.
    stride ({ints}): step from one window to the next. Default: kernel_size
    padding ({ints}): what is added at both ends, at most half of kernel_size. Default: 0
    dilation ({ints}): spacing of the elements of a window. Default: 1
    return_indices (bool): returns (maxima, their flat indices) for `nn.MaxUnpool{n}d`. Default: False
    ceil_mode (bool): rounds the output size up: a last window may reach over the end. Default: False

Shape:
    input (N, C, {L}) -> (N, C, {Lo}), both also without N, where
    {first}_out = floor(({first} + 2 padding{i} - dilation{i} (kernel_size{i} - 1) - 1) / stride{i} + 1){rest}

Gradient:
    Goes to the maximum of each window, the first of several equal ones.

Example:
    >>> nn.MaxPool{n}d(3, stride=2, padding=1)(torch.randn({given})).shape
    torch.Size([{result}])
"""

_MAX_UNPOOL_DOC = """Puts maxima of {data} back to where they were: y[indices] = x, 0 elsewhere.

A partial inverse of `nn.MaxPool{n}d` with return_indices=True; what was not a maximum stays lost.

Args:
    kernel_size ({ints}): size of the windows.
    stride ({ints}): step from one window to the next. Default: kernel_size
    padding ({ints}): padding of the pooling. Default: 0

Shape:
    input (N, C, {L}) and indices of the same shape -> (N, C, {Lo}), also without N, where
    {first}_out = ({first} - 1) stride{i} - 2 padding{i} + kernel_size{i}{rest};
    several sizes pool to one: the call takes the right one as output_size

Example:
    >>> y, indices = nn.MaxPool{n}d(2, return_indices=True)(torch.randn({given}))
    >>> nn.MaxUnpool{n}d(2)(y, indices).shape
    torch.Size([{given}])
"""

_AVG_POOL_DOC = """Takes the mean of each window of {data}: y[o] = mean_k x[stride o + k - padding].

Channels are pooled each on its own. To pool to a given size, whatever the input's, use
`nn.AdaptiveAvgPool{n}d`.

Args:
    kernel_size ({ints}): size of the windows.
    stride ({ints}): step from one window to the next. Default: kernel_size
    padding ({ints}): zeros added at both ends, at most half of kernel_size. Default: 0
    ceil_mode (bool): rounds the output size up: a last window may reach over the end. Default: False
    count_include_pad (bool): whether padded zeros count as elements in the mean. Default: True{divisor}

Shape:
    input (N, C, {L}) -> (N, C, {Lo}), both also without N, where
    {first}_out = floor(({first} + 2 padding{i} - kernel_size{i}) / stride{i} + 1){rest}

Example:
    >>> nn.AvgPool{n}d(2)(torch.randn({given})).shape
    torch.Size([{result}])
"""
_DIVISOR = """
    divisor_override (int): divides the sum of each window instead of its number of elements. Default: None"""

_FRACTIONAL_DOC = """Takes maxima over windows of {data} whose steps are pseudo-random, down to a given size.

Steps are chosen anew in each call, in evaluation as in training, so that sizes can shrink by factors like
0.7 with less overfitting to a fixed grid. One of output_size and output_ratio is given.

Args:
    kernel_size ({ints}): size of the windows.
    output_size ({ints}): size of the output. Default: None
    output_ratio (float or tuple): share of the input's size, within (0, 1). Default: None
    return_indices (bool): returns (maxima, their flat indices in {L}). Default: False

Shape:
    input (N, C, {L}) -> (N, C, {Lo}), of output_size or floor(size x output_ratio);
    both also without N

Example:
    >>> nn.FractionalMaxPool{n}d(2, output_ratio=0.7)(torch.randn({given})).shape
    torch.Size([{result}])
"""

_LP_POOL_DOC = """Takes the p-norm of each window of {data}: y = (sum_k x_k^p)^(1/p).

p = 1 sums each window; the greater p, the nearer to the maximum. The powers are of x, not of |x|: with an odd
p > 1, a window whose powers sum to less than 0 gives NaN.

Args:
    norm_type (float): p.
    kernel_size ({ints}): size of the windows.
    stride ({ints}): step from one window to the next. Default: kernel_size
    ceil_mode (bool): rounds the output size up: a last window may reach over the end. Default: False

Shape:
    input (N, C, {L}) -> (N, C, {Lo}), both also without N, where
    {first}_out = floor(({first} - kernel_size{i}) / stride{i} + 1){rest}

Example:
    >>> nn.LPPool{n}d(2, 3, stride=2)(torch.rand({given})).shape
    torch.Size([{result}])
"""

_ADAPTIVE_DOC = """Takes the {what} of as many windows of {data} as the output is to have elements.

Window i of o covers the elements from floor(i L / o) to ceil((i + 1) L / o) of a dimension of size L.
Output size 1 pools each channel to one value (global pooling): classifiers take {data} of any size so.

Args:
    output_size ({sizes}): size of the output{none}.{indices}

Shape:
    input (N, C, {L}) -> (N, C, *output_size), both also without N

Example:
    >>> nn.Adaptive{kind}Pool{n}d(1)(torch.randn({given})).shape
    torch.Size([{result}])
"""
_INDICES = """
    return_indices (bool): returns (maxima, their flat indices in the input) too. Default: False"""


def _adaptive(kind: str, n: int, given: str, result: str) -> Any:
    one = {"sizes": "int", "none": ""}
    several = {"sizes": f"int, None or tuple of {n}", "none": "; None keeps the input's"}
    extra = {"indices": _INDICES, "what": "maximum"} if kind == "Max" else {"indices": "", "what": "mean"}
    return documented(
        _ADAPTIVE_DOC, n, kind=kind, given=given, result=result, **(one if n == 1 else several), **extra
    )


class _MaxPoolNd(Module):
    _name = ""
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(
        self,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )

    def forward(self, input: Any) -> Tensor:
        out: Tensor = getattr(F, self._name)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )
        return out


@documented(_MAX_POOL_DOC, 1, given="8, 16, 50", result="8, 16, 25")
class MaxPool1d(_MaxPoolNd):
    _name = "max_pool1d"


@documented(_MAX_POOL_DOC, 2, given="8, 16, 32, 32", result="8, 16, 16, 16")
class MaxPool2d(_MaxPoolNd):
    _name = "max_pool2d"


@documented(_MAX_POOL_DOC, 3, given="2, 4, 8, 16, 16", result="2, 4, 4, 8, 8")
class MaxPool3d(_MaxPoolNd):
    _name = "max_pool3d"


class _MaxUnpoolNd(Module):
    _dims, _name = 0, ""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: int = 0) -> None:
        super().__init__()
        each = _ntuple(self._dims)
        self.kernel_size = each(kernel_size)
        self.stride = each(stride if stride is not None else kernel_size)
        self.padding = each(padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"

    def forward(self, input: Any, indices: Tensor, output_size: Any = None) -> Tensor:
        out: Tensor = getattr(F, self._name)(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )
        return out


@documented(_MAX_UNPOOL_DOC, 1, given="1, 2, 6")
class MaxUnpool1d(_MaxUnpoolNd):
    _dims, _name = 1, "max_unpool1d"


@documented(_MAX_UNPOOL_DOC, 2, given="1, 2, 6, 4")
class MaxUnpool2d(_MaxUnpoolNd):
    _dims, _name = 2, "max_unpool2d"


@documented(_MAX_UNPOOL_DOC, 3, given="1, 2, 4, 6, 4")
class MaxUnpool3d(_MaxUnpoolNd):
    _dims, _name = 3, "max_unpool3d"


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


@documented(_AVG_POOL_DOC, 1, divisor="", given="8, 16, 50", result="8, 16, 25")
class AvgPool1d(_AvgPoolNd):
    def __init__(
        self,
        kernel_size: int | tuple[int],
        stride: int | tuple[int] | None = None,
        padding: int | tuple[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        each = _ntuple(1)
        self.kernel_size = each(kernel_size)
        self.stride = each(stride if stride is not None else kernel_size)
        self.padding = each(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _AvgPoolDivisor(_AvgPoolNd):
    _name = ""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: int = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        out: Tensor = getattr(F, self._name)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )
        return out


@documented(_AVG_POOL_DOC, 2, divisor=_DIVISOR, given="8, 16, 32, 32", result="8, 16, 16, 16")
class AvgPool2d(_AvgPoolDivisor):
    _name = "avg_pool2d"


@documented(_AVG_POOL_DOC, 3, divisor=_DIVISOR, given="2, 4, 8, 16, 16", result="2, 4, 4, 8, 8")
class AvgPool3d(_AvgPoolDivisor):
    _name = "avg_pool3d"

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name, value in (("padding", 0), ("ceil_mode", False), ("count_include_pad", True)):
            self.__dict__.setdefault(name, value)


class _FractionalMaxPoolNd(Module):
    _dims, _name = 0, ""
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        each = _ntuple(self._dims)
        self.kernel_size = each(kernel_size)
        if min(self.kernel_size) <= 0:
            raise ValueError(f"kernel_size must greater than zero, but got {kernel_size}")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = each(output_size) if output_size is not None else None
        self.output_ratio = each(output_ratio) if output_ratio is not None else None
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Tensor:
        out: Tensor = getattr(F, self._name)(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )
        return out


@documented(_FRACTIONAL_DOC, 2, given="8, 16, 20, 20", result="8, 16, 14, 14")
class FractionalMaxPool2d(_FractionalMaxPoolNd):
    _dims, _name = 2, "fractional_max_pool2d"


@documented(_FRACTIONAL_DOC, 3, given="2, 4, 10, 20, 20", result="2, 4, 7, 14, 14")
class FractionalMaxPool3d(_FractionalMaxPoolNd):
    _dims, _name = 3, "fractional_max_pool3d"


class _LPPoolNd(Module):
    _name = ""
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, ceil_mode={self.ceil_mode}"
        )

    def forward(self, input: Any) -> Tensor:
        out: Tensor = getattr(F, self._name)(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )
        return out


@documented(_LP_POOL_DOC, 1, given="8, 16, 50", result="8, 16, 24")
class LPPool1d(_LPPoolNd):
    _name = "lp_pool1d"


@documented(_LP_POOL_DOC, 2, given="8, 16, 32, 32", result="8, 16, 15, 15")
class LPPool2d(_LPPoolNd):
    _name = "lp_pool2d"


@documented(_LP_POOL_DOC, 3, given="2, 4, 8, 16, 16", result="2, 4, 3, 7, 7")
class LPPool3d(_LPPoolNd):
    _name = "lp_pool3d"


class _AdaptivePoolNd(Module):
    _name = ""
    __constants__ = ["output_size"]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMaxPoolNd(_AdaptivePoolNd):
    __constants__ = ["output_size", "return_indices"]

    def __init__(
        self, output_size: int | tuple[int | None, ...] | None, return_indices: bool = False
    ) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Any) -> Tensor:
        out: Tensor = getattr(F, self._name)(input, self.output_size, self.return_indices)
        return out


@_adaptive("Max", 1, "8, 16, 50", "8, 16, 1")
class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    _name = "adaptive_max_pool1d"


@_adaptive("Max", 2, "8, 16, 32, 20", "8, 16, 1, 1")
class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    _name = "adaptive_max_pool2d"


@_adaptive("Max", 3, "2, 4, 8, 16, 16", "2, 4, 1, 1, 1")
class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    _name = "adaptive_max_pool3d"


class _AdaptiveAvgPoolNd(_AdaptivePoolNd):
    def forward(self, input: Any) -> Tensor:
        out: Tensor = getattr(F, self._name)(input, self.output_size)
        return out


@_adaptive("Avg", 1, "8, 16, 50", "8, 16, 1")
class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    _name = "adaptive_avg_pool1d"


@_adaptive("Avg", 2, "8, 16, 32, 20", "8, 16, 1, 1")
class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    _name = "adaptive_avg_pool2d"


@_adaptive("Avg", 3, "2, 4, 8, 16, 16", "2, 4, 1, 1, 1")
class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    _name = "adaptive_avg_pool3d"
