"""Lookups in tables of vectors."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight.nn import _core as core


def _renormalize(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales down, in place, the rows in use whose norm exceeds max_norm."""
    with rl.no_grad():
        rows = input.reshape(-1).unique()
        if rows.numel() == 0:
            return
        norms = weight[rows].norm(norm_type, -1)
        rows = rows[norms > max_norm]
        if rows.numel():
            norms = weight[rows].norm(norm_type, -1, keepdim=True)
            weight[rows] = weight[rows] * (max_norm / (norms + 1e-7))


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Looks up rows of a table: y = weight[input]; see `nn.Embedding`.

    Args:
        input (Tensor): integers in [0, V), any shape (*).
        weight (Tensor): the table, (V, D).
        padding_idx (int): a row that gets no gradient. Default: None
        max_norm (float): rows looked up whose norm is greater are scaled down to it, in place. Default: None
        norm_type (float): p of that p-norm. Default: 2.0
        scale_grad_by_freq (bool): divides a row's gradient by how often it occurs in input. Default: False
        sparse (bool): makes the gradient of weight a sparse tensor. Default: False

    Returns:
        A tensor (*, D).

    Example:
        >>> F.embedding(torch.tensor([2, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        tensor([[5., 6.],
                [1., 2.]])
    """
    if padding_idx is not None:
        rows = weight.size(0)
        if padding_idx > 0:
            if padding_idx >= rows:
                raise AssertionError("Padding_idx must be within num_embeddings")
        elif padding_idx < 0:
            if padding_idx < -rows:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx += rows
    else:
        padding_idx = -1
    if max_norm is not None:
        input = input.contiguous()
        _renormalize(weight, input, max_norm, norm_type)
    if sparse and weight.requires_grad and rl.is_grad_enabled():
        if scale_grad_by_freq:
            raise RuntimeError("embedding: scale_grad_by_freq is not supported with sparse gradients")
        out: Tensor = _sparse_lookup().apply(weight, input, padding_idx)
        return out
    return rl.embedding(weight, input, padding_idx, scale_grad_by_freq)


@functools.cache
def _sparse_lookup() -> Any:
    """A lookup whose gradient has entries for the rows in use only. (autograd.Function is loaded when needed.)"""
    from rushlight.sparse._coo import make

    class EmbeddingBackward(rl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, weight: Tensor, input: Tensor, padding_idx: int) -> Any:
            ctx.save_for_backward(input)
            ctx.size, ctx.padding_idx = weight.shape, padding_idx
            return rl.embedding(weight, input, padding_idx)

        @staticmethod
        @rl.autograd.function.once_differentiable
        def backward(ctx: Any, grad: Tensor) -> Any:
            rows = ctx.saved_tensors[0].reshape(-1)
            values = grad.reshape(rows.numel(), ctx.size[1])
            if ctx.padding_idx >= 0:
                used = rows != ctx.padding_idx
                rows, values = rows[used], values[used]
            else:  # the gradient stays, whatever becomes of the caller's indices
                rows = rows.clone()
            return make(rows.long().unsqueeze(0), values, ctx.size), None, None

    return EmbeddingBackward


def _bags(offsets: Tensor, count: int) -> Tensor:
    """The bag that each of `count` indices belongs to."""
    marks = rl.zeros(count + 1, dtype=rl.long, device=offsets.device)
    marks.index_add_(0, offsets, rl.ones_like(offsets))
    return marks.cumsum(0)[:count] - 1


def _check_bags(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None,
    mode: str,
    scale_grad_by_freq: bool,
    sparse: bool,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
) -> None:
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must "
            f"have the same shape as the input ({input.shape})"
        )
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        raise RuntimeError(
            f"embedding_bag: expected weight and per_sample_weights to have the same type as each other, but got "
            f"{weight.dtype} and {per_sample_weights.dtype}"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
            "length sequences. "
            f"However, found offsets of type {type(offsets)}"
        )
    if input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    elif input.dim() != 2:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
            f"mode='sum' (got mode='{mode}')."
        )


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """Reduces bags of rows of a table: y_b = mean, sum or max of weight[i] over the indices i of bag b.

    Args:
        input (Tensor): integers (B, N) for B bags of N, or (N,) with offsets.
        weight (Tensor): the table, (V, D).
        offsets (Tensor): (B,), where each bag starts in a 1-d input; begins with 0. Default: None
        max_norm (float): rows looked up whose norm is greater are scaled down to it, in place. Default: None
        norm_type (float): p of that p-norm. Default: 2
        scale_grad_by_freq (bool): divides a row's gradient by how often it occurs; not for 'max'. Default: False
        mode (str): 'sum', 'mean' or 'max'. Default: 'mean'
        sparse (bool): makes the gradient of weight a sparse tensor; not for 'max'. Default: False
        per_sample_weights (Tensor): factors of the rows, like input, for mode 'sum'. Default: None
        include_last_offset (bool): offsets has one more entry, the end of the last bag. Default: False
        padding_idx (int): a row that bags leave out. Default: None

    Returns:
        A tensor (B, D); empty bags are zeros.

    Example:
        >>> F.embedding_bag(torch.tensor([[0, 2]]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        tensor([[3., 4.]])
    """
    if weight.dtype == rl.long and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        input, weight = weight, input
    _check_bags(
        input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights, include_last_offset
    )
    if input.dim() == 2:
        per_bag = input.size(1)
        offsets = (
            rl.arange(0, input.numel(), per_bag, device=input.device)
            if per_bag
            else rl.zeros(input.size(0), dtype=rl.long, device=input.device)
        )
        input = input.reshape(-1)
        include_last_offset = False
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    offsets = offsets.long()  # type: ignore[union-attr]
    if include_last_offset:
        if offsets.size(0) < 1:
            raise ValueError("include_last_offset: number of offset should be at least 1")
        count, starts = offsets.size(0) - 1, offsets[:-1]
    else:
        count, starts = offsets.size(0), offsets
    if offsets.numel() and not offsets.is_meta:
        if int(offsets[0]) != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
                f"position 0. However, got {int(offsets[0])}"
            )
        if int(offsets[-1]) > input.size(0):
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length({input.size(0)}) but got offsets[-1] "
                f"of {int(offsets[-1])}"
            )
    if padding_idx is not None:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got "
                f"{padding_idx}"
            )
        padding_idx %= rows
    plain = weight.dtype in (rl.float32, rl.float64) and not sparse and not scale_grad_by_freq
    if mode != "max" and padding_idx is None and plain and count > 0:
        if max_norm is not None:
            _renormalize(weight, input, max_norm, norm_type)
        ends = rl.cat([starts, starts.new_full((1,), input.numel())])
        out = core.bag_sum(weight, input.long(), ends, per_sample_weights)
        if mode == "mean":
            out = out / ends.diff().clamp_(min=1).unsqueeze(1).to(out.dtype)
        result: Tensor = out
        return result
    try:
        vectors = embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    except IndexError as error:  # PyTorch's class for bags
        raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but {error}") from None
    bag = _bags(starts, input.size(0))
    if padding_idx is not None:
        keep = (input != padding_idx).nonzero().squeeze(1)
        vectors, bag = vectors.index_select(0, keep), bag.index_select(0, keep)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.index_select(0, keep)
    if mode == "max":
        return _max_of_bags(vectors, bag, count)
    if per_sample_weights is not None:
        vectors = vectors * per_sample_weights.unsqueeze(1)
    out = vectors.new_zeros((count, weight.size(1))).index_add(0, bag, vectors)
    if mode == "mean":
        sizes = rl.zeros(count, dtype=rl.long, device=bag.device).index_add_(0, bag, rl.ones_like(bag))
        out = out / sizes.clamp_(min=1).unsqueeze(1).to(out.dtype)
    return out


def _max_of_bags(vectors: Tensor, bag: Tensor, count: int) -> Tensor:
    if vectors.size(0) == 0:  # all bags are empty; the sum of nothing keeps the result in the graph
        return vectors.sum(0, keepdim=True).expand(count, vectors.size(1)).contiguous()
    sizes = rl.zeros(count, dtype=rl.long, device=bag.device).index_add_(0, bag, rl.ones_like(bag))
    first = sizes.cumsum(0) - sizes
    step = rl.arange(int(sizes.max()), device=bag.device)
    # (bags, longest): positions of each bag's vectors; bags are consecutive
    position = (first.unsqueeze(1) + step).clamp_(max=vectors.size(0) - 1)
    absent = (step >= sizes.unsqueeze(1)).unsqueeze(2)
    padded = vectors[position].masked_fill(absent, float("-inf"))
    out = padded.max(1)[0]
    return out.masked_fill((sizes == 0).unsqueeze(1), 0.0)
