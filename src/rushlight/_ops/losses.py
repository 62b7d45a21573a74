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
    """binary_cross_entropy of sigmoid(input), without underflow."""
    from ..nn._functional.loss import binary_cross_entropy_with_logits as f

    return f(input, target, weight, reduction=_of(reduction), pos_weight=pos_weight)


@op
def kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    """y * (log y - x)."""
    from ..nn import _reduction
    from ..nn._functional.loss import kl_div as f

    return _reduction.apply(f(input, target, reduction="none", log_target=log_target), _of(reduction))


@op
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """The negative log likelihood of counts under a Poisson distribution."""
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
    """1 - cos where y = 1, max(0, cos - margin) where y = -1."""
    from ..nn._functional.margin_loss import cosine_embedding_loss as f

    return f(input1, input2, target, margin, reduction=_of(reduction))


@op
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    """x where y = 1, max(0, margin - x) where y = -1."""
    from ..nn._functional.margin_loss import hinge_embedding_loss as f

    return f(input, target, margin, reduction=_of(reduction))


@op
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """max(0, -y (x1 - x2) + margin)."""
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
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    from ..nn._functional.margin_loss import triplet_margin_loss as f

    return f(anchor, positive, negative, margin, p, eps, swap, reduction=_of(reduction))


@op(name="_nn.soft_margin_loss")
def soft_margin_loss(input: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    """log(1 + e^(-y x))."""
    from ..nn._functional.margin_loss import soft_margin_loss as f

    return f(input, target, reduction=_of(reduction))
