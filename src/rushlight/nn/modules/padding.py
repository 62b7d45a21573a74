"""Padding layers: constants, zeros, reflections, replications and wrapping around."""

from __future__ import annotations

from typing import Any

from rushlight._C import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules._doc import documented
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


# Completed for each class by `_padding`.
_DOC = """Pads {data} {how}: a row 1 2 3 becomes {row} with padding=(2, 1).

{about} Negative sizes crop.

Args:
    padding (int or tuple): elements to add at every end, or ({ends}): the last
        dimension comes first.{value}

Shape:
    input (N, C, {L}) -> (N, C, {Lo}), both also without N, where
    {sizes}

Example:
    >>> nn.{kind}Pad{n}d({padding}{nine})(torch.tensor([1.0, 2.0, 3.0]).view({view})).flatten()
    tensor([{result}])
"""
_ENDS = ("left, right", "top, bottom", "front, back")
_KINDS = {
    "Circular": ("by wrapping around", "2 3 1 2 3 1", "For periodic data. At most the size of the dimension at each end."),
    "Constant": ("with a value", "v v 1 2 3 v", "As many elements as wanted."),
    "Reflection": ("by reflection at the edges", "3 2 1 2 3 2", "The edge is not repeated; less than the dimension's size at each end."),
    "Replication": ("by repeating the edges", "1 1 1 2 3 3", "As many elements as wanted."),
    "Zero": ("with zeros", "0 0 1 2 3 0", "As many elements as wanted."),
}  # fmt: skip


def _padding(kind: str, n: int) -> Any:
    """A decorator that documents the class of a kind for n spatial dimensions."""
    how, row, about = _KINDS[kind]
    constant = kind == "Constant"
    letters = ("L",) if n == 1 else ("W", "H", "D")[:n]
    sizes = [f"{a}_out = {a} + {e.replace(', ', ' + ')}" for a, e in zip(letters, _ENDS, strict=False)]
    return documented(
        _DOC, n, kind=kind, how=how, row=row, about=about, ends=", ".join(_ENDS[:n]), sizes=", ".join(reversed(sizes)),
        value="\n    value (float): what is put there." if constant else "", nine=", 9.0" if constant else "",
        padding=(2, 1) + (0, 0) * (n - 1), view="1, " * (n + 1) + "3",
        result=row.replace("v", "9").replace(" ", "., ") + ".",
    )  # fmt: skip


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


@_padding("Circular", 1)
class CircularPad1d(_CircularPadNd):
    _dims = 1


@_padding("Circular", 2)
class CircularPad2d(_CircularPadNd):
    _dims = 2


@_padding("Circular", 3)
class CircularPad3d(_CircularPadNd):
    _dims = 3


@_padding("Constant", 1)
class ConstantPad1d(_ConstantPadNd):
    _dims = 1


@_padding("Constant", 2)
class ConstantPad2d(_ConstantPadNd):
    _dims = 2


@_padding("Constant", 3)
class ConstantPad3d(_ConstantPadNd):
    _dims = 3


@_padding("Reflection", 1)
class ReflectionPad1d(_ReflectionPadNd):
    _dims = 1


@_padding("Reflection", 2)
class ReflectionPad2d(_ReflectionPadNd):
    _dims = 2


@_padding("Reflection", 3)
class ReflectionPad3d(_ReflectionPadNd):
    _dims = 3


@_padding("Replication", 1)
class ReplicationPad1d(_ReplicationPadNd):
    _dims = 1


@_padding("Replication", 2)
class ReplicationPad2d(_ReplicationPadNd):
    _dims = 2


@_padding("Replication", 3)
class ReplicationPad3d(_ReplicationPadNd):
    _dims = 3


@_padding("Zero", 1)
class ZeroPad1d(_ZeroPadNd):
    _dims = 1


@_padding("Zero", 2)
class ZeroPad2d(_ZeroPadNd):
    _dims = 2


@_padding("Zero", 3)
class ZeroPad3d(_ZeroPadNd):
    _dims = 3
