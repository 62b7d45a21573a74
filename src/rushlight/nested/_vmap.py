"""vmap over the tensors of a nested tensor: each has a shape of its own, so that they run one after the other."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight._C import Tensor
from rushlight._transforms.vmap.batched import _levels, random_as
from rushlight.nested._make import as_nested_tensor
from rushlight.nested._tensor import Nested
from rushlight.utils._pytree import tree_flatten, tree_unflatten


def map_nested(func, leaves, dims, spec, kwargs, out_dims, randomness, flat_out_dims):
    """vmap(func) of leaves of which some are nested; the results are nested, too."""
    if _levels.stack or _levels.nested:
        raise RuntimeError("Only one level of vmap is supported when vmapping over nested tensors")
    mapped = [(leaf, dim) for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    nested = [(leaf, dim) for leaf, dim in mapped if isinstance(leaf, Nested)]
    if not nested:
        raise RuntimeError("vmap: a nested tensor inside a vmap must be mapped over, with in_dims=0")
    if any(dim % leaf.dim() for leaf, dim in nested):
        raise RuntimeError("Nested tensors can only be vmapped over dim=0, but got another in_dims for one")
    if any(dim % leaf.dim() for leaf, dim in mapped):
        raise RuntimeError(
            "Fallback not supported for mixed nested / non-nested arguments without bdim=0: move the mapped dimension to the front"
        )
    parts = [leaf.unbind() if dim is not None else None for leaf, dim in zip(leaves, dims, strict=True)]
    sizes = {len(p) for p in parts if p is not None}
    if len(sizes) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sorted(sizes)} for the "
            "mapped dimension"
        )
    state = rl.get_rng_state() if randomness == "same" else None
    columns: list[list[Any]] = []
    out_spec = None
    _levels.nested = True
    try:
        for i in range(sizes.pop()):
            if state is not None:
                rl.set_rng_state(state)
            args = [leaf if p is None else p[i] for leaf, p in zip(leaves, parts, strict=True)]
            with random_as("error" if randomness == "error" else "same"):
                flat, out_spec = tree_flatten(func(*tree_unflatten(args, spec), **kwargs))
            columns = columns or [[] for _ in flat]
            for column, value in zip(columns, flat, strict=True):
                column.append(value)
    finally:
        _levels.nested = False
    if columns is None:
        raise RuntimeError("vmap: a nested tensor without tensors has nothing to map over")
    targets = flat_out_dims(func, out_dims, out_spec, [c[0] for c in columns])
    layout = nested[0][0].layout
    return tree_unflatten([_joined(c, d, layout) for c, d in zip(columns, targets, strict=True)], out_spec)


def _joined(values, dim, layout):
    if dim is None:
        return values[0]
    if not all(isinstance(v, Tensor) for v in values):
        raise ValueError(f"vmap: the function must only return Tensors, got type {type(values[0])}")
    if dim % (values[0].dim() + 1):
        raise RuntimeError("Nested tensors can only be vmapped over dim=0, but got another out_dims for one")
    if layout is rl.jagged and values[0].dim() == 0:
        return rl.stack(values)
    return as_nested_tensor(values, layout=layout)
