"""Where PyTorch has the factorizations of low rank."""

from . import pca_lowrank as pca_lowrank
from . import svd_lowrank as svd_lowrank
from ._ops.lowrank import _basis


def get_approximate_basis(A, q, niter=2, M=None):
    """(..., m, q) orthonormal columns that span most of the range of A - M, by niter steps of subspace iteration."""
    return _basis(A if M is None else A - M, q, 2 if niter is None else niter)
