"""Layouts of convolution weights. Kernels here take any strides; this changes the layout only."""

from rushlight.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, memory_format, kinds):
    if isinstance(module, kinds):
        module.weight.data = module.weight.detach().clone(memory_format=memory_format)
    for child in module.children():
        _convert(child, memory_format, kinds)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Stores the weights of all 2-d convolutions of a model in another memory format; results stay the same.

    Args:
        module (Module): changed in place and returned.
        memory_format (memory_format): torch.channels_last, usually.

    Example:
        >>> conv = nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(8, 4, 3), torch.channels_last)
        >>> conv.weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format):
    """Stores the weights of all 3-d convolutions of a model in another memory format; results stay the same.

    Args:
        module (Module): changed in place and returned.
        memory_format (memory_format): torch.channels_last_3d, usually.

    Example:
        >>> conv = nn.utils.convert_conv3d_weight_memory_format(nn.Conv3d(8, 4, 3), torch.channels_last_3d)
        >>> conv.weight.is_contiguous(memory_format=torch.channels_last_3d)
        True
    """
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
