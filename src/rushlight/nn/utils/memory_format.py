"""Layouts of convolution weights. Kernels here take any strides; this changes the layout only."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from rushlight.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, memory_format: rl.memory_format, kinds: Any) -> Any:
    if isinstance(module, kinds):
        module.weight.data = module.weight.detach().clone(memory_format=memory_format)
    for child in module.children():
        _convert(child, memory_format, kinds)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: rl.memory_format) -> Module:
    """Stores the weights of all 2-d convolutions of a model in another memory format; results stay the same.

    Args:
        module (Module): changed in place and returned.
        memory_format (memory_format): torch.channels_last, usually.

    Example:
        >>> conv = nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(8, 4, 3), torch.channels_last)
        >>> conv.weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    result: Module = _convert(module, memory_format, (Conv2d, ConvTranspose2d))
    return result


def convert_conv3d_weight_memory_format(module: Module, memory_format: rl.memory_format) -> Module:
    """Stores the weights of all 3-d convolutions of a model in another memory format; results stay the same.

    Args:
        module (Module): changed in place and returned.
        memory_format (memory_format): torch.channels_last_3d, usually.

    Example:
        >>> conv = nn.utils.convert_conv3d_weight_memory_format(nn.Conv3d(8, 4, 3), torch.channels_last_3d)
        >>> conv.weight.is_contiguous(memory_format=torch.channels_last_3d)
        True
    """
    result: Module = _convert(module, memory_format, (Conv3d, ConvTranspose3d))
    return result
