"""Layer, group, root-mean-square and local response normalisation."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, cast

import rushlight as rl
from rushlight._C import Size, Tensor, device, dtype
from rushlight.nn import functional as F
from rushlight.nn.modules._affine import add_scale, add_shift, reset_affine
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["LocalResponseNorm", "CrossMapLRN2d", "LayerNorm", "GroupNorm", "RMSNorm"]


class _ResponseNorm(Module):
    def __init__(self, size: Any, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_ResponseNorm):
    """Divides by the mean square of neighbouring channels: y_c = x_c / (k + alpha mean_{c'} x_{c'}^2)^beta.

    c' runs over the `size` channels around c, absent ones counting as 0. It comes from AlexNet; newer networks
    use `nn.BatchNorm2d` or `nn.LayerNorm`.

    Args:
        size (int): number of channels of a mean.
        alpha (float): factor of the mean square. Default: 1e-4
        beta (float): exponent. Default: 0.75
        k (float): what is added. Default: 1.0

    Shape:
        input (N, C, *) -> the same, at least 3 dimensions

    Example:
        >>> nn.LocalResponseNorm(2, alpha=1.0)(torch.ones(1, 3, 1)).flatten()
        tensor([0.7378, 0.5946, 0.5946])
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_ResponseNorm):
    """Divides by the mean square of neighbouring channels: the older form of `nn.LocalResponseNorm`, for images.

    For an even size its channels reach one further ahead than back, there one further back than ahead.

    Args:
        size (int): number of channels of a mean.
        alpha (float): factor of the mean square. Default: 1e-4
        beta (float): exponent. Default: 0.75
        k (float): what is added. Default: 1

    Shape:
        input (N, C, H, W) -> the same

    Example:
        >>> nn.CrossMapLRN2d(2, alpha=1.0)(torch.ones(1, 3, 1, 1)).flatten()
        tensor([0.5946, 0.5946, 0.7378])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        # Here the window of an even size reaches further ahead than back.
        before = (self.size - 1) // 2 + 1
        square = F.pad((input * input).unsqueeze(1), (0, 0, 0, 0, before - 1, self.size - before))
        total = F.avg_pool3d(square, (self.size, 1, 1), stride=1).squeeze(1)
        return input / (total * self.alpha + self.k).pow(self.beta)


def _sizes(normalized_shape: Any) -> tuple[int, ...]:
    return (
        (cast(int, normalized_shape),)
        if isinstance(normalized_shape, numbers.Integral)
        else tuple(normalized_shape)
    )


class LayerNorm(Module):
    """Normalises each sample over its last dimensions: y = (x - mean) / sqrt(var + eps) * weight + bias.

    Samples do not see each other, and training and evaluation are the same: the norm of transformers. For images
    (N, C, H, W) it wants their size, or the channels moved to the end.

    Args:
        normalized_shape (int or tuple): sizes of the dimensions to normalise over, those at the end of the input.
        eps (float): added to the (biased) variance. Default: 1e-5
        elementwise_affine (bool): whether there are weight and bias. Default: True
        bias (bool): whether there is a bias beside the weight. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (*, *normalized_shape) -> the same

    Attributes:
        weight (*normalized_shape): ones; None with elementwise_affine=False.
        bias (*normalized_shape): zeros; None with elementwise_affine=False or bias=False.

    Example:
        >>> nn.LayerNorm(4)(torch.tensor([[1.0, 2.0, 3.0, 4.0]])).detach()
        tensor([[-1.3416, -0.4472,  0.4472,  1.3416]])
    """

    weight: Parameter
    bias: Parameter

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: int | Sequence[int] | Size,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        add_scale(self, self.normalized_shape, elementwise_affine, device, dtype)
        add_shift(self, self.normalized_shape, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to ones and bias to zeros."""
        reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        own = self._parameters
        try:
            return rl.layer_norm(input, self.normalized_shape, own["weight"], own["bias"], self.eps)
        except KeyError:  # a parametrisation keeps the weight elsewhere
            return rl.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalises groups of channels of each sample: y = (x - mean) / sqrt(var + eps) * weight + bias.

    Mean and variance are over the channels of a group and all of space, so that the size of the batch does not
    matter. num_groups=1 normalises the whole sample, num_groups=num_channels each channel.

    Args:
        num_groups (int): number of groups, which divides num_channels.
        num_channels (int): number of channels, C.
        eps (float): added to the (biased) variance. Default: 1e-5
        affine (bool): whether there are weight and bias. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()
        bias (bool): whether there is a bias beside the weight. Default: True

    Shape:
        input (N, C, *) -> the same

    Attributes:
        weight (C,): ones; None with affine=False.
        bias (C,): zeros; None with affine=False or bias=False.

    Example:
        >>> norm = nn.GroupNorm(3, 6)
        >>> norm(torch.randn(20, 6, 10, 10)).shape
        torch.Size([20, 6, 10, 10])
    """

    weight: Parameter
    bias: Parameter

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups <= 0:
            raise ValueError(f"num_groups must be a positive integer, but got {num_groups}")
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        add_scale(self, num_channels, affine, device, dtype)
        add_shift(self, num_channels, affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to ones and bias to zeros."""
        reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides by the root mean square over the last dimensions: y = x / sqrt(mean(x^2) + eps) * weight.

    LayerNorm without mean and bias, as LLaMA and its successors use it.

    Args:
        normalized_shape (int or tuple): sizes of the dimensions to normalise over, those at the end of the input.
        eps (float): added to the mean square; None for the machine epsilon of the type it computes in (float32
            for fp16 and bf16). Default: None
        elementwise_affine (bool): whether there is a weight. Default: True
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()

    Shape:
        input (*, *normalized_shape) -> the same

    Attributes:
        weight (*normalized_shape): ones; None with elementwise_affine=False.

    Example:
        >>> nn.RMSNorm(2)(torch.tensor([[3.0, 4.0]])).detach()
        tensor([[0.8485, 1.1314]])
    """

    weight: Parameter

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: int | Sequence[int] | Size,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: device | str | int | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        add_scale(self, self.normalized_shape, elementwise_affine, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to ones."""
        reset_affine(self)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
