"""Small functions of neural networks that are views, products and sums of other ops."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight import _C
from rushlight._C import Tensor, dtype
from rushlight._core.compose import op
from rushlight._ops.shape import broadcast_tensors


@op
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleaves groups of channels: channel g C/groups + i moves to i groups + g; see `nn.ChannelShuffle`.

    Args:
        input (Tensor): (N, C, *).
        groups (int): number of groups, which divides C.

    Example:
        >>> torch.channel_shuffle(torch.arange(6.0).view(1, 6, 1), 2).flatten()
        tensor([0., 3., 1., 4., 2., 5.])
    """
    if input.dim() < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    n, c, *space = input.shape
    if c % groups != 0:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    return input.reshape(n, groups, c // groups, *space).transpose(1, 2).reshape(input.shape)


@op
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleaves groups of channels: another name of `channel_shuffle`.

    Args:
        input (Tensor): (N, C, *).
        groups (int): number of groups, which divides C.

    Example:
        >>> torch.native_channel_shuffle(torch.arange(4.0).view(1, 4, 1), 2).flatten()
        tensor([0., 2., 1., 3.])
    """
    return channel_shuffle(input, groups)


@op
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Computes the cosine of the angle between vectors: x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim.

    Args:
        x1 (Tensor): any shape.
        x2 (Tensor): one that broadcasts with it.
        dim (int): the dimension that holds the vectors. Default: 1
        eps (float): the least length a vector is divided by. Default: 1e-8

    Example:
        >>> torch.cosine_similarity(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]]))
        tensor([0.7071])
    """
    dtype = x1.dtype if x1.dtype is x2.dtype else _C.ops["result_type"](x1, x2)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {dtype}")
    if x1.dtype is not x2.dtype or x1.shape != x2.shape:
        x1, x2 = broadcast_tensors(x1.to(dtype), x2.to(dtype))
    n1 = x1.norm(2, dim, keepdim=True).clamp_min(eps)
    n2 = x2.norm(2, dim, keepdim=True).clamp_min(eps)
    return ((x1 / n1) * (x2 / n2)).sum(dim)


@op(name="nn.functional.one_hot")
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Encodes class indices as one-hot vectors: y[..., c] = 1 where c = input[...], else 0.

    Args:
        input (Tensor): int64, not negative, any shape (*).
        num_classes (int): length of the vectors; -1 for the greatest index plus 1. Default: -1

    Returns:
        An int64 tensor (*, num_classes).

    Example:
        >>> F.one_hot(torch.tensor([0, 2]), num_classes=3)
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    if input.dtype is not _C.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if input.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return input.new_empty((*input.shape, num_classes))
    if int(input.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    most = int(input.max())
    if num_classes == -1:
        num_classes = most + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif most >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return input.new_zeros((*input.shape, num_classes)).scatter_(-1, input.unsqueeze(-1), 1)


@op
def _fused_rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    """(rms_norm, 1 / the root of the mean square that it divides by)."""
    dims = tuple(range(-len(normalized_shape), 0))
    if eps is None:
        from rushlight._core.type_info import finfo

        eps = finfo(input.dtype).eps
    rstd = (input.square().mean(dims, keepdim=True) + eps).rsqrt()
    return input * rstd if weight is None else input * rstd * weight, rstd


@op(differentiable=False)
def _rowwise_prune(weight: Tensor, mask: Tensor, compressed_indices_dtype: dtype) -> tuple[Tensor, Tensor]:
    """(the rows where the mask is true, the new index of each row or -1)."""
    index = mask.cumsum(0) - 1
    return weight[mask], index.masked_fill(~mask, -1).to(compressed_indices_dtype)
