"""From dense to sparse and back; the sparse tensor itself lives in rushlight.sparse."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight._C import Tensor, dtype, layout

from .. import _C
from .._core.compose import op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


@op(method=True)
def to_sparse(
    input: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: layout | None = None,
    blocksize: int | Sequence[int] | None = None,
    dense_dim: int | None = None,
) -> Tensor:
    """The nonzero entries as a sparse tensor: by coordinates, or in the layout that is named.

    Args:
        input (Tensor): dense or sparse.
        sparse_dim (int): how many dimensions are sparse, by coordinates. Default: None, all
        layout (layout): which. Default: None, torch.sparse_coo
        blocksize (pair of ints): of sparse_bsr and sparse_bsc. Default: None
        dense_dim (int): how many dimensions are dense. Default: None, 0

    Example:
        >>> torch.to_sparse(torch.eye(2)).indices()
        tensor([[0, 1],
                [0, 1]])
    """
    from ..sparse import _coo, _layouts

    if layout is None or layout is _C.sparse_coo:
        if blocksize is not None:
            _layouts.block_of(blocksize, "dense_to_sparse")
        if dense_dim is not None and sparse_dim is None:
            sparse_dim = input.dim() - dense_dim
        return _coo.to_sparse(input, sparse_dim)
    if sparse_dim is not None:
        raise TypeError(f"to_sparse(): sparse_dim is for coordinates, not for {layout}: give dense_dim")
    return input if layout is _C.strided else _layouts.converted(input, layout, blocksize, dense_dim)


@op(method=True)
def to_sparse_coo(input: Tensor) -> Tensor:
    """The nonzero entries by their coordinates (COO).

    Args:
        input (Tensor): dense or sparse.

    Example:
        >>> torch.to_sparse_coo(torch.eye(2)).values()
        tensor([1., 1.])
    """
    return to_sparse(input)


@op(method=True)
def to_dense(input: Tensor, dtype: dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """The dense form of a sparse tensor; a dense tensor comes back as it is.

    Args:
        input (Tensor): any.
        dtype (dtype): of the result. Default: None, as it is
        masked_grad (bool): of sparse tensors, whether the gradient has their entries only. Default: None, True

    Example:
        >>> torch.to_dense(torch.eye(2).to_sparse())
        tensor([[1., 0.],
                [0., 1.]])
    """
    return input if dtype is None else input.to(dtype)


@op(method=True)
def to_sparse_csr(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """The nonzero entries of a matrix, or of a batch of them, as compressed rows (CSR).

    Args:
        input (Tensor): dense or sparse.
        dense_dim (int): how many dimensions are dense. Default: None, 0

    Example:
        >>> torch.to_sparse_csr(torch.eye(2)).crow_indices()
        tensor([0, 1, 2])
    """
    return to_sparse(input, layout=_C.sparse_csr, dense_dim=dense_dim)


@op(method=True)
def to_sparse_csc(input: Tensor, dense_dim: int | None = None) -> Tensor:
    """The nonzero entries of a matrix, or of a batch of them, as compressed columns (CSC).

    Args:
        input (Tensor): dense or sparse.
        dense_dim (int): how many dimensions are dense. Default: None, 0

    Example:
        >>> torch.to_sparse_csc(torch.eye(2)).ccol_indices()
        tensor([0, 1, 2])
    """
    return to_sparse(input, layout=_C.sparse_csc, dense_dim=dense_dim)


@op(method=True)
def to_sparse_bsr(input: Tensor, blocksize: int | Sequence[int], dense_dim: int | None = None) -> Tensor:
    """The blocks of a matrix that are not all zero, as compressed rows of blocks (BSR).

    Args:
        input (Tensor): dense or sparse.
        blocksize (pair of ints): which divides its size.
        dense_dim (int): how many dimensions are dense. Default: None, 0

    Example:
        >>> torch.to_sparse_bsr(torch.eye(4), (2, 2)).col_indices()
        tensor([0, 1])
    """
    return to_sparse(input, layout=_C.sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


@op(method=True)
def to_sparse_bsc(input: Tensor, blocksize: int | Sequence[int], dense_dim: int | None = None) -> Tensor:
    """The blocks of a matrix that are not all zero, as compressed columns of blocks (BSC).

    Args:
        input (Tensor): dense or sparse.
        blocksize (pair of ints): which divides its size.
        dense_dim (int): how many dimensions are dense. Default: None, 0

    Example:
        >>> torch.to_sparse_bsc(torch.eye(4), (2, 2)).row_indices()
        tensor([0, 1])
    """
    return to_sparse(input, layout=_C.sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


@op(method=True)
def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The elements at the indices where a sparse tensor has entries, as a sparse tensor.

    Args:
        input (Tensor): what is read.
        mask (Tensor): sparse, of the same shape.

    Example:
        >>> torch.sparse_mask(torch.ones(2, 2), torch.eye(2).to_sparse()).to_dense()
        tensor([[1., 0.],
                [0., 1.]])
    """
    if mask.layout is _C.strided:
        raise RuntimeError("sparse_mask(): the mask must be a sparse tensor, got a dense one")
    from ..sparse import _shape

    return _shape.sparse_mask(input, mask)


@op(method=True)
def sparse_dim(input: Tensor) -> int:
    """How many dimensions are sparse: 0, of a dense tensor.

    Args:
        input (Tensor): what is asked.

    Example:
        >>> torch.sparse_dim(torch.eye(2))
        0
    """
    return 0


@op(method=True)
def dense_dim(input: Tensor) -> int:
    """How many dimensions are dense: all, of a dense tensor.

    Args:
        input (Tensor): what is asked.

    Example:
        >>> torch.dense_dim(torch.ones(2, 3))
        2
    """
    return input.dim()


def _parts(name, layout, doc, shown=""):
    """A method that only some sparse tensors have; theirs stand in their classes."""

    def part(input: Any, *args: Any) -> Tensor:
        if not isinstance(input, _C.Tensor):
            raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(input).__name__}")
        own = getattr(type(input), name)
        if own is not part:  # Tensor.crow_indices(sparse)
            return own(input, *args)
        if input._asks():
            return input._ask(part, (input, *args), {})
        raise RuntimeError(f"{name} expected sparse {layout}tensor layout but got Strided")

    part.__name__ = part.__qualname__ = name
    part.__doc__ = f"{doc}\n\nArgs:\n    input (Tensor): sparse.\n\nExample:\n    {shown}\n" if shown else doc
    setattr(_C.Tensor, name, part)


_COO, _CSR, _CSC = (f">>> torch.eye(2).to_sparse{kind}()." for kind in ("", "_csr", "_csc"))
_parts("indices", "coordinate ", "Where a sparse tensor has entries: (sparse dimensions, entries).",
       _COO + "indices()\n    tensor([[0, 1],\n            [0, 1]])")  # fmt: skip
_parts("values", "", "The entries of a sparse tensor.", _COO + "values()\n    tensor([1., 1.])")
_parts("crow_indices", "row compressed ", "Where the entries of each row begin.",
       _CSR + "crow_indices()\n    tensor([0, 1, 2])")  # fmt: skip
_parts(
    "col_indices", "row compressed ", "The column of each entry.", _CSR + "col_indices()\n    tensor([0, 1])"
)
_parts("ccol_indices", "column compressed ", "Where the entries of each column begin.",
       _CSC + "ccol_indices()\n    tensor([0, 1, 2])")  # fmt: skip
_parts(
    "row_indices", "column compressed ", "The row of each entry.", _CSC + "row_indices()\n    tensor([0, 1])"
)
_parts("is_coalesced", "coordinate ", "Whether no two entries of a sparse tensor have the same index.",
       _COO + "is_coalesced()\n    True")  # fmt: skip
_parts("coalesce", "coordinate ", "A sparse tensor whose entries at the same index are added up.",
       ">>> torch.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (2,)).coalesce().values()\n    tensor([5.])")  # fmt: skip
_parts(
    "_indices", "coordinate ", "Where a sparse tensor has entries, whether or not each index is there once."
)
_parts("_values", "coordinate ", "The entries of a sparse tensor, whether or not each index is there once.")
_parts("_nnz", "", "The number of entries of a sparse tensor.")
_parts("_coalesced_", "coordinate ", "Says whether no two entries of a sparse tensor have the same index.")
_parts("_dimI", "coordinate ", "The number of sparse dimensions.")
_parts("_dimV", "coordinate ", "The number of dense dimensions.")


def _needs_sparse(name):
    from ..sparse import _matmul

    return getattr(_matmul, name)


@op(method=True)
def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix, sparse.

    Args:
        input (Tensor): (m, k), sparse.
        mat (Tensor): (k, n), dense.

    Example:
        >>> torch.eye(2).to_sparse().smm(torch.ones(2, 2)).to_dense()
        tensor([[1., 1.],
                [1., 1.]])
    """
    return _needs_sparse("smm")(input, mat)


@op
def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, of which one may be sparse."""
    return input @ mat2


@op(alias=("hsmm",))
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix, as the rows in which the sparse one has entries.

    Args:
        mat1 (Tensor): (m, k), sparse.
        mat2 (Tensor): (k, n).

    Returns:
        Tensor: sparse, with one sparse dimension.

    Example:
        >>> torch.hspmm(torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse(), torch.ones(2, 2)).to_dense()
        tensor([[2., 2.],
                [0., 0.]])
    """
    return _needs_sparse("hspmm")(mat1, mat2)


@op(method=True)
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) of sparse input and mat1, sparse.

    Args:
        input (Tensor): (m, n), sparse.
        mat1 (Tensor): (m, k), sparse.
        mat2 (Tensor): (k, n), dense.
        beta (Number): factor of input. Default: 1
        alpha (Number): factor of the product. Default: 1

    Example:
        >>> i = torch.eye(2).to_sparse()
        >>> torch.sspaddmm(i, i, torch.ones(2, 2)).to_dense()
        tensor([[2., 1.],
                [1., 2.]])
    """
    return _needs_sparse("sspaddmm")(input, mat1, mat2, beta=beta, alpha=alpha)


@op
def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """sspaddmm under its old name."""
    return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


@op
def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows begins among sorted row indices, and their count at the end."""
    if input.dim() > 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {input.dim()} dimensional tensor.")
    rows = _C.ops["arange"](size + 1, dtype=input.dtype, device=input.device)
    return _C.ops["searchsorted"](input, rows, out_int32=out_int32)


@op
def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Row and column of each entry of a compressed matrix, after its number in a batch of them."""
    kind = _C.int32 if out_int32 else _C.int64
    counts = (crow_indices[..., 1:] - crow_indices[..., :-1]).to(_C.int64)
    batch, rows = crow_indices.shape[:-1].numel() if crow_indices.dim() > 1 else 1, counts.shape[-1]
    rows = _C.ops["arange"](rows, device=counts.device).repeat(batch).repeat_interleave(counts.reshape(-1))
    pair = [rows.to(kind), col_indices.reshape(-1).to(kind)]
    if crow_indices.dim() > 1:
        lead = _C.ops["arange"](batch, device=counts.device).repeat_interleave(col_indices.shape[-1])
        parts = []
        for size in reversed(crow_indices.shape[:-1]):
            parts.append((lead % size).to(kind))
            lead = lead // size
        return _C.ops["stack"]([*reversed(parts), *(reversed(pair) if transpose else pair)])
    return _C.ops["stack"](pair[::-1] if transpose else pair)
