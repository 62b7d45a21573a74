"""Normalisation over batches, layers, groups, channels and vectors."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight as rl
from rushlight._C import Tensor


def _verify_batch_size(size: Sequence[int]) -> None:
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}\n  One value has no "
            "variance: use larger batches (drop_last=True), or eval() for the running statistics."
        )


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Normalises each channel: y = (x - mean) / sqrt(var + eps) * weight + bias; see `nn.BatchNorm2d`.

    Args:
        input (Tensor): (N, C, *).
        running_mean (Tensor): (C,), or None; in training it is updated in place.
        running_var (Tensor): (C,), likewise.
        weight (Tensor): (C,). Default: None
        bias (Tensor): (C,). Default: None
        training (bool): takes mean and variance of the batch rather than the running ones. Default: False
        momentum (float): how far the running ones move towards the batch's. Default: 0.1
        eps (float): added to the variance. Default: 1e-5

    Example:
        >>> F.batch_norm(torch.tensor([[1.0], [3.0]]), torch.zeros(1), torch.ones(1), training=True)
        tensor([[-1.0000],
                [ 1.0000]])
    """
    if training:
        _verify_batch_size(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    _refuse_dual_statistics(input, running_mean, running_var)
    if input.numel() == 0 and weight is not None and weight.dtype != input.dtype:  # nothing is multiplied
        weight, bias = weight.to(input.dtype), None if bias is None else bias.to(input.dtype)
    return rl.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def _moves(t: Tensor) -> bool:
    return rl.autograd.forward_ad.unpack_dual(t).tangent is not None


def _refuse_dual_statistics(input: Tensor, *statistics: Tensor | None) -> None:
    """Running statistics are written to, and have no tangents."""
    forward = rl.autograd.function._forward_mode
    if forward is None or not forward.active():
        return
    if any(t is not None and t.requires_grad and _moves(t) for t in statistics) and _moves(input):
        raise RuntimeError(
            "batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined"
        )


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Normalises each channel of each sample: y = (x - mean) / sqrt(var + eps) * weight + bias.

    Args:
        input (Tensor): (N, C, *).
        running_mean (Tensor): (C,), updated in place with use_input_stats. Default: None
        running_var (Tensor): (C,), likewise. Default: None
        weight (Tensor): (C,). Default: None
        bias (Tensor): (C,). Default: None
        use_input_stats (bool): takes mean and variance of the sample rather than the running ones. Default: True
        momentum (float): how far the running ones move. Default: 0.1
        eps (float): added to the variance. Default: 1e-5

    Example:
        >>> F.instance_norm(torch.tensor([[[1.0, 3.0], [5.0, 9.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [-1.0000,  1.0000]]])
    """
    if use_input_stats:
        size = input.size()
        count = 1
        for n in size[2:]:
            count *= n
        if count == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")
    return rl.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Normalises over the last dimensions: y = (x - mean) / sqrt(var + eps) * weight + bias; see `nn.LayerNorm`.

    Args:
        input (Tensor): (*, *normalized_shape).
        normalized_shape (sequence of int): sizes of the dimensions to normalise over.
        weight (Tensor): of that shape. Default: None
        bias (Tensor): of that shape. Default: None
        eps (float): added to the variance. Default: 1e-5

    Example:
        >>> F.layer_norm(torch.tensor([1.0, 2.0, 3.0, 4.0]), (4,))
        tensor([-1.3416, -0.4472,  0.4472,  1.3416])
    """
    return rl.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divides by the root mean square over the last dimensions: y = x / sqrt(mean(x^2) + eps) * weight.

    Args:
        input (Tensor): (*, *normalized_shape).
        normalized_shape (sequence of int): sizes of the dimensions to normalise over.
        weight (Tensor): of that shape. Default: None
        eps (float): added to the mean square. Default: None, the machine epsilon of the type it computes in

    Example:
        >>> F.rms_norm(torch.tensor([3.0, 4.0]), (2,))
        tensor([0.8485, 1.1314])
    """
    if input.is_complex():
        dims = tuple(range(-len(normalized_shape), 0))
        eps = rl.finfo(input.dtype).eps if eps is None else eps
        out = input * (input * input).mean(dims, keepdim=True).add(eps).rsqrt()
        return out if weight is None else out * weight
    return rl.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Normalises groups of channels of each sample: y = (x - mean) / sqrt(var + eps) * weight + bias.

    Args:
        input (Tensor): (N, C, *).
        num_groups (int): number of groups, which divides C.
        weight (Tensor): (C,). Default: None
        bias (Tensor): (C,). Default: None
        eps (float): added to the variance. Default: 1e-5

    Example:
        >>> F.group_norm(torch.tensor([[1.0, 3.0, 5.0, 9.0]]), 2)
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = input.size()
    count = size[0] * size[1] // num_groups if num_groups else 0
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{[size[0] * size[1] // num_groups, num_groups, *size[2:]]}"
        )
    return rl.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divides by the mean square of neighbouring channels: y_c = x_c / (k + alpha mean_{c'} x_{c'}^2)^beta.

    Args:
        input (Tensor): (N, C, *), at least 3 dimensions.
        size (int): number of channels c' around c, absent ones counting as 0.
        alpha (float): factor of the mean square. Default: 1e-4
        beta (float): exponent. Default: 0.75
        k (float): what is added. Default: 1.0

    Example:
        >>> F.local_response_norm(torch.ones(1, 3, 1), 2, alpha=1.0).flatten()
        tensor([0.7378, 0.5946, 0.5946])
    """
    from rushlight.nn import functional as F

    ndim = input.dim()
    if ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {ndim} dimensions)"
        )
    if input.numel() == 0:
        return input
    # Channels become the second to last dimension of a image with one channel: a window of `size` of them.
    square = (input * input).unsqueeze(1).flatten(3) if ndim > 3 else (input * input).unsqueeze(1)
    square = F.pad(square, (0, 0, size // 2, (size - 1) // 2))
    mean = F.avg_pool2d(square, (size, 1), stride=1).squeeze(1).view(input.shape)
    return input / (mean * alpha + k).pow(beta)


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Scales vectors to length 1: y = x / max(||x||_p, eps) along dim.

    Args:
        input (Tensor): any shape.
        p (float): exponent of the norm. Default: 2.0
        dim (int): the dimension that holds the vectors. Default: 1
        eps (float): the least norm a vector is divided by. Default: 1e-12
        out (Tensor): where the result is written; not for inputs that require gradients. Default: None

    Example:
        >>> F.normalize(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000]])
    """
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps)
    if out is None:
        return input / norm.expand_as(input)
    return rl.div(input, norm.expand_as(input), out=out)
