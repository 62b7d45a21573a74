"""Running a program's leaves and steps on one framework."""

import math

from .registry import STEPS

ERRORS = (RuntimeError, IndexError, ValueError, TypeError, AttributeError)


def make_leaves(T, leaves):
    tensors = []
    for shape, dtype, grad, seed, derived in leaves:
        count = math.prod(shape)
        # Quarters: sums and products of a few are exact, so that comparisons in a program cannot go either way.
        values = [((seed >> (3 * i % 28)) % 17 - 8) / 4 for i in range(count)]
        x = T.tensor(values, dtype=getattr(T, dtype))
        x = x.view(shape) if seed % 8 == 0 else x.resize_(shape)
        if dtype in ("int64", "bool"):
            tensors.append(x)
            continue
        x.requires_grad_(grad)
        tensors.append(x * 1.0 if derived else x)
    return tensors


def run_step(T, step, tensors):
    """Makes a step; the name of the error's class, None if there was none."""
    kind, name, mode, i, j, l, k = step  # noqa: E741
    n = len(tensors)
    x, y, z = tensors[i % n], tensors[j % n], tensors[l % n]
    try:
        if mode:
            with getattr(T, mode)():
                result = STEPS[kind][name][0](T, x, y, z, k)
        else:
            result = STEPS[kind][name][0](T, x, y, z, k)
    except ERRORS as error:
        return error
    if result is not None and kind != "write":
        tensors.append(result)
    return None
