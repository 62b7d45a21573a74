"""Layer, group, root-mean-square and local response normalisation."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

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
    """Divides each value by a power of the mean square over neighbouring channels."""

    __constants__ = ["size", "alpha", "beta", "k"]

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_ResponseNorm):
    """The old form of LocalResponseNorm, for images."""

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


def _sizes(normalized_shape):
    return (normalized_shape,) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)


class LayerNorm(Module):
    """Normalises over the last dimensions, then scales and shifts.

    Args:
        normalized_shape: the sizes of these dimensions; a number for the last one.
        elementwise_affine: whether there is a learned scale, and, with bias, shift.
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
    """Normalises groups of channels of each sample, then scales and shifts each channel."""

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
        reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides by the root of the mean square over the last dimensions, then scales."""

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
        reset_affine(self)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
