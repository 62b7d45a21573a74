"""Compressed rows (CSR) and columns (CSC): where the entries of each row, or column, begin. They compute as COO does,
and give their own layout back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight._C import Tensor, device, dtype, layout
from rushlight._core.compose import factory
from rushlight.sparse import _text
from rushlight.sparse._coo import SparseTensor, make


class SparseCompressedTensor(SparseTensor):
    """_starts: (n + 1,) where the entries of each row (`_along` 0) or column (1) begin; _coords: (2, nnz) in that order."""

    is_sparse = False
    _along: int
    _starts: Tensor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs)
        if type(result) is SparseTensor and result.dim() == 2:
            return compress(result, cls)
        return result

    def values(self):
        return self._entries

    def coalesce(self):
        _text.refuse("coalesce", "coordinate ", self)

    def stride(self, dim=None):
        raise RuntimeError("Sparse CSR tensors do not have strides: their values() have")

    def is_contiguous(self, memory_format=None):
        raise RuntimeError("Sparse CSR tensors do not have is_contiguous: their values() have")

    def is_coalesced(self):
        _text.refuse("is_coalesced", "coordinate ", self)

    def indices(self):
        _text.refuse("indices", "coordinate ", self)

    def _summed(self):
        return self

    def _as_gradient(self, shared):
        return self._with(self._entries.clone()) if shared else self

    def _with(self, entries):
        return _assemble(type(self), self._starts, self._coords, entries, self.shape)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        """The same entries as coordinates, or in another layout."""
        if layout is not None and layout is not rl.sparse_coo:
            from rushlight.sparse._layouts import converted

            return converted(self, layout, blocksize, dense_dim)
        _text.check_sparse_dim(self, sparse_dim, 2)
        return make(self._coords, self._entries, self.shape, self._along == 0)

    def __repr__(self, **kwargs):
        other = self._coords[1 - self._along].to(self._starts.dtype)
        first, second = ("crow", "col") if self._along == 0 else ("ccol", "row")
        parts = [(f"{first}_indices", self._starts), (f"{second}_indices", other), ("values", self._entries)]
        return _text.describe(self, parts, own_line=False)

    __str__ = __repr__

    def __deepcopy__(self, memo):
        entries = self._entries.detach().clone().requires_grad_(self.requires_grad)
        return _assemble(type(self), self._starts.clone(), self._coords.clone(), entries, self.shape)

    def __reduce_ex__(self, protocol):
        coords = self._coords[1 - self._along].to(self._starts.dtype)
        return _rebuild, (self.layout, self._starts, coords, self._entries.detach(), tuple(self.shape))


class SparseCsrTensor(SparseCompressedTensor):
    """A matrix by rows: crow_indices (rows + 1,), col_indices and values (nnz,)."""

    is_sparse_csr = True
    _along = 0

    @property
    def layout(self):
        return rl.sparse_csr

    def crow_indices(self):
        return self._starts

    def col_indices(self):
        return self._coords[1].to(self._starts.dtype)


class SparseCscTensor(SparseCompressedTensor):
    """A matrix by columns: ccol_indices (columns + 1,), row_indices and values (nnz,)."""

    _along = 1

    @property
    def layout(self):
        return rl.sparse_csc

    def ccol_indices(self):
        return self._starts

    def row_indices(self):
        return self._coords[0].to(self._starts.dtype)


def class_of(layout):
    for kind, name in ((SparseCsrTensor, rl.sparse_csr), (SparseCscTensor, rl.sparse_csc)):
        if layout is name:
            return kind
    raise NotImplementedError(
        f"only the layouts sparse_coo, sparse_csr and sparse_csc are supported, got {layout}"
    )


def _assemble(kind, starts, coords, entries, size):
    tensor = rl.zeros((), dtype=entries.dtype).expand(tuple(size)).as_subclass(kind)
    tensor._starts, tensor._coords, tensor._entries, tensor._coalesced = starts, coords, entries, True
    return tensor


def compress(input, kind):
    """A matrix, dense or sparse, as `kind`."""
    if type(input) is kind:
        return input
    if input.dim() != 2:
        raise RuntimeError(f"to {kind.__name__}: only matrices are supported, got {input.dim()} dimensions")
    from rushlight.sparse._layouts import converted

    sparse = input if isinstance(input, SparseTensor) else input.to_sparse()
    return converted(sparse, rl.sparse_csr if kind._along == 0 else rl.sparse_csc)


def _compressed(layout, starts, others, values, size, dtype, requires_grad, check_invariants=None):
    starts, others, values = (
        x if isinstance(x, rl.Tensor) else rl.tensor(x) for x in (starts, others, values)
    )
    from rushlight.sparse._blocks import KINDS, smallest
    from rushlight.sparse._parts import build

    if layout not in KINDS:
        raise RuntimeError(
            f"sparse_compressed_tensor expected sparse compressed tensor layout but got {_text.LAYOUTS.get(layout, layout)}"
        )
    values = values if dtype is None else values.to(dtype)
    if requires_grad:
        values = values.detach().requires_grad_()
    built = build(layout, starts, others, values, size, check_invariants)
    return smallest(layout, starts, others, values, built.shape)


@factory
def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: int | Sequence[int] | None = None,
    *,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    **kwargs: Any,
) -> Tensor:
    """A sparse matrix by rows: where they begin, the columns of the entries, and their values.

    Args:
        crow_indices (Tensor): (*batch, rows + 1), rising from 0 to the number of entries.
        col_indices (Tensor): (*batch, entries), rising within a row.
        values (Tensor): (*batch, entries, *dense).
        size (sequence of ints): Default: None, the least that holds the indices
        dtype (dtype): of the values. Default: None, as they are
        device (device): where the result lives. Default: None
        requires_grad (bool): whether autograd records what is computed from it. Default: False
        check_invariants (bool): whether indices are checked. Default: None, where that is asked for

    Example:
        >>> torch.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2)).to_dense()
        tensor([[0., 3.],
                [4., 0.]])
    """
    return _compressed(
        rl.sparse_csr, crow_indices, col_indices, values, size, dtype, requires_grad, check_invariants
    )


@factory
def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: int | Sequence[int] | None = None,
    *,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    **kwargs: Any,
) -> Tensor:
    """A sparse matrix by columns: where they begin, the rows of the entries, and their values.

    Args:
        ccol_indices (Tensor): (*batch, columns + 1), rising from 0 to the number of entries.
        row_indices (Tensor): (*batch, entries), rising within a column.
        values (Tensor): (*batch, entries, *dense).
        size, dtype, device, requires_grad, check_invariants: as of torch.sparse_csr_tensor.

    Example:
        >>> torch.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2)).to_dense()
        tensor([[0., 4.],
                [3., 0.]])
    """
    return _compressed(
        rl.sparse_csc, ccol_indices, row_indices, values, size, dtype, requires_grad, check_invariants
    )


@factory
def sparse_bsr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: int | Sequence[int] | None = None,
    *,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    **kwargs: Any,
) -> Tensor:
    """A sparse matrix of blocks by rows of blocks: where they begin, the columns of the blocks, and the blocks.

    Args:
        crow_indices (Tensor): (*batch, block rows + 1), rising from 0 to the number of blocks.
        col_indices (Tensor): (*batch, blocks), rising within a row.
        values (Tensor): (*batch, blocks, rows of a block, its columns, *dense).
        size, dtype, device, requires_grad, check_invariants: as of torch.sparse_csr_tensor.

    Example:
        >>> torch.sparse_bsr_tensor([0, 1], [1], torch.ones(1, 2, 2), (2, 4)).to_dense()
        tensor([[0., 0., 1., 1.],
                [0., 0., 1., 1.]])
    """
    return _compressed(
        rl.sparse_bsr, crow_indices, col_indices, values, size, dtype, requires_grad, check_invariants
    )


@factory
def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: int | Sequence[int] | None = None,
    *,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    **kwargs: Any,
) -> Tensor:
    """A sparse matrix of blocks by columns of blocks: where they begin, the rows of the blocks, and the blocks.

    Args:
        ccol_indices (Tensor): (*batch, block columns + 1), rising from 0 to the number of blocks.
        row_indices (Tensor): (*batch, blocks), rising within a column.
        values (Tensor): (*batch, blocks, rows of a block, its columns, *dense).
        size, dtype, device, requires_grad, check_invariants: as of torch.sparse_csr_tensor.

    Example:
        >>> torch.sparse_bsc_tensor([0, 1], [1], torch.ones(1, 2, 2), (4, 2)).to_dense()
        tensor([[0., 0.],
                [0., 0.],
                [1., 1.],
                [1., 1.]])
    """
    return _compressed(
        rl.sparse_bsc, ccol_indices, row_indices, values, size, dtype, requires_grad, check_invariants
    )


@factory
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: int | Sequence[int] | None = None,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    **kwargs: Any,
) -> Tensor:
    """A sparse matrix in the compressed layout that is named.

    Args:
        compressed_indices (Tensor): where rows (or columns) begin.
        plain_indices (Tensor): columns (or rows) of the entries or blocks.
        values (Tensor): the entries or blocks.
        size (sequence of ints): Default: None, the least that holds the indices
        layout (layout): torch.sparse_csr, sparse_csc, sparse_bsr or sparse_bsc, which must be given. Default: None
        dtype, requires_grad, check_invariants: as of torch.sparse_csr_tensor.

    Example:
        >>> torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [3.0, 4.0], layout=torch.sparse_csr).shape
        torch.Size([2, 2])
    """
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got none")
    return _compressed(
        layout, compressed_indices, plain_indices, values, size, dtype, requires_grad, check_invariants
    )


def _rebuild(layout, starts, others, values, size):
    return _compressed(layout, starts, others, values, size, None, False)
