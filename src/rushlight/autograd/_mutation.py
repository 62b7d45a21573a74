"""allow_mutation_on_saved_tensors: a tensor that was saved for backward is copied before it is written to."""

from __future__ import annotations

import contextlib
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import rushlight as rl
from rushlight.overrides import TorchFunctionMode

from .graph import saved_tensors_hooks

_running = False


class _Handle:
    """Stands for a saved tensor in the graph."""

    __slots__ = ("__weakref__",)


class _Context:
    """What a block knows of its saved tensors. Handles are held by the graph alone, and all here goes with them."""

    def __init__(self) -> None:
        self.cloned: weakref.WeakKeyDictionary[Any, Any] = (
            weakref.WeakKeyDictionary()
        )  # handle -> copy of the tensor as it was when it was saved
        self.original: weakref.WeakKeyDictionary[Any, Any] = (
            weakref.WeakKeyDictionary()
        )  # handle -> tensor that was not written to since
        self.tid_to_weakhandle: weakref.WeakValueDictionary[Any, Any] = (
            weakref.WeakValueDictionary()
        )  # identity of a tensor at a version -> handle
        self.sid_to_tid: defaultdict[Any, set[Any]] = defaultdict(
            set
        )  # storage -> identities of tensors in it

    def clear(self) -> None:
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def pack(self, tensor: rl.Tensor) -> Any:
        identity = _identity(tensor)
        handle = self.tid_to_weakhandle.get(identity)
        if handle is None:
            handle = _Handle()
            self.tid_to_weakhandle[identity] = handle
            self.original[handle] = tensor
            self.sid_to_tid[_storage(tensor)].add(identity)
        return handle

    def unpack(self, handle: Any) -> Any:
        if handle in self.cloned:
            return self.cloned[handle]
        if not _running or handle not in self.original:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return self.original[handle]

    def before_write(self, tensor: rl.Tensor) -> None:
        """Copies what was saved of the tensor's memory."""
        for identity in self.sid_to_tid.pop(_storage(tensor), ()):
            handle = self.tid_to_weakhandle.get(identity)
            if handle is None or handle in self.cloned:
                continue
            with rl.no_grad():
                self.cloned[handle] = self.original.pop(handle).detach().clone()
            del self.tid_to_weakhandle[identity]


def _storage(tensor: rl.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _identity(
    tensor: rl.Tensor,
) -> tuple[int, int, tuple[int, ...], tuple[int, ...], rl.dtype, bool, bool, int]:
    return (_storage(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype,
            tensor.is_conj(), tensor.is_neg(), tensor._version)  # fmt: skip


class _CopyBeforeWrite(TorchFunctionMode):
    def __init__(self, context: Any) -> None:
        super().__init__()
        self.context = context

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        for written in _written(getattr(func, "__name__", ""), args, kwargs):
            if isinstance(written, rl.Tensor):
                self.context.before_write(written)
        return func(*args, **kwargs)


def _written(name: str, args: Any, kwargs: dict[str, Any]) -> Iterator[Any]:
    """The tensors that a call writes to."""
    out = kwargs.get("out")
    if out is not None:
        yield from out if isinstance(out, (tuple, list)) else (out,)
    in_place = name.endswith("_") and not name.endswith("__")
    if args and (in_place or name == "__setitem__" or (name.startswith("__i") and name[3:-2] in _OPERATORS)):
        yield from args[0] if isinstance(args[0], (tuple, list)) else (args[0],)


_OPERATORS = {
    "add",
    "sub",
    "mul",
    "truediv",
    "div",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
}
_OPERATORS.add("matmul")


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Any]:
    """Context in which tensors may be written to although backward needs them: they are copied first.

    Backward must run inside the same block."""
    global _running
    context = _Context()
    if _running:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    with _CopyBeforeWrite(context), saved_tensors_hooks(context.pack, context.unpack):
        _running = True
        try:
            yield context
        finally:
            _running = False
            context.clear()
