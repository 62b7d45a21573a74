"""Batch normalisation folded into the layer before it, for inference."""

from __future__ import annotations

import copy
from typing import Any

import rushlight as rl
from rushlight.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check(layer: rl.nn.Module, bn: rl.nn.Module) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def fuse_conv_bn_weights(
    conv_w: rl.Tensor,
    conv_b: rl.Tensor | None,
    bn_rm: rl.Tensor,
    bn_rv: rl.Tensor,
    bn_eps: float,
    bn_w: rl.Tensor | None,
    bn_b: rl.Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Computes the parameters of a convolution that includes the batch norm after it: W' = W s, b' = (b - mean) s + bn_b.

    s = bn_w / sqrt(var + eps), per output channel.

    Args:
        conv_w (Tensor): W.
        conv_b (Tensor): b, or None.
        bn_rm (Tensor): running mean.
        bn_rv (Tensor): running variance.
        bn_eps (float): eps of the batch norm.
        bn_w (Tensor): its weight, or None.
        bn_b (Tensor): its bias, or None.
        transpose (bool): the convolution is transposed, its channels dimension 1. Default: False

    Returns:
        (weight, bias), two parameters.

    Example:
        >>> one = torch.ones(1)
        >>> w, b = nn.utils.fuse_conv_bn_weights(torch.ones(1, 1, 1), None, one, 3 * one, 1.0, one, one)
        >>> w.item(), b.item()
        (0.5, 0.5)
    """
    conv_b = rl.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = rl.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = rl.zeros_like(bn_rm) if bn_b is None else bn_b
    scale = bn_w * rl.rsqrt(bn_rv + bn_eps)
    shape = [1, -1] if transpose else [-1, 1]
    weight = (conv_w * scale.reshape(shape + [1] * (conv_w.dim() - 2))).to(conv_w.dtype)
    bias = ((conv_b - bn_rm) * scale + bn_b).to(conv_b.dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Returns a copy of a convolution that includes the batch norm after it, for faster prediction.

    Args:
        conv (Module): a convolution, in evaluation mode.
        bn (Module): the batch norm, in evaluation mode, with running statistics.
        transpose (bool): the convolution is transposed. Default: False

    Example:
        >>> conv, bn = nn.Conv2d(3, 8, 3).eval(), nn.BatchNorm2d(8).eval()
        >>> x, fused = torch.randn(1, 3, 5, 5), nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> bool(torch.allclose(fused(x), bn(conv(x)), atol=1e-5))
        True
    """
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion needs the running statistics of the batch normalisation")
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: rl.Tensor,
    linear_b: rl.Tensor | None,
    bn_rm: rl.Tensor,
    bn_rv: rl.Tensor,
    bn_eps: float,
    bn_w: rl.Tensor,
    bn_b: rl.Tensor,
) -> tuple[Parameter, Parameter]:
    """Computes the parameters of a linear layer that includes the batch norm after it: W' = W s, b' = (b - mean) s + bn_b.

    s = bn_w / sqrt(var + eps), per output.

    Args:
        linear_w (Tensor): W.
        linear_b (Tensor): b, or None.
        bn_rm (Tensor): running mean.
        bn_rv (Tensor): running variance.
        bn_eps (float): eps of the batch norm.
        bn_w (Tensor): its weight.
        bn_b (Tensor): its bias.

    Returns:
        (weight, bias), two parameters.

    Example:
        >>> one = torch.ones(1)
        >>> w, b = nn.utils.fuse_linear_bn_weights(torch.ones(1, 1), None, one, 3 * one, 1.0, one, one)
        >>> w.item(), b.item()
        (0.5, 0.5)
    """
    linear_b = rl.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * rl.rsqrt(bn_rv + bn_eps)
    weight = (linear_w * scale.unsqueeze(-1)).to(linear_w.dtype)
    bias = ((linear_b - bn_rm) * scale + bn_b).to(linear_b.dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, linear_b.requires_grad)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Returns a copy of a linear layer that includes the batch norm after it, for faster prediction.

    Args:
        linear (Module): a linear layer, in evaluation mode.
        bn (Module): the batch norm, in evaluation mode, with running statistics.

    Example:
        >>> linear, bn = nn.Linear(3, 8).eval(), nn.BatchNorm1d(8).eval()
        >>> x, fused = torch.randn(2, 3), nn.utils.fuse_linear_bn_eval(linear, bn)
        >>> bool(torch.allclose(fused(x), bn(linear(x)), atol=1e-5))
        True
    """
    _check(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
