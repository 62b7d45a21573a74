"""Masked tensors from data and a mask."""

from rushlight._C import Tensor
from rushlight.masked.maskedtensor.core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor of copies of data and mask, which is a leaf of the graph.

    Args:
        data (Tensor): the elements.
        mask (Tensor): bool, of the same shape: True where an element has a value.
        requires_grad (bool): whether it asks for a gradient. Default: False

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")  # says that they are a prototype
        >>> x = torch.arange(3.0)
        >>> torch.masked.masked_tensor(x, x > 0)
        MaskedTensor(
          [      --,   1.0000,   2.0000]
        )
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor on the memory of data and mask; data gets its gradient.

    Args:
        data (Tensor): the elements.
        mask (Tensor): bool, of the same shape: True where an element has a value.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")  # says that they are a prototype
        >>> x = torch.arange(3.0)
        >>> torch.masked.as_masked_tensor(x, x > 0).sum().get_data()
        tensor(3.)
    """
    return MaskedTensor._from_values(data, mask)
