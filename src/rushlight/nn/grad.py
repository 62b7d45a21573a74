"""Gradients of convolutions as functions of their own."""

import rushlight as rl
from rushlight.nn import functional as F
from rushlight.nn.modules.utils import _ntuple


def _input(n, input_size, weight, grad_output, stride, padding, dilation, groups):
    each = _ntuple(n)
    with rl.enable_grad():
        x = rl.zeros(input_size, dtype=grad_output.dtype, device=grad_output.device, requires_grad=True)
        y = getattr(F, f"conv{n}d")(x, weight, None, each(stride), each(padding), each(dilation), groups)
    return rl.autograd.grad(
        y, x, grad_output, create_graph=rl.is_grad_enabled() and grad_output.requires_grad
    )[0]


def _weight(n, input, weight_size, grad_output, stride, padding, dilation, groups):
    each = _ntuple(n)
    with rl.enable_grad():
        w = rl.zeros(weight_size, dtype=grad_output.dtype, device=grad_output.device, requires_grad=True)
        y = getattr(F, f"conv{n}d")(input, w, None, each(stride), each(padding), each(dilation), groups)
    return rl.autograd.grad(
        y, w, grad_output, create_graph=rl.is_grad_enabled() and grad_output.requires_grad
    )[0]


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv1d with respect to its input."""
    return _input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv1d with respect to its weight."""
    return _weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv2d with respect to its input."""
    return _input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv2d with respect to its weight."""
    return _weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv3d with respect to its input."""
    return _input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv3d with respect to its weight."""
    return _weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
