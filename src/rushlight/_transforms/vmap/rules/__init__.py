"""How ops run on a whole batch at once: one rule per kind of op, one file per family."""

from . import dims, elements, index, layers, matmul, shape  # noqa: F401  (they fill the table of rules)
from .random_ops import random
from .registry import apply, per_sample

__all__ = ["apply", "per_sample", "random"]
