"""Softmax and its relatives, which may be asked without a dimension."""

from __future__ import annotations

import warnings

import rushlight as rl
from rushlight._C import Tensor, dtype


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
        "argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> Tensor:
    """Maps scores to probabilities: y_i = e^x_i / sum_j e^x_j along dim, without overflow.

    Args:
        input (Tensor): scores, any shape.
        dim (int): the dimension whose probabilities sum to 1; None warns and guesses. Default: None
        dtype (dtype): what the input is cast to first. Default: None

    Example:
        >>> F.softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([0.0900, 0.2447, 0.6652])
    """
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> Tensor:
    """Maps scores to weights that favour the least: y_i = e^-x_i / sum_j e^-x_j along dim.

    Args:
        input (Tensor): scores, any shape.
        dim (int): the dimension whose weights sum to 1; None warns and guesses. Default: None
        dtype (dtype): what the input is cast to first. Default: None

    Example:
        >>> F.softmin(torch.tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([0.6652, 0.2447, 0.0900])
    """
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None
) -> Tensor:
    """Maps scores to log probabilities: y_i = x_i - log sum_j e^x_j along dim, without overflow.

    Args:
        input (Tensor): scores, any shape.
        dim (int): the dimension whose probabilities sum to 1; None warns and guesses. Default: None
        dtype (dtype): what the input is cast to first. Default: None

    Example:
        >>> F.log_softmax(torch.tensor([0.0, 1000.0]), dim=0)
        tensor([-1000.,     0.])
    """
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draws from a relaxed categorical distribution: y = softmax((logits + g) / tau), g Gumbel noise.

    It lets gradients through a random choice.

    Args:
        logits (Tensor): log probabilities, up to a constant.
        tau (float): temperature; the lower, the nearer to one-hot. Default: 1
        hard (bool): returns the one-hot vector of the greatest element, with the gradient of the soft sample
            (straight-through). Default: False
        eps (float): deprecated, without effect. Default: 1e-10
        dim (int): the dimension of the categories. Default: -1

    Example:
        >>> F.gumbel_softmax(torch.tensor([[0.0, 10.0, 0.0]]), hard=True)
        tensor([[0., 1., 0.]])
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -rl.empty_like(logits, memory_format=rl.contiguous_format).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = rl.zeros_like(logits, memory_format=rl.contiguous_format).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
