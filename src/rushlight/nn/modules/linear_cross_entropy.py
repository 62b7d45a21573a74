"""A linear layer and cross entropy in one loss."""

from __future__ import annotations

import math
from typing import Any, Literal

from rushlight._C import Tensor, device, dtype
from rushlight.nn import functional as F
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


class LinearCrossEntropyOptions:
    """How to cut the batch into pieces. Accepted for compatibility: the result does not depend on it."""

    __slots__ = ("allow_retain_graph", "batch_chunk_size", "chunking_method", "acc_policy", "acc_dtype")

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: Literal["accurate", "balanced", "compact", "auto"] = "auto",
        acc_dtype: dtype | None = None,
    ) -> None:
        self.allow_retain_graph = allow_retain_graph
        self.batch_chunk_size = batch_chunk_size
        self.chunking_method = chunking_method
        self.acc_policy = acc_policy
        self.acc_dtype = acc_dtype

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={getattr(self, k)!r}' for k in self.__slots__)})"

    def __eq__(self, other: Any) -> Any:
        return type(self) is type(other) and all(
            getattr(self, k) == getattr(other, k) for k in self.__slots__
        )

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, k) for k in self.__slots__))


class LinearCrossEntropyLoss(Module):
    """Cross entropy of a linear layer's scores, with the layer inside.

    Args:
        in_features, num_classes: sizes of the layer.
        out_features: further dimensions of the targets, (d1, ...).
    """

    weight: Tensor | None

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False, device: device | str | int | None = None, dtype: dtype | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None, ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0.0 <= label_smoothing <= 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        self.in_features = in_features
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        self.reduction = reduction
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options
        self.register_buffer("weight", weight)
        self.linear = Linear(
            in_features, num_classes * math.prod(self.out_features), bias=bias, device=device, dtype=dtype
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        weight, bias = self.linear.weight, self.linear.bias
        if self.out_features:
            weight = weight.reshape(*shape, self.in_features)
            bias = None if bias is None else bias.reshape(shape)
        return F.linear_cross_entropy(
            input, weight, target, linear_bias=bias, weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
