"""From dense to sparse and back; the sparse tensor itself lives in rushlight.sparse."""

from rushlight._compose import op


@op(method=True)
def to_sparse(input, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The nonzero entries as a sparse tensor (COO)."""
    from rushlight.sparse import _coo

    if layout is not None and not str(layout).endswith("sparse_coo"):
        raise NotImplementedError(f"to_sparse: only the layout torch.sparse_coo is supported, got {layout}")
    return _coo.to_sparse(input, sparse_dim)


@op(method=True)
def to_dense(input, dtype=None, *, masked_grad=None):
    """The tensor itself, which is dense."""
    return input if dtype is None else input.to(dtype)


@op(method=True)
def to_sparse_csr(input, dense_dim=None):
    """The nonzero entries of a matrix as compressed rows (CSR)."""
    from rushlight.sparse import _csr

    return _csr.to_sparse_csr(input)


@op(method=True)
def is_coalesced(input):
    """Whether no two entries of a sparse tensor have the same place."""
    raise RuntimeError("is_coalesced expected sparse coordinate tensor layout but got Strided")


@op(method=True)
def coalesce(input):
    """A sparse tensor whose entries at the same place are added up."""
    raise RuntimeError("coalesce expected sparse coordinate tensor layout but got Strided")
