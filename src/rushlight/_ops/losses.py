"""Losses by PyTorch's primitive signatures: the reduction is a number (0 none, 1 mean, 2 sum)."""

from __future__ import annotations

from rushlight._C import Tensor

from .._core.compose import op

_REDUCTIONS = ("none", "mean", "sum")


def _of(reduction):
    if not 0 <= reduction < 3:
        raise RuntimeError(f"reduction must be 0 (none), 1 (mean) or 2 (sum), got {reduction}")
    return _REDUCTIONS[reduction]


@op
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    """Binary cross entropy of sigmoid(input), without underflow; F.binary_cross_entropy_with_logits takes reductions by name.

    Args:
        input (Tensor): logits.
        target (Tensor): 0 to 1, of the same shape.
        weight (Tensor): of the elements. Default: None
        pos_weight (Tensor): what a positive counts. Default: None
        reduction (int): 0 none, 1 mean, 2 sum. Default: 1

    Example:
        >>> torch.binary_cross_entropy_with_logits(torch.zeros(2), torch.tensor([0.0, 1.0]))
        tensor(0.6931)
    """
    from ..nn._functional.loss import binary_cross_entropy_with_logits as f

    return f(input, target, weight, reduction=_of(reduction), pos_weight=pos_weight)


@op
def kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    """Pointwise Kullback-Leibler divergence: target * (log(target) - input), input being a logarithm.

    Args:
        input (Tensor): logarithms of probabilities.
        target (Tensor): probabilities.
        reduction (int): 0 none, 1 mean, 2 sum. Default: 1
        log_target (bool): whether target has logarithms too. Default: False

    Example:
        >>> torch.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([1.0, 0.0]), reduction=2)
        tensor(0.6931)
    """
    from ..nn import _reduction
    from ..nn._functional.loss import kl_div as f

    return _reduction.apply(f(input, target, reduction="none", log_target=log_target), _of(reduction))


@op
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """The negative log likelihood of counts under a Poisson distribution.

    Args:
        input (Tensor): its rates, or their logarithms.
        target (Tensor): counts.
        log_input (bool): whether input has logarithms.
        full (bool): adds Stirling's approximation of log(target!).
        eps (float): keeps log(input + eps) finite.
        reduction (int): 0 none, 1 mean, 2 sum.

    Example:
        >>> torch.poisson_nll_loss(torch.zeros(2), torch.tensor([1.0, 2.0]), True, False, 1e-8, 1)
        tensor(1.)
    """
    from ..nn._functional.loss import poisson_nll_loss as f

    return f(input, target, log_input, full, eps=eps, reduction=_of(reduction))


@op(name="_nn.l1_loss")
def l1_loss(input: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    """|x - y|."""
    from ..nn._functional.loss import l1_loss as f

    return f(input, target, reduction=_of(reduction))


@op(name="_nn.huber_loss")
def huber_loss(input: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    """d^2 / 2 for |d| <= delta, else delta * (|d| - delta / 2)."""
    from ..nn._functional.loss import huber_loss as f

    return f(input, target, _of(reduction), delta)


@op(name="_nn.smooth_l1_loss")
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    """d^2 / (2 beta) for |d| < beta, else |d| - beta / 2."""
    from ..nn._functional.loss import smooth_l1_loss as f

    return f(input, target, reduction=_of(reduction), beta=beta)


@op
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """1 - cos of two vectors where target = 1, max(0, cos - margin) where it is -1.

    Args:
        input1 (Tensor): (N, D) or (D,).
        input2 (Tensor): the same.
        target (Tensor): (N,) or (), of 1 and -1.
        margin (float): below which unlike pairs cost nothing. Default: 0.0
        reduction (int): 0 none, 1 mean, 2 sum. Default: 1

    Example:
        >>> torch.cosine_embedding_loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([1]))
        tensor(1.)
    """
    from ..nn._functional.margin_loss import cosine_embedding_loss as f

    return f(input1, input2, target, margin, reduction=_of(reduction))


@op
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    """input where target = 1, max(0, margin - input) where it is -1.

    Args:
        input (Tensor): distances.
        target (Tensor): of 1 and -1.
        margin (float): beyond which unlike pairs cost nothing. Default: 1.0
        reduction (int): 0 none, 1 mean, 2 sum. Default: 1

    Example:
        >>> torch.hinge_embedding_loss(torch.tensor([0.5, 0.25]), torch.tensor([1, -1]))
        tensor(0.6250)
    """
    from ..nn._functional.margin_loss import hinge_embedding_loss as f

    return f(input, target, margin, reduction=_of(reduction))


@op
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin).

    Args:
        input1 (Tensor): scores.
        input2 (Tensor): other scores.
        target (Tensor): 1 where the first should be higher, -1 where the second.
        margin (float): by how much. Default: 0.0
        reduction (int): 0 none, 1 mean, 2 sum. Default: 1

    Example:
        >>> torch.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1]))
        tensor(2.)
    """
    from ..nn._functional.margin_loss import margin_ranking_loss as f

    return f(input1, input2, target, margin, reduction=_of(reduction))


@op
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d being a p-norm of differences.

    Args:
        anchor, positive, negative (Tensor): (N, D) or (D,).
        margin (float): by how much the negative should be farther. Default: 1.0
        p (float): of the norm. Default: 2.0
        eps (float): added to differences. Default: 1e-6
        swap (bool): takes the distance of positive and negative, where that is smaller. Default: False
        reduction (int): 0 none, 1 mean, 2 sum. Default: 1

    Example:
        >>> a, p, n = torch.zeros(1, 2), torch.zeros(1, 2), torch.tensor([[0.5, 0.0]])
        >>> torch.triplet_margin_loss(a, p, n)
        tensor(0.5000)
    """
    from ..nn._functional.margin_loss import triplet_margin_loss as f

    return f(anchor, positive, negative, margin, p, eps, swap, reduction=_of(reduction))


@op(name="_nn.soft_margin_loss")
def soft_margin_loss(input: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    """log(1 + e^(-y x))."""
    from ..nn._functional.margin_loss import soft_margin_loss as f

    return f(input, target, reduction=_of(reduction))
