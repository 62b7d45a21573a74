"""Names of operators and methods that differ from the ops behind them."""

from .._C import Tensor
from .._core.methods import method


@method
def where(self, condition, other):
    """Its own elements where the condition is true, those of `other` elsewhere.

    Args:
        condition (Tensor): of bools; all broadcast.
        other (Tensor or Number): the other elements.

    Example:
        >>> torch.ones(2).where(torch.tensor([True, False]), 0.0)
        tensor([1., 0.])
    """
    return self._where_method(condition, other)


@method
def __div__(self, other):
    return self / other


@method
def __rdiv__(self, other):
    return other / self


@method
def __idiv__(self, other):
    return Tensor.__itruediv__(self, other)


@method
def __long__(self):
    return int(self)


@method
def __nonzero__(self):
    return bool(self)


@method
def const_data_ptr(self):
    """The address of the first element, for reading.

    Example:
        >>> x = torch.ones(1)
        >>> x.const_data_ptr() == x.data_ptr()
        True
    """
    return self.data_ptr()


def _warn_of_resize(name):
    import warnings

    warnings.warn(f"non-inplace {name} is deprecated", UserWarning, stacklevel=4)


@method
def resize(self, *sizes):
    """The elements in another shape of as many elements; reshape has replaced it.

    Args:
        sizes (int): of the result.

    Example:
        >>> torch.ones(4).reshape(2, 2).shape
        torch.Size([2, 2])
    """
    _warn_of_resize("resize")
    sizes = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    return _resized(self, sizes)


@method
def resize_as(self, tensor):
    """The elements in the shape of a tensor of as many elements; reshape has replaced it.

    Args:
        tensor (Tensor): whose shape is taken.

    Example:
        >>> torch.ones(4).reshape(torch.ones(2, 2).shape).shape
        torch.Size([2, 2])
    """
    _warn_of_resize("resize_as")
    return _resized(self, tuple(tensor.shape))


def _resized(tensor, sizes):
    count = 1
    for size in sizes:
        count *= size
    if count != tensor.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, sizes))} ({count} elements in total), but the given tensor has a "
            f"size of {'x'.join(map(str, tensor.shape))} ({tensor.numel()} elements). autograd's resize can only change "
            "the shape of a given tensor, while preserving the number of elements. "
        )
    return tensor.reshape(sizes)


@method
def _autocast_to_full_precision(self, cuda_enabled, cpu_enabled):
    """float32 instead of a smaller floating type, where autocast is on for the device."""
    return self.float() if cpu_enabled and self.dtype.is_floating_point and self.dtype.itemsize < 4 else self


@method
def _autocast_to_reduced_precision(self, cuda_enabled, cpu_enabled, cuda_dtype, cpu_dtype):
    """The smaller type instead of float32, where autocast is on for the device."""
    return (
        self.to(cpu_dtype)
        if cpu_enabled and self.dtype.is_floating_point and self.dtype.itemsize == 4
        else self
    )
