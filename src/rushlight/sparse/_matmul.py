"""Products with sparse matrices."""

import rushlight as rl
from rushlight.sparse._compressed import SparseCompressedTensor, SparseCscTensor, SparseCsrTensor, compress
from rushlight.sparse._coo import make
from rushlight.sparse._functions import handles, is_sparse
from rushlight.sparse._shape import t

_bag_sum = rl._C.ops["_nn.bag_sum"]


def _by_rows(a):
    """(starts, columns, values) of a sparse matrix, or None where its entries are not in the order of rows."""
    if isinstance(a, SparseCscTensor):
        return None
    if isinstance(a, SparseCsrTensor):
        return a._starts.to(rl.int64), a._coords[1], a._entries
    return (a._row_starts(), a._coords[1], a._entries) if a._coalesced else None


def _checked(a, b):
    if a.dim() != 2 or b.dim() not in (1, 2) or any(is_sparse(x) and x.sparse_dim() != 2 for x in (a, b)):
        raise RuntimeError(f"mm: expected matrices, got sizes {tuple(a.shape)} and {tuple(b.shape)}")
    if a.size(1) != b.size(0):
        if b.dim() == 1:
            raise RuntimeError(
                f"mv: expected self.size(-1) == vec.size(-1), got sizes {tuple(a.shape)} and {tuple(b.shape)}"
            )
        raise RuntimeError(
            "mm: mat1 and mat2 shapes cannot be multiplied "
            f"({a.size(0)}x{a.size(1)} and {b.size(0)}x{b.shape[-1]})"
        )


@handles("mv")
def mv(a, vec):
    if a.dim() != 2 or vec.dim() != 1:
        raise RuntimeError(
            f"mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: {a.dim()} Tensor Dim: {vec.dim()}"
        )
    return mm(a, vec)


@handles("mm", "spmm", "matmul", "__matmul__")
def mm(a, b, reduce="sum"):
    """The matrix product of two matrices, at least one of them sparse; the result is sparse if both are.

    Args:
        a (Tensor): (n, m).
        b (Tensor): (m, p), or a vector of m elements.
        reduce (str): how the terms of an element are taken together: "sum", "mean", "amax" or "amin". Default:
            "sum"

    Example:
        >>> a = torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
        >>> torch.sparse.mm(a, torch.tensor([[1.0], [3.0]]))
        tensor([[6.],
                [0.]])
    """
    if not is_sparse(a):
        if not is_sparse(b):
            return rl.mm(a, b)
        return mm(t(b), a) if a.dim() == 1 else mm(t(b), a.t()).t()
    _checked(a, b)
    if a.dtype is not b.dtype:
        kinds = [x._entries._type_name() if is_sparse(x) else x._type_name() for x in (a, b)]
        kinds = [kind[len("torch.") : -len("Tensor")] for kind in kinds]
        raise RuntimeError(
            f"mat1 dtype {kinds[0]} does not match mat2 dtype {kinds[1]}: expected scalar type {kinds[0]} but found {kinds[1]}"
        )
    if is_sparse(b):
        product = _joined(a, b)
        return compress(product, SparseCsrTensor) if isinstance(a, SparseCompressedTensor) else product
    dtype = rl.promote_types(a.dtype, b.dtype)
    sorted_rows = _by_rows(a)
    if sorted_rows is not None and reduce == "sum" and dtype in (rl.float32, rl.float64):
        starts, columns, entries = sorted_rows
        table = b if b.dim() == 2 else b.unsqueeze(1)
        product = _bag_sum(table.to(dtype), columns, starts, entries.to(dtype))
        return product if b.dim() == 2 else product.squeeze(1)
    rows, columns = a._coords
    entries = a._entries if b.dim() == 1 else a._entries.unsqueeze(1)
    result = rl.zeros((a.size(0), *b.shape[1:]), dtype=dtype)
    terms = (entries * b[columns]).to(dtype)
    if reduce == "sum":
        return result.index_add(0, rows, terms)
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("mean", "amax", "amin"):
        raise RuntimeError(f"mm: reduce must be sum, mean, amax or amin, got {reduce!r}")
    return result.index_reduce(0, rows, terms, reduce, include_self=False)


spmm = mm


def _joined(a, b):
    """The product of two sparse matrices: entry (i, k) of a meets every entry (k, j) of b. No dense matrix is made."""
    starts, columns, entries = _by_rows(b) or _by_rows(b.to_sparse()._summed())
    rows, meets = a._coords
    counts = (starts[1:] - starts[:-1])[meets]
    of = rl.repeat_interleave(rl.arange(counts.numel()), counts)
    at = rl.arange(of.numel()) + (starts[:-1][meets] - counts.cumsum(0) + counts)[of]
    dtype = rl.promote_types(a.dtype, b.dtype)
    values = a._entries[of].to(dtype) * entries[at].to(dtype)
    return make(rl.stack([rows[of], columns[at]]), values, (a.size(0), b.size(1))).coalesce()


@handles("addmm")
def addmm(mat, mat1, mat2, *, beta=1, alpha=1):
    """beta * mat + alpha * (mat1 @ mat2), where mat1 is sparse.

    Args:
        mat (Tensor): (n, p).
        mat1 (Tensor): (n, m), sparse.
        mat2 (Tensor): (m, p).
        beta (Number): the factor of mat. Default: 1
        alpha (Number): the factor of the product. Default: 1

    Example:
        >>> a = torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
        >>> torch.sparse.addmm(torch.ones(2, 1), a, torch.tensor([[1.0], [3.0]]))
        tensor([[7.],
                [1.]])
    """
    product = mm(mat1, mat2)
    if is_sparse(mat) and not is_sparse(product):
        mat = mat.to_dense()
    return alpha * product + beta * mat


@handles("addmv")
def addmv(input, mat, vec, *, beta=1, alpha=1):
    """beta * input + alpha * (mat @ vec)."""
    product = alpha * mm(mat, vec)
    return product if beta == 0 else product + beta * input


@handles("bmm")
def bmm(a, b):
    """Products of matrices in pairs: a batch of sparse ones with a batch of dense ones."""
    if not is_sparse(a) or is_sparse(b):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    if a.dim() != 3 or b.dim() != 3 or a.size(0) != b.size(0) or a.size(2) != b.size(1):
        raise RuntimeError(
            f"bmm: expected (b, n, m) and (b, m, p), got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    batch, n, m = a.shape
    item, row, column = a._coords
    wide = make(
        rl.stack([item * n + row, item * m + column]), a._entries, (batch * n, batch * m), a._coalesced
    )
    return mm(wide, b.reshape(batch * m, b.size(2))).view(batch, n, b.size(2))


@handles("hspmm", "hsmm")
def hspmm(mat1, mat2):
    """The product of a sparse and a dense matrix, as the rows in which the sparse one has entries."""
    if not is_sparse(mat1):
        raise RuntimeError(
            "hspmm: Argument #1: matrix expected to be sparse; make it so with mat1.to_sparse()"
        )
    _checked(mat1, mat2)
    rows, of = rl.unique(mat1._coords[0], return_inverse=True)
    few = make(rl.stack([of, mat1._coords[1]]), mat1._entries, (rows.numel(), mat1.size(1)), mat1._coalesced)
    return make(rows.unsqueeze(0), mm(few, mat2), (mat1.size(0), mat2.size(1)), True)


def _need_sparse(*tensors):
    if not all(is_sparse(x) for x in tensors):
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")


@handles("dsmm")
def dsmm(input, mat2):
    """The product of two matrices, of which one may be sparse."""
    return mm(input, mat2)


@handles("linear")
def linear(input, weight, bias=None):
    """input @ weight.T + bias with a sparse input or weight."""
    if is_sparse(input):
        product = mm(input, weight.t())
        return product if bias is None else product + bias
    flat = mm(weight, input.reshape(-1, input.size(-1)).t()).t()
    result = flat.reshape(*input.shape[:-1], weight.size(0))
    return result if bias is None else result + bias


@handles("sspaddmm", "saddmm")
def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * (mat1 @ mat2), sparse: with an entry for every column of a row in which mat1 has one."""
    _need_sparse(input, mat1)
    product = hspmm(mat1, mat2)
    columns = rl.arange(mat2.size(1))
    coords = rl.stack([product._coords[0].repeat_interleave(columns.numel()), columns.repeat(product._nnz())])
    entries = rl.cat([beta * input._entries, alpha * product._entries.reshape(-1)])
    return make(rl.cat([input._coords, coords], 1), entries, (mat1.size(0), mat2.size(1)))


@handles("smm")
def smm(input, mat):
    """The product of a sparse and a dense matrix, sparse."""
    _need_sparse(input)
    zero = make(input._coords[:, :0], input._entries[:0], (input.size(0), mat.size(1)))
    return sspaddmm(zero, input, mat)._coalesced_(True)


def spdiags(diagonals, offsets, shape, layout=None):
    """A sparse matrix from its diagonals: that at offsets[i] holds diagonals[i], by column.

    Args:
        diagonals (Tensor): (k, n), or (n) for one; element j of a row stands in column j.
        offsets (Tensor): (k) different ints: 0 is the main diagonal, above it they are positive.
        shape (tuple of 2 ints): of the matrix.
        layout (layout): torch.sparse_coo, sparse_csr or sparse_csc; None means COO. Default: None

    Example:
        >>> torch.sparse.spdiags(torch.arange(1, 7).reshape(2, 3), torch.tensor([0, 1]), (3, 3)).to_dense()
        tensor([[1, 5, 0],
                [0, 2, 6],
                [0, 0, 3]])
    """
    if diagonals.dim() not in (1, 2):
        raise RuntimeError("Diagonals must be vector or matrix")
    if offsets.dim() > 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if layout not in (None, rl.sparse_coo, rl.sparse_csr, rl.sparse_csc):
        raise RuntimeError(
            "Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got another one"
        )
    diagonals, offsets = diagonals.reshape(-1, diagonals.size(-1)), offsets.reshape(-1)
    if offsets.numel() != diagonals.size(0):
        raise RuntimeError(
            f"Number of diagonals ({diagonals.size(0)}) does not match the number of offsets ({offsets.numel()})"
        )
    if offsets.unique().numel() != offsets.numel():
        raise RuntimeError("Offset tensor contains duplicate values")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.dtype is not rl.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype}: call offsets.long()")
    rows_, columns_ = (int(n) for n in shape)
    columns = rl.arange(min(columns_, diagonals.size(1))).expand(offsets.numel(), -1)
    rows = columns - offsets.to(rl.int64).unsqueeze(1)
    inside = (rows >= 0) & (rows < rows_)
    coords = rl.stack([rows[inside], columns[inside]])
    result = make(coords, diagonals[:, : columns.size(1)][inside], (rows_, columns_))
    return result if layout is None else result.to_sparse(layout=layout)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """beta * input + alpha * (mat1 @ mat2), only at the indices where input has entries.

    Args:
        input (Tensor): (n, p), of layout torch.sparse_csr.
        mat1 (Tensor): (n, m), dense.
        mat2 (Tensor): (m, p), dense.
        beta (Number): the factor of input. Default: 1.0
        alpha (Number): the factor of the product. Default: 1.0

    Returns:
        A CSR tensor with the indices of input.

    Example:
        >>> where = torch.eye(2).to_sparse_csr()
        >>> a, b = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 2)
        >>> torch.sparse.sampled_addmm(where, a, b, beta=0.0).values()
        tensor([3., 7.])
    """
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
            f"sampled_addmm: the product is {mat1.size(0)}x{mat2.size(1)}, but the indices are of a matrix of "
            f"{tuple(input.shape)}"
        )
    rows, columns = input._coords
    products = (mat1[rows] * mat2.mT[columns]).sum(-1)
    result = input._with(beta * input._entries + alpha * products)
    if out is None:
        return result
    out._starts, out._coords, out._entries = result._starts, result._coords, result._entries
    return out
