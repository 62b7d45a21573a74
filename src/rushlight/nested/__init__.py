"""Nested tensors: batches of sequences of different lengths, without padding."""

from rushlight._C import Tensor as Tensor
from rushlight.nested._make import as_nested_tensor as as_nested_tensor
from rushlight.nested._make import masked_select as masked_select
from rushlight.nested._make import narrow as narrow
from rushlight.nested._make import nested_tensor as nested_tensor
from rushlight.nested._make import nested_tensor_from_jagged as nested_tensor_from_jagged
from rushlight.nested._make import to_padded_tensor as to_padded_tensor

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor",
]  # fmt: skip

for _function in (
    as_nested_tensor, masked_select, narrow, nested_tensor, nested_tensor_from_jagged, to_padded_tensor,
):  # fmt: skip
    _function.__module__ = "rushlight.nested"

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
