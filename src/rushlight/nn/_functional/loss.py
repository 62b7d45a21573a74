"""Losses between predictions and targets of the same shape, and of classes."""

from __future__ import annotations

import math
import warnings
from typing import Any

import rushlight as rl
from rushlight import _autocast
from rushlight._C import Tensor
from rushlight.nn import _core as core
from rushlight.nn import _reduction


def _reduction_of(size_average, reduce, reduction):
    if size_average is not None or reduce is not None:
        return _reduction.legacy_get_string(size_average, reduce)
    return reduction


def _broadcast(input, target, stacklevel=3):
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=stacklevel,
        )
    return rl.broadcast_tensors(input, target)


def _weighted(loss, input, weight, reduction):
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
    """(x - y)^2."""
    reduction = _reduction_of(size_average, reduce, reduction)
    input, target = (input, target) if input.shape == target.shape else _broadcast(input, target)
    if weight is not None:
        return _weighted(core.mse_loss(input, target, 0), input, weight, reduction)
    return core.mse_loss(input, target, _reduction.get_enum(reduction))


@_autocast.full
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|x - y|."""
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
    """d^2 / (2 beta) for |d| < beta, else |d| - beta / 2."""
    reduction = _reduction_of(size_average, reduce, reduction)
    input, target = (input, target) if input.shape == target.shape else _broadcast(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return core.smooth_l1(input, target, _reduction.get_enum(reduction), beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """d^2 / 2 for |d| <= delta, else delta * (|d| - delta / 2)."""
    input, target = (input, target) if input.shape == target.shape else _broadcast(input, target)
    if weight is not None:
        return _weighted(core.huber(input, target, 0, delta), input, weight, reduction)
    return core.huber(input, target, _reduction.get_enum(reduction), delta)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-x[target]: the negative log likelihood of classes, x being log probabilities (N, C, ...)."""
    reduction = _reduction_of(size_average, reduce, reduction)
    return core.nll_loss_nd(input, target, weight, _reduction.get_enum(reduction), ignore_index)


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
    """nll_loss of log_softmax(x): x are scores (N, C, ...), targets classes or probabilities of classes."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    number = _reduction.get_enum(reduction)
    if label_smoothing == 0.0 and target.shape != input.shape:
        return core.cross_entropy(input, target, weight, number, ignore_index)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if target.shape != input.shape:
        return _smoothed(input, target, weight, number, ignore_index, label_smoothing)
    if not target.is_floating_point():
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype}"
        )
    return _soft_targets(input, target, weight, number, ignore_index, label_smoothing)


def _by_class(weight, log_probs, dim):
    """log_probs times the weights of their classes."""
    if weight is None:
        return log_probs
    return log_probs * weight.view([-1 if d == dim else 1 for d in range(log_probs.dim())])


def _smoothed(input, target, weight, number, ignore_index, smoothing):
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


def _soft_targets(input, target, weight, number, ignore_index, smoothing):
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
    """cross_entropy of a linear layer's scores; `linear_weight` is (C, in) or (C, d1, ..., in) for targets
    (N, d1, ...)."""
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
    """-(y log x + (1 - y) log(1 - x)) of probabilities x; logarithms stop at -100."""
    reduction = _reduction_of(size_average, reduce, reduction)
    number = _reduction.get_enum(reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}): "
            "give both one size, by view() or squeeze()"
        )
    if weight is not None:
        weight = weight.expand(rl.broadcast_shapes(weight.size(), target.size()))
    return core.binary_cross_entropy(input, target, weight, number)


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
    """binary_cross_entropy of sigmoid(x), without underflow; pos_weight multiplies the loss of positives."""
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
    """y * (log y - x), x being log probabilities; 'batchmean' divides by the batch size."""
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
    """The negative log likelihood of counts under a Poisson distribution of mean e^x, or x; `full` adds
    Stirling's term."""
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
    """The negative log likelihood under a normal distribution of mean x and variance `var`; `full` adds its
    constant."""
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
    """Connectionist temporal classification: -log of the probability of all alignments of targets to
    log_probs (T, N, C)."""
    return rl.ctc_loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        _reduction.get_enum(reduction),
        zero_infinity,
    )
