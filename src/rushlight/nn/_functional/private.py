"""Functions of layers that PyTorch keeps private and packages call: paddings by kind, masked softmax, batch statistics."""

from typing import Any

import rushlight as rl
from rushlight._core.compose import public
from rushlight.nn import functional as F


def _padding(n: int, mode: str) -> Any:
    def pad(input: Any, padding: Any) -> Any:
        if len(padding) != 2 * n:
            raise RuntimeError(f"padding size is expected to be {2 * n}, but got: {len(padding)}")
        return F.pad(input, list(padding), mode=mode)

    return pad


replication_pad1d, replication_pad2d, replication_pad3d = (_padding(n, "replicate") for n in (1, 2, 3))
reflection_pad1d, reflection_pad2d, reflection_pad3d = (_padding(n, "reflect") for n in (1, 2, 3))


def slow_conv3d(
    input: Any, weight: Any, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0
) -> Any:
    """conv3d without groups and dilation; kernel_size must be that of the weight."""
    sizes = (kernel_size,) * 3 if isinstance(kernel_size, int) else tuple(kernel_size)
    if weight.dim() not in (2, 5) or (weight.dim() == 5 and tuple(weight.shape[2:]) != sizes):
        raise RuntimeError(
            f"slow_conv3d: expected a weight of 5 dimensions with kernel_size {sizes}, got shape {list(weight.shape)}"
        )
    return F.conv3d(input, weight, bias, stride, padding)


def thnn_conv2d(
    input: Any, weight: Any, kernel_size: Any, bias: Any = None, stride: Any = (1, 1), padding: Any = (0, 0)
) -> Any:
    """conv2d without groups and dilation; a weight of two dimensions is a matrix of flattened filters."""
    for name, sizes in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding)):
        if not isinstance(sizes, int) and len(sizes) != 2:
            raise RuntimeError(f"2D {name} expected, got {list(sizes)}")
    if weight.dim() == 2:
        sizes = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
        weight = weight.view(weight.shape[0], -1, *sizes)
    return F.conv2d(input, weight, bias, stride, padding)


_slow_conv2d_forward = thnn_conv2d


def gelu_(input: Any, *, approximate: str = "none") -> Any:
    """gelu in place."""
    kept = input.clone() if rl.is_grad_enabled() and input.requires_grad else input
    return rl._C.ops["_assign"]("gelu_", input, F.gelu(kept, approximate=approximate))


def _masked_softmax(input: Any, mask: Any, dim: int | None = None, mask_type: int | None = None) -> Any:
    """softmax along dim (the last one by default) over the elements whose mask is False; 0 elsewhere.

    Args:
        mask_type: 0 for a mask (L, L) of every sample and head, 1 for (B, L) of every head and row, 2 for one like the input.
    """
    if mask.dtype != rl.bool:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask.dim() != input.dim() and mask_type == 1:
        mask = mask.view(mask.shape[0], *(1,) * (input.dim() - 2), mask.shape[1])
    mask = mask.expand(input.shape)
    # The lowest number rather than -inf: rows without elements have no NaN, here and in their gradient.
    lowest = rl.finfo(input.dtype).min
    return input.masked_fill(mask, lowest).softmax(-1 if dim is None else dim).masked_fill(mask, 0.0)


@public
def batch_norm_update_stats(
    input: Any, running_mean: Any, running_var: Any, momentum: float
) -> tuple[Any, Any]:
    """Computes the means and (biased) variances of the channels of a batch, and moves the running ones towards them.

    Args:
        input (Tensor): (N, C, *), not empty.
        running_mean (Tensor): (C,), updated in place, or None.
        running_var (Tensor): (C,), updated in place with unbiased variances, or None.
        momentum (float): how far the running ones move.

    Returns:
        (means, variances), each (C,)

    Example:
        >>> torch.batch_norm_update_stats(torch.tensor([[1.0], [3.0]]), torch.zeros(1), torch.ones(1), 0.1)
        (tensor([2.]), tensor([1.]))
    """
    if input.numel() == 0:
        raise RuntimeError(
            f"input tensor must have at least one element, but got input_sizes = {list(input.shape)}"
        )
    dims = [d for d in range(input.dim()) if d != 1]
    with rl.no_grad():
        var, mean = rl.var_mean(input, dims, correction=0)
        count = input.numel() // input.shape[1]
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        if running_var is not None:
            unbiased = var * (count / (count - 1)) if count > 1 else var * float("nan")
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return mean, var
