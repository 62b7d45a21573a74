"""What all readers of checkpoints share: unpickling by the rules of one load() call, and making storages."""

from __future__ import annotations

import io

import rushlight as rl
from rushlight import _utils
from rushlight.serialization import _options
from rushlight.serialization._allowed import SafeHooks, callables, file_name, storage_types
from rushlight.serialization._location import Placement
from rushlight.serialization._storage import StorageType, typed
from rushlight.serialization._vm import Machine, UnpicklingError, globals_of, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from rushlight._C import Tensor, dtype
    from rushlight.storage import TypedStorage


class Reader:
    """Unpickles and makes storages by the rules of one load() call."""

    def __init__(
        self, map_location: Any, weights_only: bool, pickle_module: ModuleType, pickle_args: dict[str, Any]
    ) -> None:
        self.placement = Placement(map_location)
        self.weights_only = weights_only
        self.pickle_module = pickle_module
        self.pickle_args = {"encoding": "utf-8", **pickle_args}

    def unpickle(self, data: bytes, pos: int, persistent: Callable[[Any], Any]) -> tuple[Any, int]:
        """(object, end) of the pickle at data[pos:]"""
        if self.weights_only:
            hooks = SafeHooks(len(data) - pos, lambda: globals_of(data, pos))
            return run_safely(hooks, data, pos, persistent, self.pickle_args["encoding"])
        stream = io.BytesIO(data)
        stream.seek(pos)
        unpickler = _executing(self.pickle_module)(stream, **self.pickle_args)
        unpickler.persistent_load = persistent
        return unpickler.load(), stream.tell()

    def make(self, location: str, dtype: dtype, length: int, read: Callable[[], Tensor]) -> TypedStorage:
        """The typed storage of `length` bytes that read() gives as a byte tensor, where map_location wants it."""
        if self.placement.is_nowhere(location):
            return typed(rl.empty(length, dtype=rl.uint8, device="meta"), dtype)
        data = rl.empty(length, dtype=rl.uint8) if _options.skips_data() else read()
        return self.placement.locate(typed(data, dtype), location)


def run_safely(
    hooks: SafeHooks, data: bytes, pos: int, persistent: Callable[[Any], Any], encoding: str = "utf-8"
) -> tuple[Any, int]:
    machine = hooks.machine = Machine(hooks, persistent, encoding)
    return machine.run(data, pos)


def storage_id(saved: Any) -> tuple[Any, ...]:
    """(storage type, key, location, count, ...) of a persistent id, checked."""
    if type(saved) is not tuple or not 5 <= len(saved) <= 6:
        raise UnpicklingError(f"unknown persistent id ({shown(saved)})")
    tag, key, location = (
        v.decode("ascii", "replace") if type(v) is bytes else v for v in (saved[0], *saved[2:4])
    )
    kind, count = saved[1], saved[4]
    if tag != "storage" or not isinstance(kind, StorageType) or type(location) is not str:
        raise UnpicklingError(f"unknown persistent id ({', '.join(map(shown, saved))})")
    if type(key) not in (str, int) or type(count) is not int or not 0 <= count < 1 << 62:
        raise UnpicklingError(f"a storage of {shown(count)} elements is not possible")
    return (kind, str(key), location, count, *saved[5:])


def _executing(pickle_module: ModuleType) -> type[Any]:
    """An unpickler that runs what the file says, with PyTorch's names meaning ours."""
    known = {**storage_types(), "torch._tensor._rebuild_from_type_v2": _utils._rebuild_from_type_v2}
    known.update({k: v for k, v in callables().items() if k.startswith("torch.")})

    class Unpickler(pickle_module.Unpickler):  # type: ignore[misc, name-defined]  # whichever the caller chose
        def find_class(self, module: str, name: str) -> Any:
            full = file_name(module, name)
            if full in known:
                return known[full]
            if full.startswith("torchvision."):
                return super().find_class("rushlight.vision" + module[len("torchvision") :], name)
            if full in ("torch._C._VariableFunctionsClass", "torch._C._VariableFunctions"):
                return rl  # whose attributes, the ops, the file asks for
            if module == "torch._C._nn" and hasattr(rl.nn.functional, name):
                return getattr(rl.nn.functional, name)
            if full.startswith("torch."):
                try:
                    return super().find_class("rushlight" + module[len(module.split(".")[0]) :], name)
                except (ImportError, AttributeError) as e:
                    raise AttributeError(
                        f"the file needs {full}, which rushlight does not have ({e})"
                    ) from None
            return super().find_class(module, name)

    return Unpickler
