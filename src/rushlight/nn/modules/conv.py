"""Convolutions and transposed convolutions in one, two and three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import rushlight as rl
from rushlight._C import Tensor, device, dtype
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules._doc import documented, lazily
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _ntuple, _reverse_repeat_tuple
from rushlight.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]  # fmt: skip

# Completed for each class by `documented`.
_CONV_DOC = """Convolves {data} with learned filters: y[o] = bias[o] + sum_c x[c] * weight[o, c] over channels c.

As everywhere in deep learning, filters are not flipped (cross-correlation). kernel_size=3 with padding=1
keeps the size, stride=2 halves it. groups=in_channels gives each channel filters of its own (depthwise).
bias=False is usual before a batch norm, which has a shift.

Args:
    in_channels (int): channels of the input.
    out_channels (int): channels of the output: the number of filters.
    kernel_size ({ints}): size of the filters.
    stride ({ints}): step of the filters from one output to the next. Default: 1
    padding ({ints} or str): elements put at both ends; 'valid' for none, 'same' for as
        many as keep the size (stride 1 only). Default: 0
    dilation ({ints}): spacing of filter elements in the input. Default: 1
    groups (int): cuts both kinds of channels into so many groups, each convolved on its own. Default: 1
    bias (bool): whether to add a learned value to each output channel. Default: True
    padding_mode (str): what is put there: 'zeros', 'reflect', 'replicate' or 'circular'. Default: 'zeros'
    device (device): where the parameters are made. Default: the default device
    dtype (dtype): their type. Default: torch.get_default_dtype()

Shape:
    input (N, C_in, {L}) -> (N, C_out, {Lo}), both also without N, where
    {first}_out = floor(({first} + 2 padding{i} - dilation{i} (kernel_size{i} - 1) - 1) / stride{i} + 1){rest}

Attributes:
    weight (out_channels, in_channels / groups, {k}): drawn from U(-b, b),
        b = 1 / sqrt(in_channels / groups {area}).
    bias (out_channels,): drawn from the same; None with bias=False.

Example:
    >>> layer = nn.Conv{n}d(3, 16, 3, stride=2, padding=1)
    >>> layer(torch.randn({given})).shape
    torch.Size([{result}])
"""

_CONV_TRANSPOSE_DOC = """Convolves {data} in reverse: the gradient of a `nn.Conv{n}d` with respect to its input.

Each input element adds its multiple of the filters to the output, at steps of `stride`: an upsampling with learned
weights, also (wrongly) called deconvolution. kernel_size divisible by stride avoids checkerboard patterns.

Args:
    in_channels (int): channels of the input.
    out_channels (int): channels of the output.
    kernel_size ({ints}): size of the filters.
    stride ({ints}): distance in the output of neighbouring input elements. Default: 1
    padding ({ints}): what is cut off both ends of the output. Default: 0
    output_padding ({ints}): added to the size at the end, less than stride or dilation: the
        size that was meant, as several give a strided convolution the same output size. Default: 0
    groups (int): cuts both kinds of channels into so many groups, each on its own. Default: 1
    bias (bool): whether to add a learned value to each output channel. Default: True
    dilation ({ints}): spacing of filter elements in the output. Default: 1
    padding_mode (str): 'zeros' alone is possible. Default: 'zeros'
    device (device): where the parameters are made. Default: the default device
    dtype (dtype): their type. Default: torch.get_default_dtype()

Shape:
    input (N, C_in, {L}) -> (N, C_out, {Lo}), both also without N, where
    {first}_out = ({first} - 1) stride{i} - 2 padding{i} + dilation{i} (kernel_size{i} - 1)
    + output_padding{i} + 1{rest};
    a call layer(x, output_size) finds the output_padding that gives this size

Attributes:
    weight (in_channels, out_channels / groups, {k}): drawn from U(-b, b),
        b = 1 / sqrt(out_channels / groups {area}).
    bias (out_channels,): drawn from the same; None with bias=False.

Example:
    >>> layer = nn.ConvTranspose{n}d(16, 3, 4, stride=2, padding=1)
    >>> layer(torch.randn({given})).shape
    torch.Size([{result}])
"""

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions share: checked arguments, weight and bias, the repr."""

    weight: Parameter
    bias: Parameter

    __constants__ = ["stride", "padding", "dilation", "groups", "padding_mode", "output_padding",
                     "in_channels",
                     "out_channels", "kernel_size"]  # fmt: skip

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...], stride: tuple[int, ...], padding: str | tuple[int, ...], dilation: tuple[int, ...], transposed: bool, output_padding: tuple[int, ...],
        groups: int, bias: bool,
        padding_mode: Literal["zeros", "reflect", "replicate", "circular"], device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name} must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode='{padding_mode}'"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = kernel_size, stride, dilation
        self.padding, self.padding_mode = padding, padding_mode
        self.transposed, self.output_padding = transposed, output_padding
        self._reversed_padding_repeated_twice: Sequence[int]
        # The sizes that `pad` wants where the mode is not 'zeros': the last dimension first.
        if isinstance(padding, str):
            around = [0, 0] * len(kernel_size)
            if padding == "same":
                for i, (d, k) in enumerate(zip(dilation, kernel_size, strict=True)):
                    total = d * (k - 1)
                    at = 2 * (len(kernel_size) - 1 - i)
                    around[at], around[at + 1] = total // 2, total - total // 2
            self._reversed_padding_repeated_twice = around
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)
        shape = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(rl.empty((*shape, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(rl.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew from U(-k, k), k = 1 / sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """A convolution; the subclass knows its number of dimensions and its function."""

    _dims = 0
    _name = ""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] = 1, padding: str | int | tuple[int, ...] = 0, dilation: int | tuple[int, ...] = 1, groups: int = 1, bias: bool = True,
        padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros", device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        each = _ntuple(self._dims)
        padding = padding if isinstance(padding, str) else each(padding)
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride), padding, each(dilation), False,
            each(0), groups,
            bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        op = getattr(F, self._name)
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            out: Tensor = op(input, weight, bias, self.stride, (0,) * self._dims, self.dilation, self.groups)
            return out
        result: Tensor = op(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        return result

    def forward(self, input: Tensor) -> Tensor:
        own = self._parameters
        try:
            weight, bias = own["weight"], own["bias"]
        except KeyError:  # a parametrisation keeps the weight elsewhere
            weight, bias = self.weight, self.bias
        return self._conv_forward(input, weight, bias)


@documented(_CONV_DOC, 1, given="8, 3, 100", result="8, 16, 50")
class Conv1d(_Conv):
    _dims, _name = 1, "conv1d"


@documented(_CONV_DOC, 2, given="8, 3, 32, 32", result="8, 16, 16, 16")
class Conv2d(_Conv):
    _dims, _name = 2, "conv2d"


@documented(_CONV_DOC, 3, given="2, 3, 8, 16, 16", result="2, 16, 4, 8, 8")
class Conv3d(_Conv):
    _dims, _name = 3, "conv3d"


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution: the gradient of a convolution with respect to its input."""

    _dims = 0
    _name = ""

    def __init__(
        self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: int = 1, padding: int = 0, output_padding: int = 0, groups: int = 1,
        bias: bool = True,
        dilation: int = 1, padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros", device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        each = _ntuple(self._dims)
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride), each(padding), each(dilation), True,
            each(output_padding), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(
        self,
        input: Tensor,
        output_size: Sequence[int] | None,
        stride: Sequence[int],
        padding: Sequence[int],
        kernel_size: Sequence[int],
        num_spatial_dims: int,
        dilation: Sequence[int] | None = None,
    ) -> Sequence[int]:
        """The output_padding that gives a result of output_size."""
        if output_size is None:
            return _ntuple(num_spatial_dims)(self.output_padding)
        n = num_spatial_dims
        if len(output_size) == input.dim():
            output_size = output_size[-n:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {input.dim()} "
                f"elements (got {len(output_size)})"
            )
        dilation = dilation if dilation is not None else (1,) * n
        least = [
            (input.size(i - n) - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel_size[i] - 1) + 1
            for i in range(n)
        ]
        most = [low + stride[i] - 1 for i, low in enumerate(least)]
        if any(not low <= size <= high for size, low, high in zip(output_size, least, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} "
                f"(for an input of {input.size()[2:]})"
            )
        return [size - low for size, low in zip(output_size, least, strict=True)]

    def forward(self, input: Any, output_size: Any = None) -> Tensor:
        assert not isinstance(self.padding, str)  # the constructor takes none
        extra = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self._dims, self.dilation
        )
        out: Tensor = getattr(F, self._name)(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )
        return out


@documented(_CONV_TRANSPOSE_DOC, 1, given="8, 16, 50", result="8, 3, 100")
class ConvTranspose1d(_ConvTransposeNd):
    _dims, _name = 1, "conv_transpose1d"


@documented(_CONV_TRANSPOSE_DOC, 2, given="8, 16, 16, 16", result="8, 3, 32, 32")
class ConvTranspose2d(_ConvTransposeNd):
    _dims, _name = 2, "conv_transpose2d"


@documented(_CONV_TRANSPOSE_DOC, 3, given="2, 16, 4, 8, 8", result="2, 3, 8, 16, 16")
class ConvTranspose3d(_ConvTransposeNd):
    _dims, _name = 3, "conv_transpose3d"


class _LazyConvXdMixin(LazyModuleMixin):
    """Takes in_channels from the first input."""

    in_channels: int
    out_channels: int
    groups: int
    kernel_size: tuple[int, ...]
    transposed: bool
    weight: Any
    bias: Any
    _dims: int

    def reset_parameters(self) -> None:
        """Draws weight and bias as the plain layer does, once in_channels is known; nothing before."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Makes weight and bias for the channels of an input; called at the first call."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if self.transposed:
            shape = (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        else:
            shape = (self.out_channels, self.in_channels // self.groups, *self.kernel_size)
        self.weight.materialize(shape)
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        n = self._dims
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but "
                f"got input of size: {input.shape}"
            )
        return input.shape[1] if input.dim() == n + 2 else input.shape[0]


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self, out_channels: Any, kernel_size: Any, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1, bias: bool = True,
        padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros",
        device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        # The channels are set after: 0 of them are divisible by any number of groups.
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
        )
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self, out_channels: Any, kernel_size: Any, stride: int = 1, padding: int = 0, output_padding: int = 0, groups: int = 1, bias: bool = True,
        dilation: int = 1,
        padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros", device: device | str | int | None = None, dtype: dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
            device,
            dtype,
        )
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)


@lazily(Conv1d, "in_channels")
class LazyConv1d(_LazyConv, Conv1d):
    cls_to_become = Conv1d


@lazily(Conv2d, "in_channels")
class LazyConv2d(_LazyConv, Conv2d):
    cls_to_become = Conv2d


@lazily(Conv3d, "in_channels")
class LazyConv3d(_LazyConv, Conv3d):
    cls_to_become = Conv3d


@lazily(ConvTranspose1d, "in_channels")
class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    cls_to_become = ConvTranspose1d


@lazily(ConvTranspose2d, "in_channels")
class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    cls_to_become = ConvTranspose2d


@lazily(ConvTranspose3d, "in_channels")
class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    cls_to_become = ConvTranspose3d
