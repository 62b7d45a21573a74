"""Embedding bags and reductions of consecutive segments."""

from __future__ import annotations

from rushlight._C import Tensor

from .. import _C
from .._core.compose import op

_ops = _C.ops
_MODES = ("sum", "mean", "max")


@op
def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Rows of a table added up, averaged or compared bag by bag; F.embedding_bag takes modes by name.

    Args:
        weight (Tensor): (rows, width).
        indices (Tensor): which rows, bag after bag.
        offsets (Tensor): where bags begin.
        scale_grad_by_freq (bool): divides gradients of rows by how often they occur. Default: False
        mode (int): 0 sum, 1 mean, 2 max. Default: 0
        sparse (bool): makes the gradient of weight sparse. Default: False
        per_sample_weights (Tensor): factors of the rows. Default: None
        include_last_offset (bool): whether offsets end with the number of indices. Default: False
        padding_idx (int): a row that does not count. Default: None

    Returns:
        tuple of Tensors: bags, the bag of each index, sizes of bags, rows of the maxima.

    Example:
        >>> torch.embedding_bag(torch.eye(3), torch.tensor([0, 1, 2]), torch.tensor([0, 2]))[0]
        tensor([[1., 1., 0.],
                [0., 0., 1.]])
    """
    from ..nn._functional.embedding import _bags
    from ..nn._functional.embedding import embedding_bag as f

    if not 0 <= mode < 3:
        raise RuntimeError(f"embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got {mode}")
    if indices.dim() != 1 or offsets.dim() != 1:
        raise RuntimeError(
            f"input has to be a 1D or 2D Tensor, here 1D, and offsets has to be a 1D Tensor; got shapes {list(indices.shape)} and "
            f"{list(offsets.shape)}"
        )
    if weight.dim() != 2:
        raise RuntimeError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    wide = _ops["promote_types"](offsets.dtype, indices.dtype)
    offsets, indices = offsets.to(wide), indices.to(wide)
    out = f(
        indices,
        weight,
        offsets,
        scale_grad_by_freq=scale_grad_by_freq and mode != 2,
        mode=_MODES[mode],
        sparse=sparse,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    if padding_idx is not None:
        padding_idx %= weight.size(0)
    count = out.size(0)
    starts = offsets[:count].long()
    of_index = _bags(starts, indices.size(0)).to(offsets.dtype)
    used = indices != padding_idx if padding_idx is not None else _ops["ones_like"](indices, dtype=_C.bool)
    sizes = offsets.new_zeros(count).index_add(0, of_index.long(), used.to(offsets.dtype))
    if mode == 0:
        # PyTorch leaves them empty or zero: sums need no sizes.
        fast = padding_idx is None and per_sample_weights is None and weight.dtype is not _C.float64
        zero = offsets.new_zeros(count)
        return out, offsets.new_empty(0) if fast else of_index, zero, zero.clone()
    if mode == 1:
        return out, of_index, sizes, sizes.clone()
    return out, of_index, sizes, _rows_of_maxima(weight.detach(), indices, of_index.long(), used, count)


@op(alias=("_embedding_bag_forward_only",))
def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """embedding_bag; padding_idx -1 is none."""
    return embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
        None if padding_idx == -1 else padding_idx,
    )  # fmt: skip


def _rows_of_maxima(weight, indices, of_index, used, count):
    """(bags, columns): the row of weight that gave each maximum, 0 for bags without any."""
    keep = used.nonzero().squeeze(1)
    rows, bags = indices[keep].long(), of_index[keep]
    vectors = weight[rows]
    most = vectors.new_full((count, weight.size(1)), float("-inf"))
    spread = bags.unsqueeze(1).expand(-1, weight.size(1))
    most = most.scatter_reduce(0, spread, vectors, "amax")
    none = rows.numel()
    # the first index of each bag whose value is the maximum
    position = _ops["arange"](none, device=weight.device).unsqueeze(1).expand(-1, weight.size(1))
    position = position.masked_fill(vectors != most[bags], none)
    first = position.new_full((count, weight.size(1)), none).scatter_reduce(0, spread, position, "amin")
    padded = _ops["cat"]([rows, rows.new_zeros(1)])
    return padded[first].to(indices.dtype)


@op
def embedding_renorm_(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scales down, in place, the rows in use whose norm exceeds max_norm.

    Args:
        weight (Tensor): (rows, width).
        indices (Tensor): which rows are in use.
        max_norm (float): what a norm may be.
        norm_type (float): p of the norm.

    Example:
        >>> torch.embedding_renorm_(torch.ones(2, 4), torch.tensor([1]), 1.0, 2.0)
        tensor([[1.0000, 1.0000, 1.0000, 1.0000],
                [0.5000, 0.5000, 0.5000, 0.5000]])
    """
    from ..nn._functional.embedding import _renormalize

    _renormalize(weight, indices, max_norm, norm_type)
    return weight
