"""Primitives of sparse tensors that PyTorch lists among its functions."""

import rushlight as rl
from rushlight._core.compose import public
from rushlight.sparse._coo import make
from rushlight.sparse._functions import HANDLERS, handles


def _not_sparse(name):
    raise NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it takes sparse tensors, which "
        "torch.sparse_coo_tensor and .to_sparse() make"
    )


@public
def native_norm(input, p=2, dim=(), keepdim=False, dtype=None):
    """The p-norm of all values of a sparse tensor."""
    _not_sparse("native_norm")


@handles("native_norm")
def _norm(input, p=2, dim=(), keepdim=False, dtype=None):
    if dim and sorted(d % input.dim() for d in dim) != list(range(input.dim())):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions "
            "of the input"
        )
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    if dtype is not None:
        raise RuntimeError("norm_sparse currently does not support 'dtype' argument")
    return HANDLERS["norm"](input, p)


@public
def _sparse_broadcast_to(input, size):
    """A sparse tensor repeated along dimensions of one index, or further ones in front."""
    _not_sparse("_sparse_broadcast_to")


@public
def _sparse_broadcast_to_copy(input, size):
    """The same, in memory of its own."""
    _not_sparse("_sparse_broadcast_to_copy")


@handles("_sparse_broadcast_to", "_sparse_broadcast_to_copy")
def _broadcast(input, size):
    """Each entry once for every index it is repeated at."""
    size, more = tuple(size), len(size) - input.dim()
    if more < 0 or any(n != m and m != 1 for n, m in zip(size[more:], input.shape, strict=True)):
        raise RuntimeError(
            f"The input of sizes {tuple(input.shape)} does not broadcast over the requested shape {size}: a dimension of "
            "one index can be repeated, and further ones can come in front"
        )
    sparse_dim = input.sparse_dim() + more
    values = input._entries.expand(input._nnz(), *size[sparse_dim:])
    old = [None] * more + list(input._coords)
    repeated = [d for d in range(sparse_dim) if d < more or (input.size(d - more) == 1 and size[d] != 1)]
    times = rl.Size([size[d] for d in repeated]).numel()
    grid = rl.arange(times)
    rows: list = [None] * sparse_dim
    for d in reversed(repeated):
        rows[d] = (grid % size[d]).repeat(input._nnz())
        grid = grid // size[d]
    for d in range(sparse_dim):
        if rows[d] is None:
            rows[d] = old[d].repeat_interleave(times)
    return make(rl.stack(rows), values.repeat_interleave(times, 0), size, input._coalesced and not repeated)
