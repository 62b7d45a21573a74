"""Sparse tensors in coordinate form (COO), composed of dense ops, differentiable through their values."""

from rushlight.sparse._coo import SparseTensor as SparseTensor
from rushlight.sparse._coo import sparse_coo_tensor as sparse_coo_tensor
from rushlight.sparse._csr import SparseCsrTensor as SparseCsrTensor
from rushlight.sparse._csr import sampled_addmm as sampled_addmm
from rushlight.sparse._csr import sparse_csr_tensor as sparse_csr_tensor
from rushlight.sparse._functions import addmm as addmm
from rushlight.sparse._functions import log_softmax as log_softmax
from rushlight.sparse._functions import mm as mm
from rushlight.sparse._functions import softmax as softmax
from rushlight.sparse._functions import spmm as spmm
from rushlight.sparse._functions import sum as sum
from rushlight.sparse._legacy import DoubleTensor as DoubleTensor
from rushlight.sparse._legacy import FloatTensor as FloatTensor
from rushlight.sparse._legacy import IntTensor as IntTensor
from rushlight.sparse._legacy import LongTensor as LongTensor

__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "sum"]


class HalfTensor:
    """The old name of sparse half tensors, for isinstance."""


BFloat16Tensor = HalfTensor


from rushlight._missing import teach as _teach  # noqa: E402

__getattr__ = _teach(__name__)
