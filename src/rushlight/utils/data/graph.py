"""Which pipes a pipe reads."""

from __future__ import annotations

import functools
import io
import pickle
import types
from collections.abc import Collection
from typing import Any

import rushlight as rl
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]
# What is no pipe and holds none, and may not be picklable.
_OPAQUE = (
    types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType, types.GeneratorType, type, io.IOBase,
    functools.partial, rl.Tensor,
)  # fmt: skip


class _Finder(pickle.Pickler):
    """Goes through the state of a pipe, as pickling does, up to the next pipes."""

    def __init__(self, seen: set[int]) -> None:
        super().__init__(io.BytesIO())
        self.seen, self.found = seen, list[Any]()

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _OPAQUE):
            return "opaque"
        if not isinstance(obj, IterDataPipe | MapDataPipe):
            return None
        if id(obj) not in self.seen:
            self.seen.add(id(obj))
            self.found.append(obj)
        return "pipe"


def _connected(pipe: Any, seen: set[int]) -> list[Any]:
    finder = _Finder(seen)
    state = pipe.__getstate__()
    for value in (state if isinstance(state, dict) else vars(pipe)).values():
        if isinstance(value, IterDataPipe | MapDataPipe | Collection):
            try:
                finder.dump(value)
            except Exception:  # noqa: BLE001, S112  (an element that is not picklable is no pipe)
                continue
    return finder.found


def traverse_dps(datapipe: Any) -> dict[int, Any]:
    """{id(pipe): (pipe, the same for the pipes that it reads)}.

    Args:
        datapipe: the last pipe.

    Example:
        >>> from rushlight.utils.data.datapipes.iter import IterableWrapper
        >>> from rushlight.utils.data.graph import traverse_dps
        >>> source = IterableWrapper(range(3))
        >>> batches = source.batch(2)
        >>> traverse_dps(batches) == {id(batches): (batches, {id(source): (source, {})})}
        True
    """
    return _traversed(datapipe, set())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> dict[int, Any]:
    """traverse_dps by its older name.

    Args:
        datapipe: the last pipe.
        only_datapipe: accepted. Default: None
    """
    return _traversed(datapipe, set())


def _traversed(pipe: Any, seen: set[int]) -> dict[int, Any]:
    if not isinstance(pipe, IterDataPipe | MapDataPipe):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    if id(pipe) in seen:
        return {}
    seen.add(id(pipe))
    inner: dict[int, Any] = {}
    for item in _connected(pipe, set(seen)):
        inner.update(_traversed(item, set(seen)))  # what was seen on this path; the graph may join again
    return {id(pipe): (pipe, inner)}


__getattr__ = _unsupported_attribute(__name__)
