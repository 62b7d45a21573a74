"""Sparse tensors by coordinates (COO) and by compressed rows or columns (CSR, CSC): composed of dense ops,
differentiable through their values."""

from rushlight.sparse._coo import SparseTensor as SparseTensor
from rushlight.sparse._coo import sparse_coo_tensor as sparse_coo_tensor
from rushlight.sparse._compressed import SparseCscTensor as SparseCscTensor
from rushlight.sparse._compressed import SparseCsrTensor as SparseCsrTensor
from rushlight.sparse._compressed import sparse_bsc_tensor as sparse_bsc_tensor
from rushlight.sparse._compressed import sparse_bsr_tensor as sparse_bsr_tensor
from rushlight.sparse._compressed import sparse_compressed_tensor as sparse_compressed_tensor
from rushlight.sparse._compressed import sparse_csc_tensor as sparse_csc_tensor
from rushlight.sparse._compressed import sparse_csr_tensor as sparse_csr_tensor
from rushlight.sparse._gradcheck import as_sparse_gradcheck as as_sparse_gradcheck
from rushlight.sparse._functions import log_softmax as log_softmax
from rushlight.sparse._functions import softmax as softmax
from rushlight.sparse._functions import sum as sum
from rushlight.sparse._invariants import check_sparse_tensor_invariants as check_sparse_tensor_invariants
from rushlight.sparse._legacy import DoubleTensor as DoubleTensor
from rushlight.sparse._legacy import FloatTensor as FloatTensor
from rushlight.sparse._legacy import IntTensor as IntTensor
from rushlight.sparse._legacy import LongTensor as LongTensor
from rushlight.sparse._matmul import addmm as addmm
from rushlight.sparse._matmul import hspmm as hspmm
from rushlight.sparse._matmul import mm as mm
from rushlight.sparse._matmul import sampled_addmm as sampled_addmm
from rushlight.sparse._matmul import smm as smm
from rushlight.sparse._matmul import spdiags as spdiags
from rushlight.sparse._matmul import spmm as spmm
from rushlight.sparse._matmul import sspaddmm as sspaddmm

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum",
]  # fmt: skip


class HalfTensor:
    """The old name of sparse half tensors, for isinstance."""


BFloat16Tensor = HalfTensor


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
