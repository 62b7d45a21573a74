"""Tensors with a mask: elements where it is False have no value, and ops leave them out."""

from rushlight.masked.maskedtensor.core import MaskedTensor as MaskedTensor
from rushlight.masked.maskedtensor.core import is_masked_tensor as is_masked_tensor
