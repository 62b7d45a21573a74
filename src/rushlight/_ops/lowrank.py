"""A few of the largest singular values or eigenvalues."""

from __future__ import annotations

from rushlight._C import Tensor

from .. import _C
from .._core.compose import op
from ._arguments import takes

_ops = _C.ops


def _basis(A, q, niter):
    """An orthonormal (..., m, q) whose span nearly holds the largest singular vectors.

    By Halko, Martinsson and Tropp.
    """
    start = _ops["randn"](A.shape[-1], q, dtype=A.dtype, device=A.device)
    Q = _ops["linalg.qr"](A @ start).Q
    for _ in range(niter):
        Q = _ops["linalg.qr"](A.mH @ Q).Q
        Q = _ops["linalg.qr"](A @ Q).Q
    return Q


_MOST_ITERATIONS = 10_000  # the basis has long settled by then


@op()
@takes("A")
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of the q largest singular values of A - M, nearly: by iterations on a random subspace.

    Args:
        A (Tensor): (..., m, n), also sparse.
        q (int): a guess at the rank, not below it. Default: 6
        niter (int): how many iterations. Default: 2
        M (Tensor): what is taken from A; it broadcasts. Default: None

    Returns:
        tuple of Tensors: (..., m, q), (..., q) and (..., n, q).

    Example:
        >>> u, s, v = torch.svd_lowrank(torch.ones(4, 3), q=2)
        >>> u.shape, torch.allclose(s[0], torch.tensor(12.0).sqrt())
        (torch.Size([4, 2]), True)
    """
    if M is not None:
        A = A - M.expand_as(A)
    q = 6 if q is None else q
    niter = 2 if niter is None else niter
    if niter > _MOST_ITERATIONS:
        raise ValueError(f"niter(={niter}) must be at most {_MOST_ITERATIONS}")
    if A.shape[-2] < A.shape[-1]:
        V, S, U = _tall_svd(A.mH, q, niter)
        return U, S, V
    return _tall_svd(A, q, niter)


def _tall_svd(A, q, niter):
    Q = _basis(A, q, niter)
    U, S, Vh = _ops["linalg.svd"](Q.mH @ A, full_matrices=False)
    return Q @ U, S, Vh.mH


@op()
@takes("A")
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Principal components: the singular value decomposition of rows less their mean, nearly.

    Args:
        A (Tensor): (..., m, n), m samples of n values.
        q (int): how many components. Default: None, min(6, m, n)
        center (bool): whether the mean is taken from the rows. Default: True
        niter (int): how many iterations. Default: 2

    Returns:
        tuple of Tensors: U (..., m, q), S (..., q) and V (..., n, q), whose columns are the directions.

    Example:
        >>> u, s, v = torch.pca_lowrank(torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]), q=1)
        >>> v.abs()
        tensor([[0.7071],
                [0.7071]])
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not A.is_floating_point() and not A.is_complex():
        raise ValueError(f"input must be floating point or complex, got {A.dtype}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter=niter)


@op()
@takes("A")
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) eigenvalues of A x = w B x and their vectors.

    A is symmetric, B positive-definite. The matrices are dense, so the eigenvalues are found directly and
    exactly; the arguments that steer an iteration are accepted and need not be obeyed.

    Args:
        A (Tensor): (..., m, m).
        k (int): how many. Default: None, the width of X, or 1
        B (Tensor): (..., m, m). Default: None, the identity
        X (Tensor): (..., m, n), first vectors, of which the width counts. Default: None
        n, iK, niter, tol, method, tracker, ortho_iparams, ortho_fparams, ortho_bparams: of the iteration.
        largest (bool): whether the largest are asked for. Default: None, True

    Returns:
        tuple of Tensors: (..., k) and (..., m, k).

    Example:
        >>> values, vectors = torch.lobpcg(torch.diag(torch.tensor([1.0, 2.0, 3.0, 4.0])), k=1)
        >>> values
        tensor([4.])
    """
    if A.shape[-2] != A.shape[-1]:
        raise ValueError(f"lobpcg: A must be square, got shape {list(A.shape)}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    if m < 3 * (k if n is None else n):
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the "
            f"number of requested eigenpairs (={k})"
        )
    A = (A + A.mH) / 2  # both triangles take part, so that both get their gradient
    if B is None:
        values, vectors = _ops["linalg.eigh"](A)
    else:
        factor = _ops["linalg.cholesky"](B)
        half = _ops["linalg.solve_triangular"](factor, A, upper=False)
        reduced = _ops["linalg.solve_triangular"](factor.mH, half, upper=True, left=False)
        values, vectors = _ops["linalg.eigh"](reduced)
        vectors = _ops["linalg.solve_triangular"](factor.mH, vectors, upper=True)
    if largest is None or largest:
        return values.flip(-1)[..., :k], vectors.flip(-1)[..., :k]
    return values[..., :k], vectors[..., :k]
