"""Reductions and normalisations that leave out elements, and tensors that carry the mask with them (maskedtensor)."""

# ruff: noqa: F401
from rushlight.masked._masks import (
    _canonical_dim, _combine_input_and_mask, _input_mask, _output_mask, _reduction_identity, _where,
)  # fmt: skip
from rushlight.masked._ops import (
    amax, amin, argmax, argmin, cumprod, cumsum, log_softmax, logaddexp, logsumexp, mean, median, norm, normalize,
    prod, softmax, softmin, std, sum, var,
)  # fmt: skip
from rushlight.masked.maskedtensor.core import MaskedTensor, is_masked_tensor
from rushlight.masked.maskedtensor.creation import as_masked_tensor, masked_tensor

__all__ = [
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor",
    "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax",
    "softmin", "std", "sum", "var",
]  # fmt: skip
