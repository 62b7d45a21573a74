"""Gradients of convolutions as functions of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight.nn import functional as F
from rushlight.nn.modules import _doc
from rushlight.nn.modules.utils import _ntuple

_INPUT_DOC = """Computes the gradient of `conv{n}d` with respect to its input.

Args:
    input_size (sequence of int): shape of the input, (N, C_in, {L}).
    weight (Tensor): (C_out, C_in / groups, {k}).
    grad_output (Tensor): gradient of the output, (N, C_out, {Lo}).
    stride ({ints}): as for the convolution. Default: 1
    padding ({ints}): likewise. Default: 0
    dilation ({ints}): likewise. Default: 1
    groups (int): likewise. Default: 1

Example:
    >>> nn.grad.conv{n}d_input({x}, torch.ones({one}), torch.ones({x})).sum()
    tensor(4.)
"""
_WEIGHT_DOC = """Computes the gradient of `conv{n}d` with respect to its weight.

Args:
    input (Tensor): (N, C_in, {L}).
    weight_size (sequence of int): shape of the weight, (C_out, C_in / groups, {k}).
    grad_output (Tensor): gradient of the output, (N, C_out, {Lo}).
    stride ({ints}): as for the convolution. Default: 1
    padding ({ints}): likewise. Default: 0
    dilation ({ints}): likewise. Default: 1
    groups (int): likewise. Default: 1

Example:
    >>> nn.grad.conv{n}d_weight(torch.ones({x}), {one}, torch.ones({x})).flatten()
    tensor([4.])
"""


def _described(template: str, n: int) -> Callable[[_doc._T], _doc._T]:
    """`_doc.documented` with the sizes of the example: a row of four elements and a filter of one."""
    return _doc.documented(template, n, x=(1,) * (n + 1) + (4,), one=(1,) * (n + 2))


def _input(
    n: int,
    input_size: Sequence[int],
    weight: rl.Tensor,
    grad_output: rl.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> rl.Tensor:
    each = _ntuple(n)
    with rl.enable_grad():
        x = rl.zeros(input_size, dtype=grad_output.dtype, device=grad_output.device, requires_grad=True)
        y = getattr(F, f"conv{n}d")(x, weight, None, each(stride), each(padding), each(dilation), groups)
    return rl.autograd.grad(
        y, x, grad_output, create_graph=rl.is_grad_enabled() and grad_output.requires_grad
    )[0]


def _weight(
    n: int,
    input: rl.Tensor,
    weight_size: Sequence[int],
    grad_output: rl.Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> rl.Tensor:
    each = _ntuple(n)
    with rl.enable_grad():
        w = rl.zeros(weight_size, dtype=grad_output.dtype, device=grad_output.device, requires_grad=True)
        y = getattr(F, f"conv{n}d")(input, w, None, each(stride), each(padding), each(dilation), groups)
    return rl.autograd.grad(
        y, w, grad_output, create_graph=rl.is_grad_enabled() and grad_output.requires_grad
    )[0]


@_described(_INPUT_DOC, 1)
def conv1d_input(
    input_size: Sequence[int],
    weight: rl.Tensor,
    grad_output: rl.Tensor,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> rl.Tensor:
    return _input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


@_described(_WEIGHT_DOC, 1)
def conv1d_weight(
    input: rl.Tensor,
    weight_size: Sequence[int],
    grad_output: rl.Tensor,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> rl.Tensor:
    return _weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


@_described(_INPUT_DOC, 2)
def conv2d_input(
    input_size: Sequence[int],
    weight: rl.Tensor,
    grad_output: rl.Tensor,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> rl.Tensor:
    return _input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


@_described(_WEIGHT_DOC, 2)
def conv2d_weight(
    input: rl.Tensor,
    weight_size: Sequence[int],
    grad_output: rl.Tensor,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> rl.Tensor:
    return _weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


@_described(_INPUT_DOC, 3)
def conv3d_input(
    input_size: Sequence[int],
    weight: rl.Tensor,
    grad_output: rl.Tensor,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> rl.Tensor:
    return _input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


@_described(_WEIGHT_DOC, 3)
def conv3d_weight(
    input: rl.Tensor,
    weight_size: Sequence[int],
    grad_output: rl.Tensor,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> rl.Tensor:
    return _weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
