"""gradcheck for functions of sparse tensors."""

from __future__ import annotations

import functools
from typing import Any

import rushlight as rl
from rushlight.sparse._coo import SparseTensor, make


def as_sparse_gradcheck(gradcheck):
    """Makes a gradcheck (or gradgradcheck) that also takes sparse inputs.

    With masked=True gradients are compared at the entries of an input alone, otherwise at every index.

    Args:
        gradcheck (callable): autograd.gradcheck or gradgradcheck.

    Example:
        >>> check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
        >>> x = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
        >>> check(lambda x: torch.sparse.sum(x * 3), (x,), masked=True)
        True
    """

    @functools.wraps(gradcheck)
    def check(func, inputs, **kwargs):
        inputs = inputs if isinstance(inputs, tuple | list) else (inputs,)
        return gradcheck(*of_dense(func, inputs, kwargs.pop("masked", False)), **kwargs)

    return check


def of_dense(func: Any, inputs: Any, masked: Any) -> Any:
    """func and its inputs with dense tensors instead of sparse ones."""
    parts = [_dense(x, masked) for x in inputs]

    def of_parts(*args):
        results = func(*(back(x) for x, (_, back) in zip(args, parts, strict=True)))
        if isinstance(results, tuple | list):
            return tuple(map(_shown, results))
        return _shown(results)

    return of_parts, tuple(x for x, _ in parts)


def _shown(result):
    return result.to_dense() if isinstance(result, SparseTensor) else result


def _dense(x, masked):
    """A dense tensor with the elements of a sparse one, and back."""
    if not isinstance(x, SparseTensor):
        return x, lambda value: value
    if masked:
        whole = x.coalesce() if x.layout is rl.sparse_coo else x
        return whole._values().detach().clone().requires_grad_(x.requires_grad), whole._with
    dense = x.detach().to_dense().requires_grad_(x.requires_grad)
    layout, hybrid, blocksize = x.layout, x.dense_dim(), x._block() if hasattr(x, "_block") else None
    sizes = dense.shape[: dense.dim() - hybrid]
    coords = rl.ones(sizes).nonzero().t().contiguous()

    def back(value):
        every = make(
            coords, value.reshape(coords.size(1), *value.shape[value.dim() - hybrid :]), value.shape, True
        )
        if layout is rl.sparse_coo:
            return every
        return every.to_sparse(layout=layout, blocksize=blocksize if layout in _BLOCKS else None)

    return dense, back


_BLOCKS = (rl.sparse_bsr, rl.sparse_bsc)
