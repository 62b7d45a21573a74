"""Compressed rows (CSR): another way to write where a sparse matrix has entries; it computes as COO does."""

import rushlight as rl
from rushlight.sparse._coo import SparseTensor


class SparseCsrTensor(SparseTensor):
    """crow_indices: (rows + 1,) where each row's entries begin; col_indices and values: (nnz,)."""

    is_sparse = False
    is_sparse_csr = True

    @property
    def layout(self):
        return rl.sparse_csr

    def crow_indices(self):
        return self._starts

    def col_indices(self):
        return self._places[1]

    def values(self):
        return self._entries

    def to_sparse(self, *args, **kwargs):
        """The same entries as coordinates."""
        from rushlight.sparse._coo import make

        return make(self._places, self._entries, self.shape, True)

    def __repr__(self, **kwargs):
        parts = (
            ("crow_indices", self._starts),
            ("col_indices", self._places[1]),
            ("values", self._entries.detach()),
        )
        lines = [f"{n}={repr(v).replace(chr(10), chr(10) + ' ' * (8 + len(n)))}" for n, v in parts]
        return (
            f"tensor({(',' + chr(10) + ' ' * 7).join(lines)}, size={tuple(self.shape)}, nnz={self._nnz()},\n"
            "       layout=torch.sparse_csr)"
        )

    __str__ = __repr__


def sparse_csr_tensor(
    crow_indices, col_indices, values, size=None, *, dtype=None, device=None, requires_grad=False, **kwargs
):
    """A sparse matrix given by where its rows begin, the columns of its entries, and their values."""
    crow, col, values = (
        x if isinstance(x, rl.Tensor) else rl.tensor(x) for x in (crow_indices, col_indices, values)
    )
    values = values if dtype is None else values.to(dtype)
    if crow.dim() != 1 or col.dim() != 1 or values.dim() != 1:
        raise NotImplementedError("sparse_csr_tensor: only one matrix of numbers is supported, not a batch")
    if size is None:
        size = (crow.numel() - 1, int(col.max()) + 1 if col.numel() else 0)
    rows, columns = (int(n) for n in size)
    counts = crow[1:] - crow[:-1]
    if crow.numel() != rows + 1 or int(crow[0]) != 0 or int(crow[-1]) != col.numel():
        raise RuntimeError(
            f"crow_indices must go from 0 to nnz ({col.numel()}) in rows + 1 ({rows + 1}) numbers"
        )
    if rows and int(counts.min()) < 0:
        raise RuntimeError("crow_indices must not fall")
    if values.numel() != col.numel():
        raise RuntimeError(f"{col.numel()} columns, but {values.numel()} values")
    if col.numel() and not (int(col.min()) >= 0 and int(col.max()) < columns):
        raise RuntimeError(f"col_indices must be within 0 and {columns - 1}")
    if requires_grad:
        values = values.detach().requires_grad_()
    place = rl.repeat_interleave(rl.arange(rows), counts.to(rl.int64))
    tensor = rl.zeros((), dtype=values.dtype).expand(rows, columns).as_subclass(SparseCsrTensor)
    tensor._starts, tensor._places, tensor._entries = crow, rl.stack([place, col.to(rl.int64)]), values
    tensor._coalesced = True
    return tensor


def to_sparse_csr(input):
    """A matrix, dense or sparse, as compressed rows."""
    coo = input.to_sparse().coalesce()
    rows = coo._places[0]
    starts = rl.zeros(input.size(0) + 1, dtype=rl.int64)
    counts = rl.zeros(input.size(0), dtype=rl.int64).index_add(0, rows, rl.ones_like(rows))
    starts[1:] = counts.cumsum(0)
    return sparse_csr_tensor(starts, coo._places[1], coo._entries, tuple(input.shape))


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """beta * input + alpha * (mat1 @ mat2), only at the places where input has entries."""
    if not isinstance(input, SparseCsrTensor):
        raise RuntimeError(f"sampled_addmm: Expected self to have sparse csr layout, but got {input.layout}")
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        if mat.layout is not rl.strided or mat.dim() != 2:
            raise RuntimeError(
                f"sampled_addmm: Expected {name} to be a strided matrix, got {mat.dim()} dimensions"
            )
        if mat.dtype != input.dtype:
            raise RuntimeError(f"sampled_addmm: Expected {name} to be of {input.dtype}, but got {mat.dtype}")
    if mat1.size(1) != mat2.size(0):
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({tuple(mat1.shape)} and {tuple(mat2.shape)})"
        )
    if tuple(input.shape) != (mat1.size(0), mat2.size(1)):
        raise RuntimeError(
            f"sampled_addmm: the product is {mat1.size(0)}x{mat2.size(1)}, but the places are of a matrix of "
            f"{tuple(input.shape)}"
        )
    rows, columns = input._places
    products = (mat1[rows] * mat2.mT[columns]).sum(-1)
    result = sparse_csr_tensor(
        input._starts, columns, beta * input._entries + alpha * products, tuple(input.shape)
    )
    if out is None:
        return result
    out._starts, out._places, out._entries = result._starts, result._places, result._entries
    return out
