"""Convolutions whose taps are moved."""

import math

import rushlight as rl
from rushlight import nn
from rushlight.nn.modules.utils import _pair


def deform_conv2d(
    input, offset, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), mask=None
):
    """A convolution whose taps, at each position of the result, are moved by `offset` (N, 2 * groups * kh * kw,
    oh, ow), rows before columns, each weighted by `mask` (N, groups * kh * kw, oh, ow) (Dai et al., 2017; Zhu et al., 2018).
    """
    (sh, sw), (ph, pw), (dh, dw) = _pair(stride), _pair(padding), _pair(dilation)
    n, channels, h, w = input.shape
    out_channels, per_group, kh, kw = weight.shape
    taps = kh * kw
    oh, ow = (h + 2 * ph - dh * (kh - 1) - 1) // sh + 1, (w + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    groups = offset.shape[1] // (2 * taps)
    if groups == 0 or tuple(offset.shape) != (n, 2 * groups * taps, oh, ow):
        raise RuntimeError(
            "the shape of the offset tensor at dimension 1 is not valid. It should be a multiple of 2 * weight.size[2] * "
            f"weight.size[3], and the rest ({n}, ..., {oh}, {ow}). Got {tuple(offset.shape)}"
        )
    if channels % groups or channels % per_group:
        raise RuntimeError(
            f"{channels} channels do not divide into {groups} groups of offsets and of {per_group} channels"
        )
    if mask is not None and tuple(mask.shape) != (n, groups * taps, oh, ow):
        raise RuntimeError(
            f"mask.shape[1] is not valid: got: {mask.shape[1]} expected: {groups * taps}, of a mask "
            f"({n}, {groups * taps}, {oh}, {ow}). Got {tuple(mask.shape)}"
        )
    moved = offset.view(n, groups, taps, 2, oh, ow)
    like = {"dtype": input.dtype, "device": input.device}
    tap = rl.arange(taps, device=input.device)
    rows = (tap // kw * dh - ph).to(input.dtype).view(-1, 1, 1) + (rl.arange(oh, **like) * sh).view(1, -1, 1)
    columns = (tap % kw * dw - pw).to(input.dtype).view(-1, 1, 1) + (rl.arange(ow, **like) * sw).view(
        1, 1, -1
    )
    y, x = moved[:, :, :, 0] + rows, moved[:, :, :, 1] + columns  # (n, groups, taps, oh, ow)
    grid = rl.stack(((2 * x + 1) / w - 1, (2 * y + 1) / h - 1), dim=-1).view(n * groups, taps * oh, ow, 2)
    maps = input.reshape(n * groups, channels // groups, h, w)
    seen = nn.functional.grid_sample(maps, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    seen = seen.view(n, groups, channels // groups, taps, oh, ow)
    if mask is not None:
        seen = seen * mask.view(n, groups, 1, taps, oh, ow)
    weight_groups = channels // per_group
    seen = seen.reshape(n, weight_groups, per_group * taps, oh * ow)
    filters = weight.reshape(weight_groups, out_channels // weight_groups, per_group * taps)
    out = rl.matmul(filters, seen).view(n, out_channels, oh, ow)
    return out if bias is None else out + bias.view(1, -1, 1, 1)


class DeformConv2d(nn.Module):
    """`deform_conv2d` with weights of its own."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True
    ):
        super().__init__()
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups != 0:
                raise ValueError(f"{name} must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        pairs = map(_pair, (kernel_size, stride, padding, dilation))
        self.kernel_size, self.stride, self.padding, self.dilation = pairs
        self.weight = nn.Parameter(rl.empty(out_channels, in_channels // groups, *self.kernel_size))
        if bias:
            self.bias = nn.Parameter(rl.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input, offset, mask=None):
        return deform_conv2d(
            input, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask
        )
