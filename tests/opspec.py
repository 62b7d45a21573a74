"""One record per op; tests/ops/test_ops.py derives all generic tests from it.

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


def reseed():
    """Begins the random samples anew: each test draws the same ones, whichever ran before it."""
    global _generator
    _generator = np.random.default_rng(0)


def randn(*size, dtype=np.float64):
    """A float64 tensor of normal values."""
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


def tensors(result):
    return [result] if isinstance(result, rl.Tensor) else [t for t in result if isinstance(t, rl.Tensor)]


def differentiable(x):
    return isinstance(x, rl.Tensor) and x.dtype in (rl.float64, rl.complex128)


def parts(sample):
    """(inputs to differentiate, function of them); lists of tensors count one by one."""
    values = [sample.input, *sample.args]
    at = []
    for i, v in enumerate(values):
        if differentiable(v):
            at.append((i, None))
        elif isinstance(v, list | tuple):
            at += [(i, k) for k, item in enumerate(v) if differentiable(item)]

    def get(i, k):
        return values[i] if k is None else values[i][k]

    def call(function):
        def on(*inputs):
            full = [list(v) if isinstance(v, list | tuple) else v for v in values]
            for (i, k), x in zip(at, inputs):
                if k is None:
                    full[i] = x
                else:
                    full[i][k] = x
            result = function(*full, **sample.kwargs)
            return tuple(t for t in tensors(result) if differentiable(t))

        return on

    return [get(i, k).detach().clone().requires_grad_() for i, k in at], call
