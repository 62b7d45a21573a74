"""Data pipes: streams and maps of samples that are chained by methods, `IterableWrapper(files).map(read).batch(8)`."""

from . import iter as iter  # noqa: PLC0414
from . import map as map  # noqa: PLC0414
