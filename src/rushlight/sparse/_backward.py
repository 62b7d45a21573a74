"""Backward from, and to, sparse tensors: their entries are what the graph knows."""

import rushlight as rl
from rushlight.sparse._coo import SparseTensor


class _Given(rl.autograd.Function):
    """A number whose gradient with respect to a dense tensor is a given sparse one."""

    @staticmethod
    def forward(ctx, dense, sparse):
        ctx.given = sparse
        return dense.new_zeros(())

    @staticmethod
    def backward(ctx, grad):
        return ctx.given, None


def _entries(t):
    return t._entries if isinstance(t, SparseTensor) else t


def _end(root, grad):
    """(root, gradient), both dense, that stand for these in the graph."""
    if grad is not None and tuple(grad.shape) != tuple(root.shape):
        raise RuntimeError(
            f"Mismatch in shape: grad_output[0] has a shape of {grad.shape} and output[0] has a shape of {root.shape}."
        )
    if not isinstance(root, SparseTensor):
        if isinstance(grad, SparseTensor):
            return _Given.apply(root, grad), None
        return root, grad
    if root.layout is not rl.sparse_coo:
        return root.to_dense(), grad.to_dense() if isinstance(grad, SparseTensor) else grad
    if isinstance(grad, SparseTensor):
        same = grad._coords.shape == root._coords.shape and rl.equal(grad._coords, root._coords)
        if same and (root._coalesced or root.layout is not rl.sparse_coo):
            return root._entries, grad._entries
        grad = grad.to_dense()
    return root._entries, None if grad is None else root._picked(grad)


def run_backward(roots, grads, retain, create_graph, inputs, accumulate, rows=-1):
    """The engine's call, with the entries in place of the sparse tensors they belong to."""
    with rl.enable_grad():
        ends = [_end(t, g) for t, g in zip(roots, grads or (None,) * len(roots), strict=True)]
    wanted = tuple(_entries(t) for t in inputs)
    found = rl._C.ops["_run_backward"](
        tuple(t for t, _ in ends), tuple(g for _, g in ends), retain, create_graph, wanted, accumulate, rows
    )
    if accumulate:
        return found
    return tuple(
        t._gradient(g) if isinstance(t, SparseTensor) and g is not None else g
        for t, g in zip(inputs, found, strict=True)
    )
