"""Sparse tensors transposed, put together, cut, and indexed."""

import builtins

import rushlight as rl
from rushlight.sparse._compressed import SparseCompressedTensor, SparseCscTensor, SparseCsrTensor, _assemble
from rushlight.sparse._coo import make, without_overrides
from rushlight.sparse._functions import _become, handles, is_sparse


def _dim(dim, n):
    if not -n <= dim < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )
    return dim % n


@handles("transpose")
def transpose(a, dim0, dim1):
    n = a.dim()
    dim0, dim1 = _dim(dim0, n), _dim(dim1, n)
    if max(dim0, dim1) >= a.sparse_dim():
        raise RuntimeError("transpose: only sparse dimensions of a sparse tensor can be exchanged")
    if dim0 == dim1:
        return a._with(a._entries.view_as(a._entries))._seen_from(a)
    order = list(range(a.sparse_dim()))
    order[dim0], order[dim1] = dim1, dim0
    return permute(a, (*order, *range(a.sparse_dim(), n)))


@handles("permute")
def permute(a, *given, dims=None):
    dims = given if dims is None else (dims,)
    dims = [_dim(d, a.dim()) for d in (dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)]
    sparse = a.sparse_dim()
    if len(dims) != a.dim():
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {a.dim()} is not equal to len(dims) = {len(dims)}"
        )
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"permute(sparse_coo): duplicate dims are not allowed, got {dims}")
    if any(d >= sparse for d in dims[:sparse]):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed. Got the order "
            f"{dims} of {a.dim()} dimensions, of which the first {sparse} are sparse"
        )
    coords = a._coords[rl.tensor(dims[:sparse], dtype=rl.int64)]
    entries = a._entries.permute(0, *(d - sparse + 1 for d in dims[sparse:]))
    size = [a.size(d) for d in dims]
    in_order = dims[:sparse] == list(range(sparse))
    if isinstance(a, SparseCompressedTensor):
        if in_order:
            return a._with(entries)._seen_from(a)
        kind = SparseCscTensor if isinstance(a, SparseCsrTensor) else SparseCsrTensor
        return _assemble(kind, a._starts, coords, entries, size)._seen_from(a)
    return make(coords, entries, size, a._coalesced and (in_order or a._nnz() < 2))._seen_from(a)


@handles("_mT")
def matrix_transpose(a):
    if a.dim() < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {a.dim()}-D tensor."
        )
    return a.t() if a.dim() == 2 else transpose(a, -2, -1)


@handles("adjoint")
def adjoint(a):
    transposed = matrix_transpose(a)
    return transposed.conj() if a.is_complex() else transposed


@handles("_H")
def conjugate_transpose(a):
    if a.dim() > 2:
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {a.dim()}-D tensor.")
    return adjoint(a)


@handles("t", "_T")
def t(a):
    if a.dim() > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {a.sparse_dim()} sparse and "
            f"{a.dense_dim()} dense dimensions"
        )
    return transpose(a, 0, 1) if a.dim() == 2 else a


@handles("transpose_", "t_", "swapdims_", "swapaxes_")
def transpose_(a, dim0=0, dim1=1):
    result = transpose(a, dim0, dim1)
    # The memory that stands for the shape is one element.
    without_overrides(rl.Tensor.as_strided_, a, tuple(result.shape), (0,) * result.dim(), 0)
    return _become(a, result)


@handles("unsqueeze")
def unsqueeze(a, dim):
    dim = _dim(dim, a.dim() + 1)
    if dim > a.sparse_dim():
        entries = a._entries.unsqueeze(dim - a.sparse_dim() + 1)
        return make(a._coords, entries, (*a.shape[:dim], 1, *a.shape[dim:]), a._coalesced)
    zero = rl.zeros((1, a._nnz()), dtype=rl.int64)
    coords = rl.cat([a._coords[:dim], zero, a._coords[dim:]])
    return make(coords, a._entries, (*a.shape[:dim], 1, *a.shape[dim:]), a._coalesced)


@handles("cat", "concat", "concatenate")
def cat(tensors, dim=0):
    if not all(is_sparse(x) for x in tensors):
        raise RuntimeError("cat: sparse and dense tensors cannot be put together; call .to_dense() first")
    dim, at, coords = _dim(dim, tensors[0].dim()), 0, []
    first = tensors[0]
    for i, x in enumerate(tensors):
        if (x.sparse_dim(), x.dense_dim()) != (first.sparse_dim(), first.dense_dim()):
            raise RuntimeError(
                f"All tensors must have the same sparse_dim and dense_dim: {first.sparse_dim()}, {first.dense_dim()}, but "
                f"tensor at position {i} has {x.sparse_dim()}, {x.dense_dim()}."
            )
        if any(d != dim and n != m for d, (n, m) in enumerate(zip(x.shape, first.shape, strict=True))):
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), but "
                f"found shape: {list(x.shape)} at position {i}."
            )
    if dim >= first.sparse_dim():
        return _cat_dense(tensors, dim)
    for x in tensors:
        moved = x._coords.clone()
        moved[dim] += at
        coords.append(moved)
        at += x.size(dim)
    size = list(tensors[0].shape)
    size[dim] = at
    return make(rl.cat(coords, 1), rl.cat([x._entries for x in tensors]), size)


def _cat_dense(tensors, dim):
    """Along a dense dimension: each tensor's entries, with zeros where the others' are."""
    size, at, parts = list(tensors[0].shape), 0, []
    along, size[dim] = dim - tensors[0].sparse_dim() + 1, builtins.sum(x.size(dim) for x in tensors)
    for x in tensors:
        shape = list(x._entries.shape)
        before, after = shape.copy(), shape.copy()
        before[along], after[along] = at, size[dim] - at - x.size(dim)
        at += x.size(dim)
        parts.append(rl.cat([x._entries.new_zeros(before), x._entries, x._entries.new_zeros(after)], along))
    return make(rl.cat([x._coords for x in tensors], 1), rl.cat(parts), size)


@handles("stack")
def stack(tensors, dim=0):
    return cat([unsqueeze(x.to_sparse(), dim) for x in tensors], dim)


@handles("index_select")
def index_select(a, dim, index):
    dim = _dim(dim, a.dim())
    size = [*a.shape[:dim], index.numel(), *a.shape[dim + 1 :]]
    if index.numel() and not (int(index.min()) >= -a.size(dim) and int(index.max()) < a.size(dim)):
        raise IndexError(f"index_select(): index must be within {-a.size(dim)} and {a.size(dim) - 1}")
    index = rl.where(index < 0, index + a.size(dim), index)
    if dim >= a.sparse_dim():
        return make(a._coords, a._entries.index_select(dim - a.sparse_dim() + 1, index), size, a._coalesced)
    # Each entry comes once for every time that its index is asked for.
    a = a.to_sparse()._summed()
    order = index.reshape(-1).argsort(stable=True)
    begins = rl.searchsorted(index.reshape(-1)[order], rl.arange(a.size(dim) + 1))
    own = a._coords[dim]
    counts = (begins[1:] - begins[:-1])[own]
    of = rl.repeat_interleave(rl.arange(counts.numel()), counts)
    at = order[rl.arange(of.numel()) + (begins[:-1][own] - counts.cumsum(0) + counts)[of]]
    coords = a._coords[:, of].clone()
    coords[dim] = at
    return make(coords, a._entries[of], size).coalesce()


@handles("select", "select_copy")
def select(a, dim, index):
    dim = _dim(dim, a.dim())
    if not -a.size(dim) <= index < a.size(dim):
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(a.shape)} at dimension {dim}"
        )
    index = int(index) % a.size(dim)
    size = [*a.shape[:dim], *a.shape[dim + 1 :]]
    if dim >= a.sparse_dim():
        return make(a._coords, a._entries.select(dim - a.sparse_dim() + 1, index), size, a._coalesced)
    here = (a._coords[dim] == index).nonzero().squeeze(1)
    if a.sparse_dim() == 1:
        return a._entries[here].sum(0, dtype=a.dtype)
    coords = rl.cat([a._coords[:dim], a._coords[dim + 1 :]])[:, here]
    return make(coords, a._entries[here], size, a._coalesced)


@handles("__getitem__")
def getitem(a, index):
    parts = index if isinstance(index, tuple) else (index,)
    dim = 0
    for part in parts:
        if not (isinstance(part, int) and not isinstance(part, bool)) and part != slice(None):
            result = a.to_dense()[index]
            return result.to_sparse() if result.dim() else result
    if len(parts) > a.dim():
        raise IndexError(f"too many indices for tensor of dimension {a.dim()}")
    for part in parts:
        if isinstance(part, int):
            a = select(a, dim, part)
        else:
            dim += 1
    return a


@handles("sparse_mask")
def sparse_mask(a, mask):
    if tuple(a.shape) != tuple(mask.shape):
        raise RuntimeError(
            f"sparse_mask(): shapes of self and mask must match, got {a.shape} and {mask.shape}"
        )
    if not is_sparse(a):
        if mask.layout is not rl.sparse_coo and hasattr(mask, "_whole"):
            return _masked_parts(a, mask)
        return mask._with(a[tuple(mask._coords)])
    # Entries of `a` at the indices of the mask, 0 where there are none.
    own, wanted = a.to_sparse()._summed(), mask.to_sparse()
    if own._nnz() == 0:
        found = own._entries.new_zeros((wanted._nnz(), *own._entries.shape[1:]))
    else:
        key, at = own._keys(), wanted._keys()
        near = rl.searchsorted(key, at).clamp(max=key.numel() - 1)
        hit = (key[near] == at).view(-1, *[1] * own.dense_dim())
        found = rl.where(hit, own._entries[near], own._entries.new_zeros(()))
    return wanted._with(found)


def _masked_parts(a, mask):
    """The elements of a dense tensor where a tensor of blocks, batches or dense entries has some."""
    _, item, row, column = mask._whole()
    b, (high, wide) = mask._batch(), mask._block()
    rows, columns = mask.shape[b : b + 2]
    whole = a.reshape(
        a.shape[:b].numel() if b else 1, rows // high, high, columns // wide, wide, *a.shape[b + 2 :]
    ).transpose(2, 3)
    return mask._with(whole[item, row, column].reshape(mask._entries.shape))


@handles("__setitem__")
def setitem(a, index, value):
    raise TypeError(
        "Cannot assign to a sparse tensor: its entries are in .values(); or go by way of to_dense()"
    )


@handles("narrow_copy")
def narrow_copy(a, dim, start, length):
    """Part of a dimension."""
    if not -a.dim() <= dim < a.dim():
        raise RuntimeError(f"Dimension {dim} out of range. Expecting 0 <= dim < {a.dim()}.")
    dim %= a.dim()
    start, n = int(start), a.size(dim)
    start += n * (start < 0)
    if start < 0 or length < 0 or start + length > n:
        raise RuntimeError(
            f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {n}), got start "
            f"({start}) + length ({length}); it exceeds dimension size ({n})."
        )
    size = [*a.shape[:dim], length, *a.shape[dim + 1 :]]
    if dim >= a.sparse_dim():
        return make(
            a._coords, a._entries.narrow(dim - a.sparse_dim() + 1, start, length).clone(), size, a._coalesced
        )
    here = ((a._coords[dim] >= start) & (a._coords[dim] < start + length)).nonzero().squeeze(1)
    coords = a._coords[:, here]
    coords[dim] -= start
    return make(coords, a._entries[here], size, a._coalesced)
