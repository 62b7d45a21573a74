"""Jacobians by one backward pass for all of their rows: the gradients of a graph are linear in what is sent into it, and it can be
sent a stack of unit vectors (Note [Stacked gradients] in csrc/autograd/node.h).
"""

from __future__ import annotations

from typing import Any

import rushlight as rl

_MOST = 1 << 24  # elements of inputs and outputs in one pass, unless chunk_size says how many rows


def _units(space, low, high):
    """Unit vectors low to high of the space that tensors span together: for each of them (high - low, *shape)."""
    first, parts = 0, []
    for t in space:
        part = rl.zeros(high - low, t.numel(), dtype=t.dtype, device=t.device)
        if first < high and low < first + t.numel():
            part.diagonal(low - first).fill_(1)
        parts.append(part.reshape(high - low, *t.shape))
        first += t.numel()
    return parts


def pull_back(
    outputs: Any,
    cotangents: Any,
    inputs: Any,
    create_graph: bool,
    retain_graph: bool = True,
    stacked: bool = False,
) -> Any:
    """Vector-Jacobian products, None where there is no path; of a stack of vectors all at once."""
    live = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o is not None and o.requires_grad]
    if not live:
        return (None,) * len(inputs)
    return rl.autograd.grad(
        [o for o, _ in live],
        inputs,
        [c for _, c in live],
        create_graph=create_graph,
        retain_graph=retain_graph,
        allow_unused=True,
        is_grads_batched=stacked,
    )


def _vjps(outputs, inputs, create_graph, chunk_size):
    """(all elements of the outputs, *x.shape) for each x of the inputs: their derivatives."""
    count, size = (sum(t.numel() for t in ts) for ts in (outputs, inputs))
    step = chunk_size or max(1, _MOST // max(1, count + size))
    parts: list[list[rl.Tensor]] = [[] for _ in inputs]
    for low in range(0, count, step):
        high = min(low + step, count)
        units = _units(outputs, low, high)
        if high - low == 1:
            found = pull_back(outputs, [u[0] for u in units], inputs, create_graph)
            found = [None if g is None else g.unsqueeze(0) for g in found]
        else:
            found = pull_back(outputs, units, inputs, create_graph, stacked=True)
        for part, g, x in zip(parts, found, inputs, strict=True):
            part.append(rl.zeros(high - low, *x.shape, dtype=x.dtype, device=x.device) if g is None else g)
    none = [rl.zeros(0, *x.shape, dtype=x.dtype, device=x.device) for x in inputs]
    return [
        part[0] if len(part) == 1 else rl.cat(part) if part else empty
        for part, empty in zip(parts, none, strict=True)
    ]


def rows(outputs: Any, inputs: Any, create_graph: bool, chunk_size: int | None = None) -> Any:
    """The Jacobian by its rows: [output][input] blocks of shape (*y.shape, *x.shape)."""
    with rl.enable_grad():
        found = _vjps(outputs, inputs, create_graph, chunk_size)
    parts = [g.split([y.numel() for y in outputs]) for g in found]  # [input][output]
    return [
        [part[k].reshape((*y.shape, *x.shape)) for part, x in zip(parts, inputs, strict=True)]
        for k, y in enumerate(outputs)
    ]


def columns(outputs: Any, inputs: Any, create_graph: bool, chunk_size: int | None = None) -> Any:
    """The Jacobian by its columns, as `rows` gives it: u -> u^T J is linear in u, and its derivative along a unit vector is a column."""
    with rl.enable_grad():
        u = [rl.zeros_like(y).detach().requires_grad_() for y in outputs]
        pulled = pull_back(outputs, u, inputs, True)
        pulled = [rl.zeros_like(x) if p is None else p for p, x in zip(pulled, inputs, strict=True)]
        found = _vjps(pulled, u, create_graph, chunk_size)
    return [
        [
            part.movedim(0, -1).reshape((*y.shape, *x.shape))
            for part, x in zip(g.split([x.numel() for x in inputs]), inputs, strict=True)
        ]
        for g, y in zip(found, outputs, strict=True)
    ]
