"""Sparse tensors as text: their parts as tensors of their own, one below the other."""

import rushlight as rl
from rushlight import _tensor_str as text


def _part(name, tensor):
    head = f"{name}=tensor("
    if tensor.numel() == 0:
        return f"{head}[], size={tuple(tensor.shape)})"
    return f"{head}{text._contents(tensor.detach(), len('tensor(') + len(head))})"


def describe(sparse, parts, own_line):
    """tensor(name=tensor(...), ..., size=..., nnz=...): `own_line` puts the sizes below the parts."""
    body = "tensor(" + (",\n" + " " * len("tensor(")).join(_part(*part) for part in parts)
    suffixes = [f"size={tuple(sparse.shape)}", f"nnz={sparse._nnz()}"]
    if sparse.dtype not in text._default_dtypes(nonempty=sparse._nnz() > 0):
        suffixes.append(f"dtype={sparse.dtype}")
    suffixes.append(f"layout={sparse.layout}")
    grad_fn = sparse.grad_fn
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{text._grad_fn_name(grad_fn)}>")
    elif sparse.requires_grad:
        suffixes.append("requires_grad=True")
    return text._with_suffixes(body, suffixes, len("tensor("), own_line)


# As errors name them.
LAYOUTS = {
    rl.strided: "Strided",
    rl.sparse_coo: "Sparse",
    rl.sparse_csr: "SparseCsr",
    rl.sparse_csc: "SparseCsc",
    rl.sparse_bsr: "SparseBsr",
    rl.sparse_bsc: "SparseBsc",
}


def layout_name(sparse):
    """As errors name it."""
    return LAYOUTS[sparse.layout]


def refuse(name, wanted, sparse):
    """The error of a part that another layout has: `crow_indices` of coordinates, say."""
    raise RuntimeError(f"{name} expected sparse {wanted}tensor layout but got {layout_name(sparse)}")


def check_sparse_dim(sparse, asked, own):
    """Coordinates of a sparse tensor have as many sparse dimensions as it has."""
    if asked is not None and asked != own:
        wanted = "self.sparse_dim()" if sparse.layout is rl.sparse_coo else own
        raise RuntimeError(
            f"to_sparse: conversion from {layout_name(sparse)} to Sparse with sparse_dim argument !={wanted} is not "
            "supported: go by way of to_dense()"
        )
