"""Where the storages of a file go: map_location in all its forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight.serialization._storage import bytes_of
from rushlight.storage import TypedStorage, UntypedStorage

# (priority, tag function, restore function)
_packages: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = []


def register_package(
    priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]
) -> None:
    """Teaches save and load a device.

    Args:
        priority (int): lower ones are asked first.
        tagger (callable): from a storage to the location that files name, or None.
        deserializer (callable): from (storage, text) to the storage at that location, or None.

    Example:
        >>> def tagger(storage):
        ...     return "mine" if storage.device.type == "mine" else None
        >>> torch.serialization.register_package(50, tagger, lambda storage, location: None)
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda row: row[0])


def location_tag(storage: Any) -> str:
    """The location of a storage, as a file names it.

    Args:
        storage (UntypedStorage): any.

    Example:
        >>> torch.serialization.location_tag(torch.ones(1).untyped_storage())
        'cpu'
    """
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location:
            return location
    return str(getattr(storage, "device", "cpu"))


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage at the location that a file names: on the CPU, on a device that has a backend, or nowhere ("meta").

    Args:
        storage (UntypedStorage): as it was read.
        location (str): the text in the file.

    Example:
        >>> storage = torch.serialization.default_restore_location(torch.ones(1).untyped_storage(), "cpu")
        >>> storage.device
        device(type='cpu')
    """
    for _, _, restore in _packages:
        result = restore(storage, location)
        if result is not None:
            return result
    if location == "cpu":
        return storage
    try:
        return storage.to(device=location)
    except (AssertionError, RuntimeError):  # no such device, here or at all
        kind = location.split(":")[0]
    if kind == "cuda":
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
            "If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    raise RuntimeError(
        f"don't know how to restore data location of {type(storage).__name__} (tagged with {location}); "
        "use torch.load with map_location='cpu'"
    )


class Placement:
    """Where the storages of one load() call go: what map_location says."""

    def __init__(self, map_location: Any) -> None:
        self.function = self.table = self.name = None
        if isinstance(map_location, dict):
            self.table = map_location
        elif isinstance(map_location, (str, bytes, rl.device)):
            self.name = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
        elif callable(map_location):
            self.function = map_location
        elif map_location is not None:
            raise TypeError(
                "map_location must be None, a device, its name, a dict from location to location, or a "
                f"function, not a {type(map_location).__name__}"
            )

    def _target(self, location: str) -> str:
        if self.table is not None:
            return str(self.table.get(location, location))
        return location if self.name is None else self.name

    def is_nowhere(self, location: str) -> bool:
        """Whether such a storage goes to the device without memory, so that its bytes need not be read."""
        return self.function is None and self._target(location).split(":")[0] == "meta"

    def locate(self, storage: TypedStorage, location: str) -> TypedStorage:
        """The typed storage, moved."""
        if self.is_nowhere(location):
            return storage
        untyped = bytes_of(storage)
        if self.function is None:
            moved = default_restore_location(untyped, self._target(location))
        else:
            moved = self.function(untyped, location)
            if moved is None:
                moved = default_restore_location(untyped, location)
        if isinstance(moved, TypedStorage):
            moved = moved._untyped_storage
        if not isinstance(moved, UntypedStorage):
            raise TypeError(f"map_location must give a storage or None, not a {type(moved).__name__}")
        if moved.nbytes() < untyped.nbytes():
            raise RuntimeError(
                f"map_location gave a storage of {moved.nbytes()} bytes for one of {untyped.nbytes()}"
            )
        return (
            storage
            if moved is untyped
            else TypedStorage(wrap_storage=moved, dtype=storage._dtype, _internal=True)
        )
