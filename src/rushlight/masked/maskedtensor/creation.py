"""Masked tensors from data and a mask."""

from rushlight._C import Tensor
from rushlight.masked.maskedtensor.core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor of copies of data and mask, which is a leaf of the graph."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor on the memory of data and mask; data gets its gradient."""
    return MaskedTensor._from_values(data, mask)
