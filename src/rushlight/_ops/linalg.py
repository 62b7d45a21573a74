"""Linear algebra composed of decompositions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight._C import dtype

from .. import _C
from .._core.compose import op
from ._arguments import takes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


_ops = _C.ops
Tensor = _C.Tensor


def _check_matrix(name, A):
    if A.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")


def _check_square(name, A):
    _check_matrix(name, A)
    if A.shape[-1] != A.shape[-2]:
        m, n = A.shape[-2:]
        raise RuntimeError(f"{name}: A must be batches of square matrices, but they are {m} by {n} matrices")


def _check_float(name, A):
    if not (A.is_floating_point() or A.is_complex()):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype}")


def _wrap(dim, ndim):
    if not -ndim <= dim < ndim:
        span = f"[{-ndim}, {ndim - 1}]"
        raise IndexError(f"Dimension out of range (expected to be in range of {span}, but got {dim})")
    return dim % ndim


@op(name="linalg.matrix_norm", out="exact")
@takes("input")
def matrix_norm(
    input: Tensor,
    ord: float | str = "fro",
    dim: int | Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
) -> Tensor:
    """A norm of each matrix.

    Args:
        input (Tensor): (..., m, n).
        ord (Number or str): 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2. Default: 'fro'
        dim (pair of ints): the dimensions of the matrices. Default: (-2, -1)
        keepdim (bool): whether these stay, with size 1. Default: False
        dtype (dtype): to compute in. Default: None

    Example:
        >>> torch.linalg.matrix_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(5.)
    """
    _check_matrix("linalg.matrix_norm", input)
    _check_float("linalg.matrix_norm", input)
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim}")
    n = input.dim()
    rows, cols = _wrap(dim[0], n), _wrap(dim[1], n)
    if rows == cols:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if dtype is not None:
        input = input.to(dtype)
    order: Any = ord
    if isinstance(order, str):
        if order == "fro":
            return _ops["linalg.vector_norm"](input, 2, (rows, cols), keepdim)
        if order != "nuc":
            raise RuntimeError(f"linalg.matrix_norm: Order {order} not supported.")
    elif isinstance(order, complex):
        raise RuntimeError("linalg.matrix_norm: Expected a non-complex scalar as the order of norm.")
    elif abs(order) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {order} not supported.")
    if order == "nuc" or abs(order) == 2:
        values = _ops["linalg.svdvals"](input.movedim((rows, cols), (-2, -1)))
        empty = values.shape[-1] == 0 and order != "nuc" and order > 0  # the largest of no values
        result = (
            values.sum(-1) if order == "nuc" or empty else values.amax(-1) if order > 0 else values.amin(-1)
        )
    else:
        if abs(order) == math.inf:
            rows, cols = cols, rows
        sums = input.abs().sum(rows, keepdim=True)
        if sums.shape[cols] == 0 and order > 0:  # the largest of no sums
            result = sums.sum(cols, keepdim=True)
        else:
            result = sums.amax(cols, keepdim=True) if order > 0 else sums.amin(cols, keepdim=True)
        result = result.squeeze((rows, cols))
    if not keepdim:
        return result
    for d in sorted((rows, cols)):
        result = result.unsqueeze(d)
    return result


@op(name="linalg.norm", out=True)
@takes("input")
def linalg_norm(
    input: Tensor,
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
) -> Tensor:
    """The norm of vectors or matrices, by the number of dimensions.

    Args:
        input (Tensor): what it is taken of.
        ord (Number or str): of vector_norm or matrix_norm. Default: None, the root of the sum of squares
        dim (int or pair of ints): of vectors, or of matrices. Default: None, all
        keepdim (bool): whether these stay, with size 1. Default: False
        dtype (dtype): to compute in. Default: None

    Example:
        >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
        tensor(5.)
    """
    if ord is not None and dim is None and input.dim() not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.dim()}D."
        )
    count = input.dim() if dim is None else 1 if isinstance(dim, int) else len(dim)
    if dim is not None and ord is not None and count not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")  # type: ignore[arg-type]
    if ord is not None and count == 2:
        return matrix_norm(input, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise RuntimeError(
            f"linalg.matrix_norm: The input tensor A must have at least 2 dimensions for the order {ord!r}, got {count}"
        )
    return _ops["linalg.vector_norm"](input, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@op(out=True)
@takes("input")
def nuclear_norm(input: Tensor, dim: int | Sequence[int] = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values of each matrix.

    Args:
        input (Tensor): matrices.
        dim (sequence of ints): the two dimensions of the matrices. Default: the only ones
        keepdim (bool): whether these stay, with size 1. Default: False

    Example:
        >>> torch.nuclear_norm(torch.tensor([[3.0, 0.0], [0.0, -4.0]]))
        tensor(7.)
    """
    return matrix_norm(input, "nuc", dim, keepdim)


@op(out=True)
@takes("input")
def frobenius_norm(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Tensor:
    """The square root of the sum of squares.

    Args:
        input (Tensor): what it is taken of.
        dim (int or sequence of ints): the dimensions that are reduced. Default: (), all
        keepdim (bool): whether these stay, with size 1. Default: False

    Example:
        >>> torch.frobenius_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]), (0, 1))
        tensor(5.)
    """
    return _ops["linalg.vector_norm"](input, 2, dim or None, keepdim)


@op(name="linalg.cond", out=True)
@takes("input")
def cond(input: Tensor, p: complex | str | None = None) -> Tensor:
    """The condition number of each matrix: how much A and its inverse together can scale a vector.

    Args:
        input (Tensor): (..., m, n); (..., n, n) for norms but 2 and -2.
        p (Number or str): of the matrix norm. Default: None, 2

    Example:
        >>> torch.linalg.cond(torch.diag(torch.tensor([4.0, 2.0])))
        tensor(2.)
    """
    _check_matrix("linalg.cond", input)
    _check_float("linalg.cond", input)
    if p is None or p in (2, -2):
        values = _ops["linalg.svdvals"](input)
        if values.numel() == 0:
            return values.new_zeros(input.shape[:-2])
        large, small = values[..., 0], values[..., -1]
        return small / large if p == -2 else large / small
    _check_square("linalg.cond", input)
    if (
        not isinstance(p, str)
        and abs(p) not in (1, math.inf)
        or isinstance(p, str)
        and p not in ("fro", "nuc")
    ):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if input.numel() == 0:
        return input.abs().new_zeros(input.shape[:-2])
    inverse, info = _ops["linalg.inv_ex"](input)
    result = matrix_norm(input, p) * matrix_norm(inverse, p)
    singular = (info != 0) | result.isnan()  # without an inverse
    return result.masked_fill(singular, math.inf) if input.is_meta or bool(singular.any()) else result


@op(name="linalg.matrix_rank", out=True)
@takes("input")
def matrix_rank(
    input: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | float | None = None,
    rtol: Tensor | float | None = None,
) -> Tensor:
    """The number of singular values above a tolerance.

    Args:
        input (Tensor): (..., m, n).
        tol (float or Tensor): an old name of atol. Default: None
        hermitian (bool): whether matrices are symmetric (Hermitian), whose eigenvalues count. Default: False
        atol (float or Tensor): the tolerance. Default: None, 0
        rtol (float or Tensor): a part of the largest singular value. Default: None, eps * max(m, n) without atol

    Example:
        >>> torch.linalg.matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1)
    """
    _check_matrix("linalg.matrix_rank", input)
    if isinstance(tol, bool):  # matrix_rank(A, hermitian)
        tol, hermitian = None, tol
    if tol is not None:
        atol, rtol = tol, 0.0
    if hermitian:
        _check_square("linalg.matrix_rank", input)
    for name, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, Tensor) and value.is_complex():
            raise RuntimeError(
                f"linalg.matrix_rank: {name} tensor of complex type is not supported. Got {value.dtype}"
            )
    values = (
        _ops["linalg.eigvalsh"](input.detach()).abs() if hermitian else _ops["linalg.svdvals"](input.detach())
    )
    if values.numel() == 0:
        return _ops["zeros"](input.shape[:-2], dtype=_C.int64, device=input.device)
    largest = values.amax(-1)
    if rtol is None:
        default = _epsilon(values.dtype) * max(input.shape[-1], input.shape[-2])
        if isinstance(atol, Tensor):
            rtol = _ops["where"](atol > 0, 0.0, default)
        else:
            rtol = 0.0 if atol is not None and atol > 0 else default
    threshold = largest * rtol
    if atol is not None:
        atol = atol if isinstance(atol, Tensor) else _ops["full_like"](threshold, atol)
        threshold = _ops["maximum"](threshold, atol.to(threshold.dtype))
    return (values > threshold.unsqueeze(-1)).sum(-1)


def _epsilon(dtype):
    return 2.0**-23 if dtype == _C.float32 else 2.0**-52


@op(name="linalg.tensorinv", out=True)
@takes("input")
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The inverse of tensordot with A over its first `ind` dimensions.

    Args:
        input (Tensor): the first ind sizes have the product of the others.
        ind (int): how many. Default: 2

    Example:
        >>> torch.linalg.tensorinv(torch.eye(4).reshape(2, 2, 4)).shape
        torch.Size([4, 2, 2])
    """
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, last = input.shape[:ind], input.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), "
            f"but got {math.prod(last)} != {math.prod(first)}"
        )
    return _ops["linalg.inv"](input.reshape(math.prod(first), math.prod(last))).reshape(*last, *first)


@op(name="linalg.tensorsolve", out=True)
@takes("A", "B")
def tensorsolve(A: Tensor, B: Tensor, dims: int | Sequence[int] | None = None) -> Tensor:
    """The X whose tensordot with A over all of X's dimensions is B.

    Args:
        A (Tensor): of B's shape, and then X's.
        B (Tensor): the right-hand side.
        dims (sequence of ints): dimensions of A that go to its end first. Default: None

    Example:
        >>> torch.linalg.tensorsolve(torch.eye(4).reshape(4, 2, 2) * 2, torch.ones(4))
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
    """
    if dims is not None:
        moved = [dims] if isinstance(dims, int) else list(dims)
        A = A.movedim(moved, [A.dim() - len(moved) + i for i in range(len(moved))])
    sizes = A.shape[B.dim() :]
    if math.prod(sizes) != math.prod(B.shape):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(sizes)} != {math.prod(B.shape)}"
        )
    x = _ops["linalg.solve"](A.reshape(math.prod(B.shape), math.prod(sizes)), B.reshape(-1))
    return x.reshape(sizes)


@op(name="linalg.vander")
@takes("x")
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 .. N - 1 of each element, along a new dimension.

    Args:
        x (Tensor): (..., n).
        N (int): how many powers. Default: None, n

    Example:
        >>> torch.linalg.vander(torch.tensor([2, 3]), N=3)
        tensor([[1, 2, 4],
                [1, 3, 9]])
    """
    if x.dim() == 0 and N is None:
        raise RuntimeError("linalg.vander: The input tensor x must have at least one dimension")
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError(f"N must be greater than 1, got {n}")
    if x.dtype == _C.bool:
        x = x.to(_C.int64)
    if x.dim() == 0:
        x = x.unsqueeze(0)
    column = x.unsqueeze(-1)
    powers = column.expand(*x.shape, n - 1).cumprod(-1)
    return _ops["cat"]([_ops["ones_like"](column), powers], -1)


@op(name="linalg.diagonal")
@takes("A")
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonals of the last two dimensions.

    Args:
        A (Tensor): (..., m, n).
        offset (int): above (> 0) or below (< 0) the main diagonal. Default: 0
        dim1 (int): the dimension of the rows. Default: -2
        dim2 (int): the dimension of the columns. Default: -1

    Example:
        >>> torch.linalg.diagonal(torch.eye(2))
        tensor([1., 1.])
    """
    return A.diagonal(offset, dim1, dim2)


@op(method=True)
@takes("input")
def logdet(input: Tensor) -> Tensor:
    """The logarithm of each determinant: NaN where it is negative, -inf where it is 0.

    Args:
        input (Tensor): (..., n, n).

    Example:
        >>> torch.logdet(torch.eye(2) * 2)
        tensor(1.3863)
    """
    _check_square("logdet", input)
    sign, logabs = _ops["linalg.slogdet"](input)
    if input.is_complex():
        return logabs + sign.log()
    return _ops["where"](sign == -1, math.nan, logabs)


@op(method=True)
@takes("input")
def lu(input: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """The packed LU of each matrix and its exchanges of rows; torch.linalg.lu_factor is its modern name.

    Args:
        input (Tensor): (..., m, n).
        pivot (bool): whether rows are exchanged, as they must be on the CPU. Default: True
        get_infos (bool): whether LAPACK's codes come too. Default: False

    Returns:
        tuple of Tensors: LU, pivots and, if asked for, infos.

    Example:
        >>> lu, pivots = torch.lu(torch.tensor([[0.0, 1.0], [2.0, 0.0]]))
        >>> lu, pivots
        (tensor([[2., 0.],
                [0., 1.]]), tensor([2, 2], dtype=torch.int32))
    """
    result = _ops["linalg.lu_factor_ex"](input, pivot=pivot, check_errors=not get_infos)
    return result if get_infos else (result.LU, result.pivots)


# The coefficients of Pade's approximation of degree 13, and how large a 1-norm it may be used for.
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_PADE_LIMIT = 5.371920351148152


@op(name="linalg.matrix_exp")
@takes("input")
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of each matrix: the sum of A^k / k! over all k, by scaling, Pade's approximation and squaring.

    Args:
        input (Tensor): (..., n, n).

    Example:
        >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    _check_square("linalg.matrix_exp", input)
    _check_float("linalg.matrix_exp", input)
    if input.numel() == 0:
        return input.clone()
    if input.shape[-1] == 1:
        return input.exp()
    with _C_no_grad():
        size = input.detach().abs().sum(-2).amax(-1)
        # A matrix that is not finite is left as it is, and does not keep the others of a batch from being scaled.
        halvings = (size / _PADE_LIMIT).log2().ceil().clamp(min=0).nan_to_num(nan=0.0, posinf=0.0)
        most = 0 if input.is_meta else int(halvings.amax())
    scaled = input * (0.5**halvings).to(input.dtype)[..., None, None] if most else input
    result = _pade(scaled)
    for k in range(most):
        squared = result @ result
        result = _ops["where"]((halvings > k)[..., None, None], squared, result)
    return result


def _C_no_grad():
    from .._core.grad_mode import no_grad

    return no_grad()


def _pade(A):
    b, one = _PADE, _ops["eye"](A.shape[-1], dtype=A.dtype, device=A.device)
    a2 = A @ A
    a4 = a2 @ a2
    a6 = a4 @ a2
    u = A @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one)
    v = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    return _ops["linalg.solve_ex"](v - u, v + u)[0]


@op(name="matrix_exp", method=True)
@takes("input")
def _matrix_exp(input: Tensor) -> Tensor:
    """The exponential of each matrix: the sum of A^k / k! over all k, by scaling, Pade's approximation and squaring.

    Args:
        input (Tensor): (..., n, n).

    Example:
        >>> torch.matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]])
    """
    return matrix_exp(input)
