"""Losses that ask for a margin: rankings, embeddings, triplets, several classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight._core import autocast as _autocast
from rushlight._core.compose import public
from rushlight.nn import _core as core
from rushlight.nn import _reduction
from rushlight.nn._functional.loss import _reduction_of


@_autocast.full
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes log(1 + e^(-y x)) for scores x and signs y and reduces it; see `nn.SoftMarginLoss`.

    Args:
        input (Tensor): scores x.
        target (Tensor): y, 1 or -1.
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> F.soft_margin_loss(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.7201)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    return _reduction.apply(-core.logsigmoid(target * input), reduction)


@_autocast.full
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes x where y = 1, max(0, margin - x) where y = -1, and reduces it; see `nn.HingeEmbeddingLoss`.

    Args:
        input (Tensor): distances x.
        target (Tensor): y, 1 or -1.
        margin (float): the distance that suffices for unlike pairs. Default: 1.0
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> F.hinge_embedding_loss(torch.tensor([0.5, 0.2]), torch.tensor([1, -1]))
        tensor(0.6500)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    zero = input.new_zeros(())
    near = rl.where(target != 1, (margin - input).clamp_min(0), zero)
    far = rl.where(target != -1, input, zero)
    return _reduction.apply(near + far, reduction)


@_autocast.full
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes max(0, -y (x1 - x2) + margin) and reduces it; see `nn.MarginRankingLoss`.

    Args:
        input1 (Tensor): x1.
        input2 (Tensor): x2.
        target (Tensor): y, 1 where x1 is to rank above x2, else -1.
        margin (float): the difference that suffices. Default: 0
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> F.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
        tensor(2.)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _reduction.apply((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@_autocast.full
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes 1 - cos where y = 1, max(0, cos - margin) where y = -1, and reduces it; see `nn.CosineEmbeddingLoss`.

    Args:
        input1 (Tensor): (N, D) or (D,).
        input2 (Tensor): likewise; cos is of the angle between the two.
        target (Tensor): y, (N,) or (), 1 or -1.
        margin (float): the cosine that suffices for unlike pairs. Default: 0
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> F.cosine_embedding_loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]]), torch.tensor([1]))
        tensor(0.2929)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    if target.dim() > 1:
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported: cosine_embedding_loss "
            f"got a target of shape {tuple(target.shape)}"
        )
    if input1.dim() != target.dim() + 1 or input2.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, "
            f"but found inputs with sizes {list(input1.size())} and {list(input2.size())}."
        )
    product = (input1 * input2).sum(-1)
    tiny = 1e-12
    cos = product / ((input1 * input1).sum(-1).add(tiny) * (input2 * input2).sum(-1).add(tiny)).sqrt()
    zero = rl.zeros_like(cos)
    loss = rl.where(target == 1, 1 - cos, zero) + rl.where(target == -1, (cos - margin).clamp_min(0), zero)
    return _reduction.apply(loss, reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes sum_i max(0, margin - x[y] + x[i])^p / C over i != y and reduces it; see `nn.MultiMarginLoss`.

    Args:
        input (Tensor): scores x, (N, C) or (C,).
        target (Tensor): classes y, (N,) or ().
        p (int): 1 or 2. Default: 1
        margin (float): the difference that suffices. Default: 1.0
        weight (Tensor): a factor for each class, (C,). Default: None
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> F.multi_margin_loss(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([3]))
        tensor(0.3250)
    """
    number = _reduction.get_enum(_reduction_of(size_average, reduce, reduction))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    out: Tensor = core.multi_margin_loss(input, target, int(p), margin, weight, number)
    return out


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes sum_ij max(0, 1 - x[y_j] + x[i]) / C, labels y_j, other classes i; see `nn.MultiLabelMarginLoss`.

    Args:
        input (Tensor): scores x, (N, C) or (C,).
        target (Tensor): labels of each sample up to the first -1, like input.
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> F.multilabel_margin_loss(torch.tensor([0.1, 0.2, 0.4, 0.8]), torch.tensor([3, 0, -1, 1]))
        tensor(0.8500)
    """
    number = _reduction.get_enum(_reduction_of(size_average, reduce, reduction))
    out: Tensor = core.multilabel_margin_loss(input, target, number)
    return out


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes the binary cross entropy of each class, averaged over classes; see `nn.MultiLabelSoftMarginLoss`.

    Args:
        input (Tensor): scores, (N, C) or (C,).
        target (Tensor): 0 or 1 for each.
        weight (Tensor): a factor for each class, (C,). Default: None
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> F.multilabel_soft_margin_loss(torch.tensor([[2.0, -1.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(0.2201)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    loss = -(target * core.logsigmoid(input) + (1 - target) * core.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    classes = input.dim() - 1
    loss = loss.sum(classes) / input.size(classes)
    return _reduction.apply(loss, reduction)


@public
def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Computes the p-norm of the difference of vectors, ||x1 - x2 + eps||_p along the last dimension.

    Args:
        x1 (Tensor): (*, D).
        x2 (Tensor): (*, D); the two broadcast.
        p (float): exponent of the norm. Default: 2.0
        eps (float): added to each difference. Default: 1e-6
        keepdim (bool): keeps the last dimension, with size 1. Default: False

    Example:
        >>> F.pairwise_distance(torch.zeros(1, 2), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([5.0000, 1.0000])
    """
    out: Tensor = (x1 - x2 + eps).norm(p, -1 if max(x1.dim(), x2.dim()) else 0, keepdim)
    return out


@_autocast.full
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes max(0, d(a, p) - d(a, n) + margin), d the p-norm distance, and reduces it; see `nn.TripletMarginLoss`.

    Args:
        anchor (Tensor): a, (N, D) or (D,).
        positive (Tensor): p, likewise.
        negative (Tensor): n, likewise.
        margin (float): how much farther negatives are to be, greater than 0. Default: 1.0
        p (float): exponent of the norm. Default: 2
        eps (float): added to the differences. Default: 1e-6
        swap (bool): takes d(p, n) instead of d(a, n) where it is smaller. Default: False
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> F.triplet_margin_loss(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]), torch.tensor([[1.5, 0.0]]))
        tensor(0.5000)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    _reduction.get_enum(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            "dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = rl.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduction.apply((margin + near - far).clamp_min(0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Computes max(0, d(a, p) - d(a, n) + margin) for any distance d; see `nn.TripletMarginWithDistanceLoss`.

    Args:
        anchor (Tensor): a, (N, *).
        positive (Tensor): p, likewise.
        negative (Tensor): n, likewise.
        distance_function (callable): d. Default: None, `pairwise_distance`
        margin (float): how much farther negatives are to be, greater than 0. Default: 1.0
        swap (bool): takes d(p, n) instead of d(a, n) where it is smaller. Default: False
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> a, p, n = torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]), torch.tensor([[1.5, 0.0]])
        >>> F.triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: (x - y).abs().sum(-1))
        tensor(0.5000)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            "dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = rl.minimum(far, distance(positive, negative))
    return _reduction.apply((margin + near - far).clamp_min(0), reduction)
