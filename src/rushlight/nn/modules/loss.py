"""Losses as modules. `reduction` is 'mean', 'sum' or 'none'; size_average and reduce are its old form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight._C import Tensor
from rushlight.nn import _reduction
from rushlight.nn import functional as F
from rushlight.nn.modules.distance import PairwiseDistance
from rushlight.nn.modules.module import Module

__all__ = [
    "L1Loss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "GaussianNLLLoss", "KLDivLoss", "MSELoss", "BCELoss",
    "BCEWithLogitsLoss", "HingeEmbeddingLoss", "MultiLabelMarginLoss", "SmoothL1Loss", "HuberLoss",
    "SoftMarginLoss",
    "CrossEntropyLoss", "MultiLabelSoftMarginLoss", "CosineEmbeddingLoss", "MarginRankingLoss",
    "MultiMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss", "CTCLoss",
]  # fmt: skip


class _Loss(Module):
    __constants__ = ["reduction"]

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            self.reduction = _reduction.legacy_get_string(size_average, reduce)
        else:
            self.reduction = reduction


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """Computes the absolute error |x - y| of each element, by default its mean.

    Less drawn by outliers than `nn.MSELoss`. Its gradient is the sign of x - y, 0 where they are equal.

    Args:
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input (*), target (*) -> (), or (*) for 'none'; unequal shapes broadcast, with a warning

    Example:
        >>> nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """Computes the negative log likelihood of classes: -weight[y] x[y], x being log probabilities.

    The mean is over the weights: sum of losses / sum of weight[y]. With `nn.LogSoftmax` before it, this is
    `nn.CrossEntropyLoss`, which is simpler and takes scores.

    Args:
        weight (Tensor): a factor for each class, (C,), for classes of unequal frequency. Default: None, all 1
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        ignore_index (int): a target whose samples count for nothing. Default: -100
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input (N, C, *) or (C,), target (N, *) or (), integers in [0, C) -> (), or the target's for 'none'

    Example:
        >>> x = torch.log_softmax(torch.tensor([[2.0, 0.0], [0.0, 0.0]]), 1)
        >>> nn.NLLLoss(reduction="none")(x, torch.tensor([0, 1]))
        tensor([0.1269, 0.6931])
    """

    __constants__ = ["ignore_index", "reduction"]

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class NLLLoss2d(NLLLoss):
    """Computes the negative log likelihood of classes per pixel: the deprecated name of `nn.NLLLoss` for images.

    Args:
        weight (Tensor): a factor for each class, (C,). Default: None
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        ignore_index (int): a target whose pixels count for nothing. Default: -100
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input (N, C, H, W), target (N, H, W) -> (), or (N, H, W) for 'none'

    Example:
        >>> issubclass(nn.NLLLoss2d, nn.NLLLoss)
        True
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        import warnings

        warnings.warn(
            "NLLLoss2d has been deprecated. Please use NLLLoss instead as a drop-in replacement.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class PoissonNLLLoss(_Loss):
    """Computes the negative log likelihood of counts y: e^x - y x for log rates x, or x - y log(x + eps) for rates.

    Args:
        log_input (bool): x is the logarithm of the rate. Default: True
        full (bool): adds log(y!) by Stirling's formula, y log y - y + log(2 pi y) / 2 for y > 1. Default: False
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        eps (float): keeps log(0) away with log_input=False. Default: 1e-8
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        log_input (*), target (*) -> (), or (*) for 'none'

    Example:
        >>> nn.PoissonNLLLoss()(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
        tensor(0.8591)
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """Computes the negative log likelihood under N(x, var): (log var + (x - y)^2 / var) / 2.

    For networks that predict a mean and a variance (through `nn.Softplus`, say) for each target.

    Args:
        full (bool): adds log(2 pi) / 2. Default: False
        eps (float): the least variance; smaller ones count as it, gradients pass. Default: 1e-6
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input (*), target (*), var (*), or with its last dimension 1 or absent, or a float -> (), or (*) for 'none'

    Example:
        >>> loss = nn.GaussianNLLLoss()
        >>> loss(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 3.0]), torch.tensor([1.0, 4.0]))
        tensor(0.5966)
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    """Computes the Kullback-Leibler divergence of log probabilities x from probabilities y: y (log y - x).

    reduction='batchmean' is the divergence itself, averaged over samples; 'mean' divides by the number of classes
    too, and warns. The input holds logarithms (`nn.LogSoftmax`), the target does not, unless log_target=True.

    Args:
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'batchmean', 'sum', 'mean' or 'none'. Default: 'mean'
        log_target (bool): the target holds logarithms too. Default: False

    Shape:
        input (N, *), target (N, *) -> (), or (N, *) for 'none'

    Example:
        >>> x, y = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]])
        >>> nn.KLDivLoss(reduction="batchmean")(x, y)
        tensor(0.3681)
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class MSELoss(_Loss):
    """Computes the squared error (x - y)^2 of each element, by default its mean.

    The usual loss of regression. A target (N,) for an input (N, 1) broadcasts to (N, N), with a warning: squeeze
    one of them.

    Args:
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input (*), target (*) -> (), or (*) for 'none'

    Example:
        >>> nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class BCELoss(_WeightedLoss):
    """Computes the binary cross entropy of probabilities x: -weight (y log x + (1 - y) log(1 - x)).

    Logarithms stop at -100, so that x = 0 and x = 1 are finite. Train with `nn.BCEWithLogitsLoss` instead, which
    is given the scores before the sigmoid and is more accurate.

    Args:
        weight (Tensor): a factor for each element, or what broadcasts to that. Default: None
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input (*) within [0, 1], target (*) within [0, 1] -> (), or (*) for 'none'

    Example:
        >>> nn.BCELoss()(torch.tensor([0.9, 0.2]), torch.tensor([1.0, 0.0]))
        tensor(0.1643)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Computes the binary cross entropy of scores x: -(p y log s(x) + (1 - y) log(1 - s(x))), s the sigmoid.

    For yes-or-no classes, also several per sample. It is computed as log(1 + e^-|x|), without overflow: put no
    sigmoid before it. Targets are floats.

    Args:
        weight (Tensor): a factor for each element, or what broadcasts to that. Default: None
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'
        pos_weight (Tensor): p, a factor of the positive term per class; negatives / positives balances rare
            classes. Default: None

    Shape:
        input (*), target (*) within [0, 1] -> (), or (*) for 'none'

    Example:
        >>> nn.BCEWithLogitsLoss()(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 0.0]))
        tensor(0.2201)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """Computes x where y = 1 and max(0, margin - x) where y = -1, x being distances of pairs.

    Like pairs (y = 1) are drawn together, unlike ones (y = -1) pushed to a distance of margin.

    Args:
        margin (float): the distance that suffices for unlike pairs. Default: 1.0
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input (*), target (*) of 1 and -1 -> (), or (*) for 'none'

    Example:
        >>> nn.HingeEmbeddingLoss()(torch.tensor([0.5, 0.2]), torch.tensor([1, -1]))
        tensor(0.6500)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Asks for a margin of 1 of each label over each other class: sum_ij max(0, 1 - x[y_j] + x[i]) / C.

    j runs over the labels, i over the classes that are none.

    Args:
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input (N, C) or (C,), target of the same shape, labels up to the first -1 -> (), or (N,) for 'none'

    Example:
        >>> x, y = torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([[3, 0, -1, 1]])
        >>> nn.MultiLabelMarginLoss()(x, y)
        tensor(0.8500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Computes d^2 / (2 beta) where |d| < beta and |d| - beta / 2 elsewhere, d = x - y.

    Smooth at 0 like `nn.MSELoss` and calm about outliers like `nn.L1Loss`. It is `nn.HuberLoss` divided by beta.

    Args:
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'
        beta (float): where the parabola ends, not negative; 0 is `nn.L1Loss`. Default: 1.0

    Shape:
        input (*), target (*) -> (), or (*) for 'none'

    Example:
        >>> nn.SmoothL1Loss(reduction="none")(torch.tensor([0.5, 3.0]), torch.zeros(2))
        tensor([0.1250, 2.5000])
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Computes d^2 / 2 where |d| <= delta and delta (|d| - delta / 2) elsewhere, d = x - y.

    Args:
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'
        delta (float): where the parabola ends, greater than 0. Default: 1.0

    Shape:
        input (*), target (*) -> (), or (*) for 'none'

    Example:
        >>> nn.HuberLoss(reduction="none")(torch.tensor([0.5, 3.0]), torch.zeros(2))
        tensor([0.1250, 2.5000])
    """

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, int | float):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SoftMarginLoss(_Loss):
    """Computes the logistic loss log(1 + e^(-y x)) of scores x and signs y.

    Args:
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input (*), target (*) of 1 and -1 -> (), or (*) for 'none'

    Example:
        >>> nn.SoftMarginLoss()(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 1.0]))
        tensor(0.7201)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Computes the cross entropy of scores x and classes y: -weight[y] log(e^x[y] / sum_c e^x[c]).

    The usual loss of classification. It takes scores (logits): a softmax before it is a common mistake that slows
    learning down. Targets are class indices (int64), or probabilities of the classes in the input's shape. The mean
    over indices is over their weights: sum of losses / sum of weight[y].

    Args:
        weight (Tensor): a factor for each class, (C,), for classes of unequal frequency. Default: None, all 1
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        ignore_index (int): a target whose samples count for nothing, such as padding. Default: -100
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'
        label_smoothing (float): share of the target spread evenly over all classes, in [0, 1]. Default: 0.0

    Shape:
        input (N, C, *) or (C,); target (N, *) or (), integers in [0, C), or like the input, probabilities
        -> (), or (N, *) for 'none'; for sequences, C is dimension 1: (N, C, L)

    Example:
        >>> x = torch.tensor([[2.0, 0.0], [0.0, 0.0]])
        >>> nn.CrossEntropyLoss()(x, torch.tensor([0, 1]))
        tensor(0.4100)
        >>> nn.CrossEntropyLoss()(x, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
        tensor(0.4100)
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )  # fmt: skip


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Computes the binary cross entropy of each class, averaged over the classes of a sample.

    -mean_c weight[c] (y[c] log s(x[c]) + (1 - y[c]) log(1 - s(x[c]))), s the sigmoid.

    Args:
        weight (Tensor): a factor for each class, (C,). Default: None
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input (N, C), target (N, C) of 0 and 1 -> (), or (N,) for 'none'

    Example:
        >>> nn.MultiLabelSoftMarginLoss()(torch.tensor([[2.0, -1.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(0.2201)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """Computes 1 - cos where y = 1 and max(0, cos - margin) where y = -1, cos of the angle between x1 and x2.

    Args:
        margin (float): the cosine that suffices for unlike pairs, in [-1, 1]; 0 to 0.5 is usual. Default: 0.0
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input1 (N, D), input2 (N, D), target (N,) of 1 and -1 -> (), or (N,) for 'none'; also all without N

    Example:
        >>> x1, x2 = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[1.0, 1.0], [0.0, 1.0]])
        >>> nn.CosineEmbeddingLoss()(x1, x2, torch.tensor([1, -1]))
        tensor(0.1464)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """Computes max(0, -y (x1 - x2) + margin): x1 is to rank above x2 where y = 1, below where y = -1.

    Args:
        margin (float): the difference that suffices. Default: 0.0
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input1 (*), input2 (*), target (*) of 1 and -1 -> (), or (*) for 'none'

    Example:
        >>> nn.MarginRankingLoss()(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0]), torch.tensor([1.0, 1.0]))
        tensor(1.)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Asks for a margin of the right class over each other: sum_i max(0, margin - x[y] + x[i])^p / C, i != y.

    The multi-class hinge loss, for p = 1.

    Args:
        p (int): 1 or 2. Default: 1
        margin (float): the difference that suffices. Default: 1.0
        weight (Tensor): a factor for each class, (C,). Default: None
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        input (N, C) or (C,), target (N,) or () -> (), or (N,) for 'none'

    Example:
        >>> nn.MultiMarginLoss()(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([3]))
        tensor(0.3250)
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"weight must be None or 1-dimensional, got {weight.dim()} dimensions")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


def _check_margin(loss: Any, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{type(loss).__name__}: expected margin to be greater than 0, got {margin} instead")


def _triplet_options(loss: Any) -> dict[str, Any]:
    return {"margin": loss.margin, "swap": loss.swap, "reduction": loss.reduction}


class TripletMarginLoss(_Loss):
    """Computes max(0, d(a, p) - d(a, n) + margin) of anchors a, positives p and negatives n, d the p-norm distance.

    Args:
        margin (float): how much farther negatives are to be, greater than 0. Default: 1.0
        p (float): exponent of the norm. Default: 2.0
        eps (float): added to the differences. Default: 1e-6
        swap (bool): takes d(p, n) instead of d(a, n) where it is smaller: harder triplets. Default: False
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        anchor (N, D), positive (N, D), negative (N, D) -> (), or (N,) for 'none'; also without N

    Example:
        >>> a, p, n = torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]), torch.tensor([[1.5, 0.0]])
        >>> nn.TripletMarginLoss()(a, p, n)
        tensor(0.5000)
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _check_margin(self, margin)
        self.margin, self.swap = margin, swap
        self.p, self.eps = p, eps

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        distance: dict[str, Any] = {"p": self.p, "eps": self.eps}
        return F.triplet_margin_loss(anchor, positive, negative, **distance, **_triplet_options(self))


class TripletMarginWithDistanceLoss(_Loss):
    """Computes max(0, d(a, p) - d(a, n) + margin) of anchors a, positives p and negatives n for any distance d.

    Args:
        distance_function (callable): d of two batches (N, D), giving (N,). Default: None, `nn.PairwiseDistance()`
        margin (float): how much farther negatives are to be, greater than 0. Default: 1.0
        swap (bool): takes d(p, n) instead of d(a, n) where it is smaller. Default: False
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Shape:
        anchor (N, *), positive (N, *), negative (N, *) -> (), or d's shape for 'none'

    Example:
        >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().amax(-1))
        >>> loss(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]), torch.tensor([[1.5, 0.0]]))
        tensor(0.5000)
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average=None, reduce=None, reduction=reduction)
        _check_margin(self, margin)
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        options = {"distance_function": self.distance_function, **_triplet_options(self)}
        return F.triplet_margin_with_distance_loss(anchor, positive, negative, **options)


class CTCLoss(_Loss):
    """Computes -log of the probability of a target sequence, summed over its alignments with T steps.

    Connectionist temporal classification, for speech and handwriting where it is unknown which steps belong to
    which label: between labels, and between equal neighbours, the network may emit a blank.

    Args:
        blank (int): the class of the blank, which is in no target. Default: 0
        reduction (str): 'mean' (each loss divided by its target's length, then over the batch), 'sum' or 'none'.
            Default: 'mean'
        zero_infinity (bool): makes infinite losses (targets longer than their inputs) and their gradients 0.
            Default: False

    Shape:
        log_probs (T, N, C) from log_softmax, targets (N, S) or all joined to (sum of target_lengths,),
        input_lengths (N,), target_lengths (N,) -> (), or (N,) for 'none'; also without N

    Example:
        >>> log_probs = torch.randn(50, 2, 20).log_softmax(2)
        >>> targets = torch.randint(1, 20, (2, 10))
        >>> nn.CTCLoss()(log_probs, targets, torch.tensor([50, 40]), torch.tensor([10, 7])).shape
        torch.Size([])
    """

    __constants__ = ["blank", "reduction"]

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor
    ) -> Tensor:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
