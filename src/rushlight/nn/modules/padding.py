"""Padding layers: constants, zeros, reflections, replications and wrapping around."""

from __future__ import annotations

from typing import Any

from rushlight._C import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _PadNd(Module):
    """Sizes before and after each dimension, the last one first; a number stands for all of them."""

    __constants__ = ["padding"]
    _dims = 0

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    def forward(self, input: Tensor) -> Tensor:
        n = self._dims
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")
        return F.pad(input, self.padding, "circular")


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPadNd(_PadNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class _ReplicationPadNd(_PadNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension by wrapping around."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions by wrapping around."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions by wrapping around."""

    _dims = 3


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with a value."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with a value."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with a value."""

    _dims = 3


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension with its reflection, without repeating the edge."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dimensions with their reflection, without repeating the edges."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions with their reflection, without repeating the edges."""

    _dims = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension by repeating the edge."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dimensions by repeating the edges."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions by repeating the edges."""

    _dims = 3


class ZeroPad1d(_ZeroPadNd):
    """Pads the last dimension with zeros."""

    _dims = 1


class ZeroPad2d(_ZeroPadNd):
    """Pads the last two dimensions with zeros."""

    _dims = 2


class ZeroPad3d(_ZeroPadNd):
    """Pads the last three dimensions with zeros."""

    _dims = 3
