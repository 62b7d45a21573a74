"""How ops run on a whole batch at once: one rule per kind of op, one file per family."""

from . import _dims, _elements, _index, _layers, _products, _shape  # noqa: F401  (they fill the table of rules)
from ._apply import apply, per_sample
from ._random import random

__all__ = ["apply", "per_sample", "random"]
