"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

import rushlight as rl
from rushlight._C import Tensor, device, dtype
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter, UninitializedParameter

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input unchanged: y = x.

    It stands in for a layer that is to be left out: `model.fc = nn.Identity()` makes a classifier give its
    features.

    Args:
        args (any): ignored.
        kwargs (any): ignored.

    Shape:
        input (*) -> (*), any shape

    Example:
        >>> nn.Identity(54, bias=False)(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """Applies an affine map to the last dimension of the input: y = x A^T + b.

    All other dimensions are batch: (N, L, E) needs no reshaping. Images (N, C, H, W) go through `nn.Flatten()`
    first. Where the size of the input is not known yet, `nn.LazyLinear` takes it from the first call.

    Args:
        in_features (int): size of the input's last dimension.
        out_features (int): size of the output's last dimension.
        bias (bool): whether to add b; not needed before a batch norm, which has a shift. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (*, in_features) -> (*, out_features), with any number of dimensions, or none, for *

    Attributes:
        weight (out_features, in_features): A, drawn from U(-k, k) with k = 1 / sqrt(in_features).
        bias (out_features,): b, drawn from the same; None with bias=False.

    Example:
        >>> layer = nn.Linear(20, 30)
        >>> layer(torch.randn(128, 20)).shape
        torch.Size([128, 30])
        >>> layer.weight.shape
        torch.Size([30, 20])
    """

    __constants__ = ["in_features", "out_features"]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(rl.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(rl.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew from U(-k, k), k = 1 / sqrt(in_features)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        own = self._parameters
        try:
            return F.linear(input, own["weight"], own["bias"])  # type: ignore[arg-type]
        except KeyError:  # a parametrisation keeps the weight elsewhere
            return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """Applies an affine map, y = x A^T + b: a `nn.Linear` under another name, the output projection of attention.

    Quantization that looks for `nn.Linear` by its exact type leaves it alone.

    Args:
        in_features (int): size of the input's last dimension.
        out_features (int): size of the output's last dimension.
        bias (bool): whether to add b. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()
    """


class Bilinear(Module):
    """Applies a bilinear form per output to two inputs: y_k = x1^T A_k x2 + b_k.

    Args:
        in1_features (int): size of the first input's last dimension, greater than 0.
        in2_features (int): size of the second input's last dimension.
        out_features (int): number of forms.
        bias (bool): whether to add b. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input1 (*, in1_features), input2 (*, in2_features) -> (*, out_features), with the same * in all three

    Attributes:
        weight (out_features, in1_features, in2_features): A, drawn from U(-k, k), k = 1 / sqrt(in1_features).
        bias (out_features,): b, drawn from the same; None with bias=False.

    Example:
        >>> layer = nn.Bilinear(20, 30, 40)
        >>> layer(torch.randn(128, 20), torch.randn(128, 30)).shape
        torch.Size([128, 40])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(
            rl.empty((out_features, in1_features, in2_features), device=device, dtype=dtype)
        )
        if bias:
            self.bias = Parameter(rl.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias anew from U(-k, k), k = 1 / sqrt(in1_features)."""
        reach = 1 / math.sqrt(self.weight.size(1))
        for value in (self.weight, self.bias):
            if value is not None:
                init.uniform_(value, -reach, reach)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """Applies an affine map, y = x A^T + b, whose in_features is read from the first input.

    Until that call its parameters have no shape; then the layer becomes a `nn.Linear`. Make the optimizer after
    a first call on an example batch.

    Args:
        out_features (int): size of the output's last dimension.
        bias (bool): whether to add b. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (*, in_features) -> (*, out_features)

    Attributes:
        weight (out_features, in_features): drawn from U(-k, k) at the first call, k = 1 / sqrt(in_features).
        bias (out_features,): drawn from the same; None with bias=False.

    Example:
        >>> layer = nn.LazyLinear(10)
        >>> layer(torch.randn(4, 7)).shape
        torch.Size([4, 10])
        >>> layer
        Linear(in_features=7, out_features=10, bias=True)
    """

    cls_to_become = Linear

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(0, 0, False)  # the real sizes follow
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws weight and bias as `nn.Linear` does, once in_features is known; nothing before."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Makes weight and bias for an input whose last dimension is in_features; called at the first call."""
        if not self.has_uninitialized_params():
            return
        self.in_features = input.size(-1)
        with rl.no_grad():
            for value, shape in (
                (self.weight, (self.out_features, self.in_features)),
                (self.bias, (self.out_features,)),
            ):
                if value is not None:
                    value.materialize(shape)  # type: ignore[attr-defined]
            self.reset_parameters()
