"""Reductions: over the elements that have a value."""

import rushlight as rl
from rushlight.ops import aten

__all__: list = []

REDUCE_NAMES = ["sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "norm", "var", "std"]

NATIVE_REDUCE_FNS = [getattr(aten, name) for name in REDUCE_NAMES]
TORCH_REDUCE_FNS = [getattr(rl, name) for name in REDUCE_NAMES]
TENSOR_REDUCE_FNS = [getattr(rl.Tensor, name) for name in REDUCE_NAMES]
