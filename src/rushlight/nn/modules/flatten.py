"""Flatten and Unflatten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight._C import Size, Tensor
from rushlight.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins neighbouring dimensions into one: (N, C, H, W) becomes (N, C H W).

    It stands between convolutions and the first `nn.Linear` of a `nn.Sequential`; the default keeps the batch.

    Args:
        start_dim (int): the first dimension to join. Default: 1
        end_dim (int): the last one. Default: -1

    Shape:
        input (*, S_start, ..., S_end, *) -> (*, S_start x ... x S_end, *)

    Example:
        >>> nn.Flatten()(torch.zeros(32, 1, 5, 5)).shape
        torch.Size([32, 25])
        >>> nn.Flatten(0, 2)(torch.zeros(32, 1, 5, 5)).shape
        torch.Size([160, 5])
    """

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one dimension into several: the inverse of `nn.Flatten`.

    Args:
        dim (int): the dimension to split.
        unflattened_size (tuple): the sizes it is split into, whose product is its size; -1 for one that follows.

    Shape:
        input (*, S_dim, *) -> (*, unflattened_size[0], ..., unflattened_size[-1], *)

    Example:
        >>> nn.Unflatten(1, (3, 8, 8))(torch.zeros(16, 192)).shape
        torch.Size([16, 3, 8, 8])
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: int, unflattened_size: Size | Sequence[int] | tuple[int, ...]) -> None:
        super().__init__()
        if isinstance(dim, int):
            self._require_tuple_int(unflattened_size)
        elif isinstance(dim, str):
            self._require_tuple_tuple(unflattened_size)
        else:
            raise TypeError("invalid argument type for dim parameter")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _require_tuple_tuple(self, input: Any) -> None:
        if not isinstance(input, tuple):
            raise TypeError(
                f"unflattened_size must be a tuple of tuples, but found type {type(input).__name__}"
            )
        for i, pair in enumerate(input):
            if not isinstance(pair, tuple):
                raise TypeError(
                    "unflattened_size must be a tuple of tuples, but found element of type "
                    f"{type(pair).__name__} at pos {i}"
                )

    def _require_tuple_int(self, input: Any) -> None:
        if not isinstance(input, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(input).__name__}"
            )
        for i, size in enumerate(input):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {i}"
                )

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
