"""Other sizes for a sparse tensor by coordinates, in place, and its entries where another has some."""

import rushlight as rl
from rushlight._C import Tensor
from rushlight.sparse import _coo


def _set_geometry(sparse, size):
    zero = _coo._ZEROS[sparse._entries.dtype]
    _coo.without_overrides(Tensor.set_, sparse, zero.untyped_storage(), 0, size, (0,) * len(size))


def _checked(size, sparse_dim, dense_dim):
    size = tuple(int(n) for n in size)
    if sparse_dim + dense_dim != len(size) or min(sparse_dim, dense_dim) < 0:
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: "
            f"len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    return size


def _list(sizes):
    return str(list(sizes))


def resize(sparse, size, sparse_dim, dense_dim):
    """Other sizes; while there are entries, none may become smaller and no dimension change its kind."""
    size = _checked(size, sparse_dim, dense_dim)
    if sparse._nnz():
        for kind, before, after in (
            ("sparse", sparse.sparse_dim(), sparse_dim),
            ("dense", sparse.dense_dim(), dense_dim),
        ):
            if before != after:
                raise RuntimeError(
                    f"changing the number of {kind} dimensions (from {before} to {after}) on a non-empty sparse tensor is "
                    "not supported."
                )
        for kind, part in (("sparse", slice(sparse_dim)), ("dense", slice(sparse_dim, None))):
            before, after = tuple(sparse.shape[part]), size[part]
            if any(new < old for new, old in zip(after, before, strict=True)):
                raise RuntimeError(
                    f"shrinking the size of {kind} dimensions (from {_list(before)} to {_list(after)}) on a non-empty "
                    "sparse tensor is not supported."
                )
        grown = size[sparse_dim:]
        if grown != tuple(sparse._entries.shape[1:]):
            entries = sparse._entries.new_zeros((sparse._nnz(), *grown))
            entries[(slice(None), *(slice(n) for n in sparse._entries.shape[1:]))] = sparse._entries.detach()
            sparse._entries = entries
    else:
        _empty(sparse, size, sparse_dim)
    _set_geometry(sparse, size)
    return sparse


def _empty(sparse, size, sparse_dim):
    sparse._stored = rl.empty((sparse_dim, 0), dtype=rl.int64)
    sparse._entries = sparse._entries.detach().new_empty((0, *size[sparse_dim:]))
    sparse._coalesced, sparse._unchecked = True, False


def resize_and_clear(sparse, size, sparse_dim, dense_dim):
    """Other sizes, without entries."""
    size = _checked(size, sparse_dim, dense_dim)
    _empty(sparse, size, sparse_dim)
    sparse.__dict__.pop("_starts", None)
    _set_geometry(sparse, size)
    return sparse


def resize_as(sparse, template):
    if not isinstance(template, _coo.SparseTensor) or template.layout is not rl.sparse_coo:
        raise RuntimeError(
            "resize_as_sparse_: not a sparse tensor: expected two by coordinates (torch.sparse_coo)"
        )
    kinds = template.sparse_dim(), template.dense_dim()
    if (tuple(sparse.shape), sparse.sparse_dim(), sparse.dense_dim()) == (tuple(template.shape), *kinds):
        return sparse
    return resize(sparse, template.shape, *kinds)


def projection(sparse, mask, accumulate_matches=False):
    """The tensor with the values that have no entry of the mask at their index set to zero; entries stay as many.
    With `accumulate_matches` a value counts once for each entry that the mask has at its index."""
    if not isinstance(mask, _coo.SparseTensor):
        raise RuntimeError("_sparse_mask_projection: the mask must be sparse")
    if sparse.shape != mask.shape:
        raise RuntimeError(
            f"_sparse_mask_projection(): operands have incompatible sizes; self has size {list(sparse.shape)}, mask has "
            f"size {list(mask.shape)}"
        )
    own, others = sparse._keys(), mask._keys().sort().values
    first = rl.searchsorted(others, own)
    count = rl.searchsorted(others, own, right=True) - first
    factor = count if accumulate_matches else count.clamp(max=1)
    shape = (-1, *[1] * sparse.dense_dim())
    return sparse._with(sparse._entries * factor.to(sparse.dtype).view(shape))
