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
    """Holds options for cutting a batch into pieces; accepted for compatibility, results do not depend on them.

    Args:
        allow_retain_graph (bool): kept. Default: False
        batch_chunk_size (int): kept. Default: None
        chunking_method (str): kept. Default: 'auto'
        acc_policy (str): kept. Default: 'auto'
        acc_dtype (dtype): kept. Default: None

    Example:
        >>> nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
        64
    """

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
    """Computes the cross entropy of a linear layer's scores, with the layer inside: CE(x A^T + b, target).

    The last layer and the loss of a classifier in one module.

    Args:
        in_features (int): size of the input vectors.
        num_classes (int): number of classes, C.
        out_features (tuple of int): further dimensions of the targets, (d1, ...). Default: ()
        bias (bool): whether the layer has b. Default: False
        device (device): where the parameters are made. Default: the default device
        dtype (dtype): their type. Default: torch.get_default_dtype()
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'
        weight (Tensor): a factor for each class, (C,). Default: None
        ignore_index (int): a target whose samples count for nothing; None means -100. Default: None
        label_smoothing (float): share of the target spread over all classes, in [0, 1]. Default: 0.0
        options (LinearCrossEntropyOptions): accepted, without effect. Default: None

    Shape:
        input (N, in_features) or (in_features,), target (N, d1, ...) -> (), or (N, d1, ...) for 'none'

    Attributes:
        linear (Linear): the layer, with weight (C d1 ..., in_features).

    Example:
        >>> loss = nn.LinearCrossEntropyLoss(16, 5)
        >>> loss(torch.randn(3, 16), torch.tensor([1, 0, 4])).shape
        torch.Size([])
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
