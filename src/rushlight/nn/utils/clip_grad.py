"""Limiting gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight._C import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _gradients(parameters: Any, name: str) -> list[Tensor]:
    if isinstance(parameters, rl.Tensor):
        parameters = [parameters]
    else:
        given = parameters
        parameters = list(parameters)
        if len(parameters) == 0 and hasattr(given, "__next__"):
            warnings.warn(
                f"`parameters` is an empty generator, no gradient clipping will occur in {name}.",
                stacklevel=4,
            )
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Computes the norm of all tensors taken as one vector.

    Args:
        tensors (Tensor or iterable of Tensor): often gradients.
        norm_type (float): exponent p of the norm; math.inf for the greatest magnitude. Default: 2.0
        error_if_nonfinite (bool): raises RuntimeError where it is infinite or NaN. Default: False
        foreach (bool): accepted, without effect. Default: None

    Example:
        >>> nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
        tensor(5.)
    """
    with rl.no_grad():
        tensors = [tensors] if isinstance(tensors, rl.Tensor) else list(tensors)
        norm_type = float(norm_type)
        if len(tensors) == 0:
            return rl.tensor(0.0)
        at_once = rl._C.ops["_optim.total_norm"](tensors, norm_type)
        if at_once:
            total = at_once[0]
        else:
            first = tensors[0].device
            norms = [rl.linalg.vector_norm(t, norm_type).to(first) for t in tensors]
            total = rl.linalg.vector_norm(rl.stack(norms), norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite "
                f"({total.item()}): some gradient overflowed or is NaN. error_if_nonfinite=False clips regardless"
            )
        return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiplies gradients by max_norm / (total_norm + 1e-6) where that is below 1, in place.

    Args:
        parameters (Tensor or iterable of Tensor): whose `grad` is scaled.
        max_norm (float): the norm that is allowed.
        total_norm (Tensor): the norm there is, from `get_total_norm`.
        foreach (bool): accepted, without effect. Default: None

    Example:
        >>> w = nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> nn.utils.clip_grads_with_norm_([w], 1.0, torch.tensor(5.0))
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    with rl.no_grad():
        grads = _gradients(parameters, "clip_grads_with_norm_")
        if grads:
            factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
            if not rl._C.ops["_optim.scale_"](grads, factor.item()):
                for grad in grads:
                    grad.mul_(factor.to(grad.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales gradients in place so that their norm, all together, is at most max_norm.

    It goes between `backward()` and `step()`, and tames the exploding gradients of recurrent networks and
    transformers. With `amp.GradScaler`, unscale first.

    Args:
        parameters (Tensor or iterable of Tensor): whose `grad` is scaled.
        max_norm (float): the norm that is allowed.
        norm_type (float): exponent p of the norm; math.inf for the greatest magnitude. Default: 2.0
        error_if_nonfinite (bool): raises RuntimeError where the norm is infinite or NaN. Default: False
        foreach (bool): accepted, without effect. Default: None

    Returns:
        The norm before, worth logging.

    Example:
        >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
        >>> (w * w / 2).sum().backward()
        >>> nn.utils.clip_grad_norm_([w], max_norm=1.0)
        tensor(5.)
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    parameters = [parameters] if isinstance(parameters, rl.Tensor) else parameters
    if not isinstance(parameters, (list, tuple)):
        given, parameters = parameters, list(parameters)
        if len(parameters) == 0 and hasattr(given, "__next__"):
            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
            )
    grads = [p.grad for p in parameters if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales gradients to a norm of at most max_norm: the deprecated name of `clip_grad_norm_`.

    Args:
        parameters (Tensor or iterable of Tensor): whose `grad` is scaled.
        max_norm (float): the norm that is allowed.
        norm_type (float): exponent p of the norm. Default: 2.0
        error_if_nonfinite (bool): raises where the norm is infinite or NaN. Default: False
        foreach (bool): accepted, without effect. Default: None

    Example:
        >>> nn.utils.clip_grad_norm_([nn.Parameter(torch.zeros(1))], 1.0)
        tensor(0.)
    """
    warnings.warn(
        "`nn.utils.clip_grad_norm` is now deprecated in favor of `nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limits every element of the gradients to [-clip_value, clip_value], in place.

    Unlike `clip_grad_norm_` it changes their direction.

    Args:
        parameters (Tensor or iterable of Tensor): whose `grad` is limited.
        clip_value (float): the greatest magnitude.
        foreach (bool): accepted, without effect. Default: None

    Example:
        >>> w = nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([3.0, -0.5])
        >>> nn.utils.clip_grad_value_([w], 1.0)
        >>> w.grad
        tensor([ 1.0000, -0.5000])
    """
    clip_value = float(clip_value)
    with rl.no_grad():
        for grad in _gradients(parameters, "clip_grad_value_"):
            grad.clamp_(min=-clip_value, max=clip_value)
