"""Jacobians by one run of the function at many copies of its arguments, and one backward through all of them.

Copies do not mix, so each may be asked for a derivative of its own: row i of a Jacobian is the gradient of output i at copy i.
The copies run under vmap. What that cannot map at once (an op without a rule, random numbers, values that decide what is run,
writes to tensors from outside) is left to the caller, who does it row by row.
"""

import rushlight as rl

from ._vmap import Unmapped, vmap
from .utils._pytree import tree_flatten

_MOST = 1 << 24  # elements of inputs and outputs in one run, unless chunk_size says how many copies


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


def _at_copies(run, inputs, outputs, count, connected):
    """(copies of the inputs, the results at them), both with the copies along dimension 0."""
    if connected:
        many = [x.unsqueeze(0).expand(count, *x.shape) for x in inputs]
    else:
        many = [x.detach().unsqueeze(0).repeat(count, *(1,) * x.dim()).requires_grad_() for x in inputs]
    results = tree_flatten(vmap(run, _frozen=True)(*many))[0]
    if [r.shape[1:] for r in results] != [o.shape for o in outputs]:
        raise Unmapped("the results at copies of the arguments have other shapes")
    return many, results


def _in_chunks(one, space, run, inputs, outputs, connected, chunk_size):
    """The parts that `one` makes of each chunk, joined; None where the function cannot be mapped. It ran before as it is, so that no
    error of its own is lost.
    """
    count = sum(t.numel() for t in space)
    if count < 2 or not all(t.numel() for t in (*inputs, *outputs)):
        return None
    step = chunk_size or max(1, _MOST // sum(t.numel() for t in (*inputs, *outputs)))
    parts = []
    try:
        with rl.enable_grad():
            for low in range(0, count, step):
                high = min(low + step, count)
                many, results = _at_copies(run, inputs, outputs, high - low, connected)
                parts.append(one(many, results, _units(space, low, high)))
    except Exception:
        return None
    return [column[0] if len(column) == 1 else rl.cat(column) for column in zip(*parts, strict=True)]


def rows(run, inputs, outputs, pull_back, connected, chunk_size=None):
    """The Jacobian's rows, (outputs' elements, *x.shape) for each input x. `run` gives the outputs at given inputs;
    `pull_back(outputs, cotangents, inputs, create_graph)` differentiates; `connected` keeps the result part of the graph of the inputs.
    """

    def one(many, results, units):
        return pull_back(results, units, many, connected)

    return _in_chunks(one, outputs, run, inputs, outputs, connected, chunk_size)


def columns(run, inputs, outputs, pull_back, connected, chunk_size=None):
    """The Jacobian's columns, (inputs' elements, *y.shape) for each output y: u -> u^T J is linear in u, and its own derivative
    along a unit vector is a column.
    """

    def one(many, results, units):
        u = [rl.zeros_like(r).detach().requires_grad_() for r in results]
        return pull_back(pull_back(results, u, many, True), units, u, connected)

    return _in_chunks(one, inputs, run, inputs, outputs, connected, chunk_size)
