"""Methods of tensors that only nested ones have: those take them over (rushlight.nested)."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight._C import Tensor
from rushlight._core.compose import op


def _refused(name):
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it is there for nested tensors "
        "(torch.nested.nested_tensor) only"
    )


@op(method=True)
def to_padded_tensor(input: Tensor, padding: float, output_size: int | Sequence[int] | None = None) -> Tensor:
    """The tensors of a nested tensor side by side, each filled up to the size of the largest.

    Args:
        input (Tensor): nested.
        padding (float): what fills them up.
        output_size (sequence of ints): of the result, instead of the least. Default: None

    Example:
        >>> x = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged)
        >>> torch.to_padded_tensor(x, 0.0)
        tensor([[1., 0.],
                [1., 1.]])
    """
    raise _refused("to_padded_tensor")


@op(method=True)
def _nested_tensor_size(input: Tensor) -> Tensor:
    raise _refused("_nested_tensor_size")


@op(method=True)
def _nested_tensor_strides(input: Tensor) -> Tensor:
    raise _refused("_nested_tensor_strides")


@op(method=True)
def _nested_tensor_storage_offsets(input: Tensor) -> Tensor:
    raise _refused("_nested_tensor_storage_offsets")
