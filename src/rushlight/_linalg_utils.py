"""torch._linalg_utils: products that take None for the identity, which tools around eigenvalues are written with."""

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


def is_sparse(A):
    """Whether A is a sparse tensor by coordinates."""
    if isinstance(A, rl.Tensor):
        return A.layout is rl.sparse_coo
    raise TypeError(f"expected Tensor but got {type(A)}")


def get_floating_dtype(A):
    """The type of A, or float32 for integers."""
    return A.dtype if A.dtype in (rl.float16, rl.float32, rl.float64) else rl.float32


def matmul(A, B):
    """A B; A may be None, for the identity, or sparse."""
    if A is None:
        return B
    return rl.sparse.mm(A, B) if is_sparse(A) else rl.matmul(A, B)


def bform(X, A, Y):
    """X^T A Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A, S):
    """S^T A S."""
    return bform(S, A, S)


def basis(A):
    """An orthogonal basis of the columns of A."""
    return rl.linalg.qr(A).Q


def symeig(A, largest=False):
    """(eigenvalues, eigenvectors) of a symmetric matrix, in ascending order unless the largest are to come first."""
    E, Z = rl.linalg.eigh(A, UPLO="U")
    return (E.flip(-1), Z.flip(-1)) if largest else (E, Z)


__getattr__ = _unsupported_attribute(__name__)
