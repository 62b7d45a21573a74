"""One record per op; tests/test_ops.py derives all generic tests from it.

    OpSpec("exp", lambda: [Sample(randn(3, 4)), Sample(randn())], numpy=np.exp, inplace=True)

Samples hold rushlight tensors; float64 inputs are differentiated (first and second order) unless `grad=False`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import rushlight as rl


@dataclass
class Sample:
    input: Any
    args: tuple = ()
    kwargs: dict = field(default_factory=dict)

    def __init__(self, input, *args, **kwargs):
        self.input, self.args, self.kwargs = input, args, kwargs


@dataclass
class OpSpec:
    name: str  # dotted, looked up in the package: "linalg.inv"
    samples: Callable[[], Iterable[Sample]]
    numpy: Callable | None = (
        None  # the same on NumPy arrays; None: no NumPy twin (then `check` says what must hold)
    )
    check: Callable | None = None  # check(sample, result): asserts a property where NumPy has no twin
    grad: bool = True
    gradgrad: bool = True
    # What is differentiated instead, of the same arguments: where the op itself reads only a triangle, or its result
    # has arbitrary signs.
    derive: Callable | None = None
    method: bool = True
    strided: bool = True  # False: it needs elements next to each other, as torch does
    inplace: bool = False
    out: bool = False
    rtol: float = 1e-6
    errors: Callable[[], Iterable[tuple[type[Exception], Sample]]] = lambda: ()

    def __str__(self):
        return self.name

    @property
    def function(self):
        found = rl
        for part in self.name.split("."):
            found = getattr(found, part)
        return found


_generator = np.random.default_rng(0)


def randn(*size, dtype=np.float64):
    """A float64 tensor of normal numbers."""
    return rl.tensor(np.asarray(_generator.standard_normal(size), dtype=dtype))


def rand(*size, low=0.0, high=1.0):
    return rl.tensor(np.asarray(_generator.uniform(low, high, size)))


def ints(*size, low=0, high=10, dtype=np.int64):
    return rl.tensor(np.asarray(_generator.integers(low, high, size), dtype=dtype))


def to_numpy(x):
    if isinstance(x, rl.Tensor):
        return x.detach().numpy()
    if isinstance(x, tuple | list):
        return type(x)(to_numpy(v) for v in x)
    return x
