"""Losses between predictions and targets of the same shape, and of classes."""

from __future__ import annotations

import math
import warnings
from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight._core import autocast as _autocast
from rushlight.nn import _core as core
from rushlight.nn import _reduction


def _reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    if size_average is not None or reduce is not None:
        return _reduction.legacy_get_string(size_average, reduce)
    return reduction


def _broadcast(input: Tensor, target: Tensor, stacklevel: int = 3) -> tuple[Tensor, ...]:
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=stacklevel,
        )
    return rl.broadcast_tensors(input, target)


def _weighted(loss: Tensor, input: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """A loss per element times its weight; the mean is over the weights."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return _reduction.apply(loss, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Computes the squared error (x - y)^2 of each element and reduces it; see `nn.MSELoss`.

    Args:
        input (Tensor): predictions x.
        target (Tensor): y, of the same shape.
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'
        weight (Tensor): a factor for each element; 'mean' divides by their sum. Default: None

    Example:
        >>> F.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    input, target = (input, target) if input.shape == target.shape else _broadcast(input, target)
    if weight is not None:
        return _weighted(core.mse_loss(input, target, 0), input, weight, reduction)
    out: Tensor = core.mse_loss(input, target, _reduction.get_enum(reduction))
    return out


@_autocast.full
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Computes the absolute error |x - y| of each element and reduces it; see `nn.L1Loss`.

    Args:
        input (Tensor): predictions x.
        target (Tensor): y, of the same shape.
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'
        weight (Tensor): a factor for each element; 'mean' divides by their sum. Default: None

    Example:
        >>> F.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    input, target = (input, target) if input.shape == target.shape else _broadcast(input, target)
    if weight is not None:
        return _weighted((input - target).abs(), input, weight, reduction)
    return _reduction.apply((input - target).abs(), reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Computes d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, for d = x - y; see `nn.SmoothL1Loss`.

    Args:
        input (Tensor): predictions x.
        target (Tensor): y, of the same shape.
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'
        beta (float): where the parabola ends. Default: 1.0

    Example:
        >>> F.smooth_l1_loss(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none")
        tensor([0.1250, 2.5000])
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    input, target = (input, target) if input.shape == target.shape else _broadcast(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    out: Tensor = core.smooth_l1(input, target, _reduction.get_enum(reduction), beta)
    return out


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Computes d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), for d = x - y; see `nn.HuberLoss`.

    Args:
        input (Tensor): predictions x.
        target (Tensor): y, of the same shape.
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'
        delta (float): where the parabola ends. Default: 1.0
        weight (Tensor): a factor for each element; 'mean' divides by their sum. Default: None

    Example:
        >>> F.huber_loss(torch.tensor([0.5, 3.0]), torch.zeros(2), reduction="none")
        tensor([0.1250, 2.5000])
    """
    input, target = (input, target) if input.shape == target.shape else _broadcast(input, target)
    if weight is not None:
        return _weighted(core.huber(input, target, 0, delta), input, weight, reduction)
    out: Tensor = core.huber(input, target, _reduction.get_enum(reduction), delta)
    return out


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes the negative log likelihood of classes, -weight[y] x[y], for log probabilities x; see `nn.NLLLoss`.

    Args:
        input (Tensor): x, (N, C, *) or (C,).
        target (Tensor): classes y, (N, *) or ().
        weight (Tensor): a factor for each class, (C,). Default: None
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        ignore_index (int): a target that counts for nothing. Default: -100
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' (divides by the sum of the targets' weights), 'sum' or 'none'. Default: 'mean'

    Example:
        >>> F.nll_loss(torch.tensor([[-0.5, -1.0], [-2.0, -0.1]]), torch.tensor([0, 1]))
        tensor(0.3000)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    out: Tensor = core.nll_loss_nd(input, target, weight, _reduction.get_enum(reduction), ignore_index)
    return out


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Computes -weight[y] log softmax(x)[y] for scores x and classes y; see `nn.CrossEntropyLoss`.

    It takes scores: no softmax goes before it.

    Args:
        input (Tensor): x, (N, C, *) or (C,).
        target (Tensor): classes y, (N, *) or (), or probabilities of the classes, like input.
        weight (Tensor): a factor for each class, (C,). Default: None
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        ignore_index (int): a target that counts for nothing. Default: -100
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' (divides by the sum of the targets' weights), 'sum' or 'none'. Default: 'mean'
        label_smoothing (float): share of the target spread evenly over all classes. Default: 0.0

    Example:
        >>> F.cross_entropy(torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1]))
        tensor(0.4100)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    number = _reduction.get_enum(reduction)
    if label_smoothing == 0.0 and target.shape != input.shape:
        out: Tensor = core.cross_entropy(input, target, weight, number, ignore_index)
        return out
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if target.shape != input.shape:
        result: Tensor = _smoothed(input, target, weight, number, ignore_index, label_smoothing)
        return result
    if not target.is_floating_point():
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype}"
        )
    return _soft_targets(input, target, weight, number, ignore_index, label_smoothing)


def _by_class(weight: Tensor | None, log_probs: Tensor, dim: int) -> Tensor:
    """log_probs times the weights of their classes."""
    if weight is None:
        return log_probs
    return log_probs * weight.view([-1 if d == dim else 1 for d in range(log_probs.dim())])


def _smoothed(
    input: Tensor, target: Tensor, weight: Tensor | None, number: int, ignore_index: int, smoothing: float
) -> Any:
    """Targets of classes mixed with the uniform distribution."""
    dim = 0 if input.dim() == 1 else 1
    log_probs = input.log_softmax(dim)
    nll = core.nll_loss_nd(log_probs, target, weight, number, ignore_index)
    smooth = -_by_class(weight, log_probs, dim).sum(dim)
    ignored = target == ignore_index
    smooth = smooth.masked_fill(ignored, 0.0)
    if number == 1:
        if weight is None:
            used = (~ignored).sum()
        else:
            used = weight[target.masked_fill(ignored, 0)].masked_fill(ignored, 0.0).sum()
        smooth = smooth.sum() / used
    elif number == 2:
        smooth = smooth.sum()
    return (1 - smoothing) * nll + smooth * (smoothing / input.size(dim))


def _soft_targets(
    input: Tensor, target: Tensor, weight: Tensor | None, number: int, ignore_index: int, smoothing: float
) -> Tensor:
    """Targets that are probabilities of classes; the mean is over samples."""
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    dim = 0 if input.dim() == 1 else 1
    if weight is not None and (weight.dim() != 1 or weight.numel() != input.size(dim)):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {input.size(dim)} classes or no "
            f"classes but got weight tensor of shape: {list(weight.shape)}"
        )
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / input.size(dim)
    loss = -(_by_class(weight, input.log_softmax(dim), dim) * target).sum(dim)
    if number == 0:
        return loss
    total = loss.sum()
    return total if number == 2 else total / (input.numel() // input.size(dim) if input.size(dim) else 0)


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """Computes the cross entropy of a linear layer's scores x A^T + b; see `nn.LinearCrossEntropyLoss`.

    Args:
        input (Tensor): x, (N, in_features) or (in_features,).
        linear_weight (Tensor): A, (C, in_features), or (C, d1, ..., in_features) for targets (N, d1, ...).
        target (Tensor): classes, or probabilities of classes.
        linear_bias (Tensor): b, (C, d1, ...). Default: None
        weight (Tensor): a factor for each class, (C,). Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'
        ignore_index (int): a target that counts for nothing; None means -100. Default: None
        label_smoothing (float): share of the target spread evenly over all classes. Default: 0.0
        options (LinearCrossEntropyOptions): accepted, without effect. Default: None

    Example:
        >>> F.linear_cross_entropy(torch.ones(1, 2), torch.zeros(4, 2), torch.tensor([3]))
        tensor(1.3863)
    """
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(
            f"linear_cross_entropy: linear_bias must have the shape {tuple(linear_weight.shape[:-1])}, got "
            f"{tuple(linear_bias.shape)}."
        )
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires "
            "batched input, (N, in_features)"
        )
    if weight is not None and weight.shape != linear_weight.shape[:1]:
        raise RuntimeError(
            f"expected weight shape to be {tuple(linear_weight.shape[:1])}, got {tuple(weight.shape)}"
        )
    shape = linear_weight.shape[:-1]
    flat = linear_weight.reshape(-1, linear_weight.size(-1)) if linear_weight.dim() > 2 else linear_weight
    logits = core.linear(input, flat, None if linear_bias is None else linear_bias.reshape(-1))
    if len(shape) > 1:
        logits = logits.unflatten(-1, shape)
    if ignore_index is None:
        ignore_index = -100
    return cross_entropy(
        logits,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes -(y log x + (1 - y) log(1 - x)) for probabilities x, logarithms stopping at -100; see `nn.BCELoss`.

    Args:
        input (Tensor): x, within [0, 1].
        target (Tensor): y, within [0, 1], of the same shape.
        weight (Tensor): a factor for each element, or what broadcasts to that. Default: None
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> F.binary_cross_entropy(torch.tensor([0.9, 0.2]), torch.tensor([1.0, 0.0]))
        tensor(0.1643)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    number = _reduction.get_enum(reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}): "
            "give both one size, by view() or squeeze()"
        )
    if weight is not None:
        weight = weight.expand(rl.broadcast_shapes(weight.size(), target.size()))
    out: Tensor = core.binary_cross_entropy(input, target, weight, number)
    return out


@_autocast.full
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Computes the binary cross entropy of sigmoid(x) for scores x, without overflow; see `nn.BCEWithLogitsLoss`.

    Args:
        input (Tensor): scores x.
        target (Tensor): y, within [0, 1], of the same shape.
        weight (Tensor): a factor for each element, or what broadcasts to that. Default: None
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'
        pos_weight (Tensor): a factor of the positive term, per class. Default: None

    Example:
        >>> F.binary_cross_entropy_with_logits(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 0.0]))
        tensor(0.2201)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    _reduction.get_enum(reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    loss = core.logits_loss(input, target, pos_weight)
    if weight is not None:
        loss = loss * weight
    return _reduction.apply(loss, reduction)


@_autocast.full
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Computes y (log y - x) for log probabilities x and probabilities y and reduces it; see `nn.KLDivLoss`.

    Args:
        input (Tensor): log probabilities x.
        target (Tensor): y, or log y with log_target.
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        reduce (bool): deprecated. Default: None
        reduction (str): 'batchmean' for the divergence itself, 'sum', 'mean' (warns) or 'none'. Default: 'mean'
        log_target (bool): target holds logarithms. Default: False

    Example:
        >>> F.kl_div(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]), reduction="batchmean")
        tensor(0.3681)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by the number of elements, which is not the "
            "Kullback-Leibler divergence; reduction='batchmean' divides by the batch size and is",
            stacklevel=2,
        )
    loss = target.exp() * (target - input) if log_target else rl.xlogy(target, target) - target * input
    if reduction == "batchmean":
        loss = loss.sum()
        return loss / input.size(0) if input.dim() else loss
    return _reduction.apply(loss, reduction)


@_autocast.full
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-08,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Computes e^x - y x for log rates x of counts y, or x - y log(x + eps) for rates; see `nn.PoissonNLLLoss`.

    Args:
        input (Tensor): x.
        target (Tensor): counts y.
        log_input (bool): x is the logarithm of the rate. Default: True
        full (bool): adds Stirling's approximation of log(y!) for y > 1. Default: False
        size_average (bool): deprecated, like reduce: `reduction` replaces both. Default: None
        eps (float): keeps log(0) away with log_input=False. Default: 1e-8
        reduce (bool): deprecated. Default: None
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> F.poisson_nll_loss(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
        tensor(0.8591)
    """
    reduction = _reduction_of(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduction.apply(loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-06,
    reduction: str = "mean",
) -> Tensor:
    """Computes (log var + (x - y)^2 / var) / 2, the negative log likelihood under N(x, var); see `nn.GaussianNLLLoss`.

    Args:
        input (Tensor): means x.
        target (Tensor): y.
        var (Tensor or float): variances, like input, or with the last dimension 1 or absent.
        full (bool): adds log(2 pi) / 2. Default: False
        eps (float): the least variance. Default: 1e-6
        reduction (str): 'mean' or 'sum' over all elements, or 'none' for the loss of each. Default: 'mean'

    Example:
        >>> F.gaussian_nll_loss(torch.zeros(2), torch.tensor([1.0, 3.0]), torch.ones(2))
        tensor(2.5000)
    """
    if var < 0 if isinstance(var, float) else bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if isinstance(var, float):
        var = rl.ones_like(input) * var
    if var.shape != input.shape:
        rows = list(input.shape[:-1])
        if list(var.shape) == rows:
            var = var.unsqueeze(-1)  # one variance a row
        elif list(var.shape) != [*rows, 1]:
            # One dimension of size 1 and all others equal is a variance that broadcasts.
            one_row = input.dim() == var.dim() and [
                b for a, b in zip(input.shape, var.shape, strict=True) if a != b
            ] == [1]
            if not one_row:
                raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    with rl.no_grad():
        clamped = var.clamp(min=eps)
    var = var + (clamped - var).detach()  # the limited value with the gradient of the given one
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduction.apply(loss, reduction)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Computes -log of the probability of targets, summed over their alignments with T steps; see `nn.CTCLoss`.

    Args:
        log_probs (Tensor): (T, N, C) or (T, C), from log_softmax.
        targets (Tensor): classes without the blank, (N, S), or all joined, 1-d.
        input_lengths (Tensor): (N,), steps of each sample.
        target_lengths (Tensor): (N,), labels of each sample.
        blank (int): the class of the blank. Default: 0
        reduction (str): 'mean' (each loss divided by its target's length, then over the batch), 'sum' or 'none'.
            Default: 'mean'
        zero_infinity (bool): makes infinite losses and their gradients 0. Default: False

    Example:
        >>> x = torch.full((3, 1, 2), math.log(0.5))
        >>> F.ctc_loss(x, torch.tensor([[1]]), torch.tensor([3]), torch.tensor([1])).exp()
        tensor(1.3333)
    """
    return rl.ctc_loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        _reduction.get_enum(reduction),
        zero_infinity,
    )
