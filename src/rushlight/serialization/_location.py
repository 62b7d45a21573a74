"""Where the storages of a file go: map_location in all its forms."""

import rushlight as rl
from rushlight import storage as _storage_methods  # noqa: F401  (cpu() and others for map_location functions)
from rushlight.serialization._storage import LoadedStorage, tensor_over_storage

_packages = []  # (priority, tag function, restore function)


def register_package(priority, tagger, deserializer):
    """Teaches save and load a device: tagger(storage) -> location or None, deserializer(storage,
    location).
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda row: row[0])


def location_tag(storage):
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location:
            return location
    return str(getattr(storage, "device", "cpu"))


def default_restore_location(storage, location):
    """The storage where its location says; here that is the CPU, or nowhere ("meta")."""
    for _, _, restore in _packages:
        result = restore(storage, location)
        if result is not None:
            return result
    if location == "cpu":
        return storage
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


def mapper(map_location):
    """place(loaded storage, location) -> loaded storage, for any form of map_location."""
    if map_location is None:

        def target(location):
            return location
    elif isinstance(map_location, dict):

        def target(location):
            return str(map_location.get(location, location))
    elif isinstance(map_location, (str, bytes, rl.device)):
        name = map_location.decode() if isinstance(map_location, bytes) else str(map_location)

        def target(location):
            return name
    elif callable(map_location):
        return lambda stored, location: _by_function(map_location, stored, location)
    else:
        raise TypeError(
            "map_location must be None, a device, its name, a dict from location to location, or a function, "
            f"not a {type(map_location).__name__}"
        )
    return lambda stored, location: _place(stored, target(location))


def _place(stored, location):
    if location == "meta":
        return LoadedStorage(stored.data, stored.dtype, stored.untyped, stored.start, device="meta")
    storage = stored.data.untyped_storage()
    result = default_restore_location(storage, location)
    return _replaced(stored, storage, result)


def _by_function(function, stored, location):
    storage = stored.data.untyped_storage()
    result = function(storage, location)
    if result is None:
        result = default_restore_location(storage, location)
    return _replaced(stored, storage, result)


def _replaced(stored, storage, result):
    if result is storage or getattr(result, "data_ptr", lambda: None)() == storage.data_ptr():
        return stored
    return LoadedStorage(tensor_over_storage(result), stored.dtype, stored.untyped, stored.start)
