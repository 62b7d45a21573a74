"""Backward from, and to, nested tensors: their elements are what the graph knows."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight.nested._tensor import Nested, StridedNested


def _end(root, grad):
    """(root, gradient), both plain, that stand for these in the graph."""
    if not isinstance(root, Nested):
        if isinstance(grad, Nested):
            raise RuntimeError(
                "grad_output is a nested tensor and the output is not: expected a gradient of the output's kind"
            )
        return root, grad
    if grad is None:
        if root.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return root._held, None
    if type(grad) is not type(root):
        raise RuntimeError("Expected the gradient of a nested tensor to be a nested tensor of its layout")
    if isinstance(root, StridedNested):
        if grad._sizes != root._sizes:
            raise RuntimeError(
                "Mismatch in shape: the tensors of grad_output have other sizes than those of the output"
            )
        if (grad._steps, grad._starts) == (root._steps, root._starts):
            return root._held, grad._held
        held: list[Any] = [root.contiguous(), grad.contiguous()]
        return held[0]._held, held[1]._held
    return root._held, grad._ordered_as(root)


def run_backward(roots, grads, retain, create_graph, inputs, accumulate, rows=-1):
    """The engine's call, with the elements in place of the nested tensors they belong to."""
    if rows >= 0:
        raise RuntimeError(
            "is_grads_batched=True is not supported for nested tensors: call grad() once per gradient"
        )
    ends = [_end(t, g) for t, g in zip(roots, grads or (None,) * len(roots), strict=True)]
    wanted = tuple(t._held if isinstance(t, Nested) else t for t in inputs)
    found = rl._C.ops["_run_backward"](
        tuple(t for t, _ in ends), tuple(g for _, g in ends), retain, create_graph, wanted, accumulate, rows
    )
    if accumulate:
        return found
    return tuple(
        t._like(g) if isinstance(t, Nested) and g is not None else g
        for t, g in zip(inputs, found, strict=True)
    )
