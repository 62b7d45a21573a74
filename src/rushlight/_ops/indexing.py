"""Lookups composed of gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _C
from .._C import Tensor
from .._core.compose import op


@op(name="nn.functional.one_hot")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the position that each index names, 0 elsewhere, in a new last dimension."""
    if not isinstance(tensor, Tensor) or tensor.dtype != _C.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return tensor.new_empty((*tensor.shape, num_classes))
    if tensor.min().item() < 0:
        raise RuntimeError("Class values must be non-negative.")
    largest = tensor.max().item()
    if num_classes == -1:
        num_classes = largest + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif largest >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    result = tensor.new_zeros((*tensor.shape, num_classes))
    return result.scatter_(-1, tensor.unsqueeze(-1), 1)


@op
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803 (torch's name)
    """The powers of each element of a vector as the columns of a matrix, falling unless `increasing`.

    Args:
        x (Tensor): a vector.
        N (int): how many powers. Default: None, as many as x has elements
        increasing (bool): whether they rise. Default: False

    Example:
        >>> torch.vander(torch.tensor([2, 3]), 3)
        tensor([[4, 2, 1],
                [9, 3, 1]])
    """
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    exponents = _C.ops["arange"](n, device=x.device)
    powers = x.unsqueeze(-1).pow(exponents)
    return powers if increasing else powers.flip(-1)


@op(name="_unsafe_masked_index")
def _unsafe_masked_index(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: complex
) -> Tensor:
    """input[indices], and `fill` where the mask is false; indices there may be anything."""
    clipped = tuple(
        None if i is None else i.clamp(0, s - 1) for i, s in zip(indices, input.shape, strict=False)
    )
    if input.numel() == 0:
        clipped = tuple(None if i is None else i * 0 for i in indices)
        return input.new_full(mask.shape, fill)
    return _C.ops["_index"](input, clipped).masked_fill(mask.logical_not(), fill)


@op(name="_unsafe_masked_index_put_accumulate")
def _unsafe_masked_index_put_accumulate(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    """Adds values at the indices where the mask is true."""
    if input.numel() == 0:
        return input.clone()
    clipped = tuple(
        None if i is None else i.clamp(-s, s - 1) for i, s in zip(indices, input.shape, strict=False)
    )
    return input.index_put(clipped, values.masked_fill(mask.logical_not(), 0), accumulate=True)
