"""What a program may look like, and how one is drawn: a seed and a number give the same program for ever."""

import random

from .registry import STEPS

# Each adds its steps; the order is part of what a seed means.
from . import views, writes, indices, attributes, results, outs, gradients  # noqa: E402, F401, I001 # isort: skip


LEAF_SHAPES = ((3,), (2, 3), (3, 3), (2, 2, 3), (), (3,), (2, 3), (1, 3), (0, 3))
LEAF_TYPES = ("float64",) * 12 + ("float32", "float32", "float16", "bfloat16", "int64", "bool", "complex128")
MODES = ("",) * 16 + ("no_grad", "no_grad", "enable_grad", "inference_mode")

WHEELS = {
    kind: [name for name, (_, weight) in steps.items() for _ in range(weight)]
    for kind, steps in STEPS.items()
}
KINDS = ("view",) * 9 + ("write",) * 11 + ("pure",) * 6 + ("grad",) * 3 + ("out",)


def generate(rng):
    """A program: leaves (shape, type, requires_grad, seed of its values, whether it is multiplied by 1), then steps."""
    number = lambda n: int(rng.random() * n)  # noqa: E731 - a quarter of the price of randrange
    pick = lambda of: of[int(rng.random() * len(of))]  # noqa: E731
    leaves = [
        (pick(LEAF_SHAPES), pick(LEAF_TYPES), rng.random() < 0.7, number(1 << 30), rng.random() < 0.5)
        for _ in range(1 + number(3))
    ]
    steps = []
    for _ in range(2 + number(9)):
        kind = pick(KINDS)
        # Half of the time the latest tensors: programs that build on what they did.
        i, j, l = (-1 - number(3) if rng.random() < 0.5 else number(1 << 16) for _ in range(3))  # noqa: E741
        mode = pick(MODES)
        if kind == "grad" and mode == "inference_mode":
            mode = ""  # nothing can be added to the gradients that are made there
        steps.append((kind, pick(WHEELS[kind]), mode, i, j, l, number(1 << 16)))
    steps.append(("grad", "backward", "", -1, 0, 0, 1))
    return leaves, steps


def program(seed, number):
    return generate(random.Random(seed * 10**9 + number))
