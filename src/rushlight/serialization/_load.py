"""load(): checkpoints of all eras (zip archives, the older streams, the first tar files)."""

import io
import os
import pickle
import sys

import rushlight as rl
from rushlight import _utils
from rushlight.serialization import _options
from rushlight.serialization._allowed import (
    SafeHooks,
    callables,
    file_name,
    plain_names,
    storage_types,
    user_names,
)
from rushlight.serialization._location import mapper
from rushlight.serialization._sniff import explain, is_zipfile
from rushlight.serialization._storage import LoadedStorage, StorageType
from rushlight.serialization._vm import Machine, UnpicklingError, globals_of
from rushlight.serialization._zip import ZipReader


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Loads what save() wrote. Unless weights_only=False is said, nothing in the file can run code."""
    weights_only = _resolve_weights_only(weights_only, pickle_module)
    is_path = isinstance(f, (str, os.PathLike))
    if mmap and not is_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    reader = _Reader(map_location, weights_only, pickle_module or pickle, pickle_load_args)
    if is_path:
        with open(f, "rb") as opened:
            return _load_file(opened, reader, os.fspath(f), bool(mmap))
    _check_seekable(f)
    return _load_file(f, reader, getattr(f, "name", None) or type(f).__name__, False)


def _resolve_weights_only(weights_only, pickle_module):
    forced = [
        os.environ.get(name, "0").lower() in ("1", "y", "yes", "true")
        for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    ]
    if all(forced):
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set"
        )
    if forced[0]:
        weights_only = True
    elif weights_only is None:
        weights_only = pickle_module is None and not forced[1]
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return weights_only


def _check_seekable(f):
    for method in ("seek", "tell", "read"):
        if not hasattr(f, method):
            raise AttributeError(
                f"{type(f).__name__!r} object has no attribute {method!r}. You can only torch.load from a "
                "file that "
                "is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from "
                "it instead."
            )
    try:
        f.seek(f.tell())
    except io.UnsupportedOperation as e:
        raise io.UnsupportedOperation(
            f"{e}. You can only torch.load from a file that is seekable. Please pre-load the data into a "
            "buffer "
            "like io.BytesIO and try to load from it instead."
        ) from None


def _load_file(f, reader, name, use_mmap):
    if is_zipfile(f):
        archive = ZipReader(f, name)
        if "constants.pkl" in archive:
            raise RuntimeError(
                f"{name} is a TorchScript archive, which contains a program; load it with PyTorch's "
                "torch.jit.load, and save its state_dict()"
            )
        return _load_zip(archive, reader, name if use_mmap else None)
    if use_mmap:
        raise RuntimeError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), "
            f"{name} is not one; please save it again with that format"
        )
    start = f.tell()
    data = f.read()
    if not data:
        raise EOFError(f"Ran out of input: {name} is empty")
    from rushlight.serialization import _legacy

    if data[257:262] == b"ustar":
        return _legacy.load_tar(data, reader, name)
    if data[:1] != b"\x80":
        said = explain(data[:65536], len(data))
        if said or reader.weights_only:
            raise UnpicklingError(f"{name} is not a checkpoint{': ' + said if said else ''}")
    result, end = _legacy.load_stream(data, reader, name)
    f.seek(start + end)
    return result


def _load_zip(archive, reader, path_to_map):
    order = archive.read("byteorder").decode("ascii", "replace") if "byteorder" in archive else None
    if order is None:
        default = _options.get_default_load_endianness()
        order = {_options.LoadEndianness.BIG: "big", _options.LoadEndianness.NATIVE: sys.byteorder}.get(
            default, "little"
        )
    elif order not in ("little", "big"):
        raise ValueError("Unknown endianness type: " + order)
    swap = order != sys.byteorder
    mapped = _map_file(path_to_map) if path_to_map else None
    loaded = {}

    def read(key, item):
        entry = f"data/{key}"
        length = archive.length(entry)
        place = archive.place(entry)
        if mapped is not None and place is not None and not swap:
            return rl.from_numpy(mapped[place : place + length]) if length else rl.empty(0, dtype=rl.uint8)
        if place is None:
            archive._bounded(entry)
        data = rl.empty(length, dtype=rl.uint8)
        if length:
            array = data.numpy()
            archive.read_into(entry, array)
            if swap and item > 1:
                array[: length // item * item].reshape(-1, item)[:] = array[: length // item * item].reshape(
                    -1, item
                )[:, ::-1]
        return data

    def persistent(saved):
        kind, key, location, count = _storage_id(saved)[:4]
        item = kind.dtype.itemsize
        if key not in loaded:
            data = read(key, item // 2 if kind.dtype.is_complex else item)
            if count * item > data.numel():
                raise UnpicklingError(
                    f"storage {key} should have {count} elements, but the file holds {data.numel() // item}"
                )
            loaded[key] = reader.place(LoadedStorage(data, kind.dtype, kind.dtype_name is None), location)
        return loaded[key]

    result, _ = reader.unpickle(archive.read("data.pkl"), 0, persistent)
    return finished(result)


def _storage_id(saved):
    """(storage type, key, location, count, ...) of a persistent id, checked."""
    if not isinstance(saved, tuple) or len(saved) < 5:
        raise UnpicklingError(f"unknown persistent id {saved!r}")
    tag, kind, key, location, count = saved[:5]
    if isinstance(tag, bytes):
        tag = tag.decode("ascii", "replace")
    key, location = (v.decode("ascii", "replace") if isinstance(v, bytes) else v for v in (key, location))
    if tag != "storage" or not isinstance(kind, StorageType) or not isinstance(location, str):
        raise UnpicklingError(f"unknown persistent id {saved!r}")
    if type(count) is not int or not 0 <= count < 1 << 62:
        raise UnpicklingError(f"a storage of {count!r} elements is not possible")
    return (kind, str(key), location, count, *saved[5:])


def _map_file(path):
    import mmap

    import numpy

    shared = _options.get_default_mmap_options() == getattr(mmap, "MAP_SHARED", None)
    return numpy.memmap(path, mode="r+" if shared else "c", dtype=numpy.uint8).view(numpy.ndarray)


class _Reader:
    """Unpickles by the rules of one load() call."""

    def __init__(self, map_location, weights_only, pickle_module, pickle_args):
        self.place = mapper(map_location)
        self.weights_only = weights_only
        self.pickle_module = pickle_module
        self.pickle_args = {"encoding": "utf-8", **pickle_args}

    def unpickle(self, data, pos, persistent):
        """(object, end) of the pickle at data[pos:]"""
        if self.weights_only:
            hooks = SafeHooks(lambda: globals_of(data, pos))
            machine = Machine(
                hooks.find, hooks.call, hooks.new, hooks.build, persistent, self.pickle_args["encoding"]
            )
            return machine.run(data, pos)
        stream = io.BytesIO(data)
        stream.seek(pos)
        unpickler = _executing(self.pickle_module)(stream, **self.pickle_args)
        unpickler.persistent_load = persistent
        return unpickler.load(), stream.tell()


def _executing(pickle_module):
    """An unpickler that runs what the file says, with PyTorch's names meaning ours."""
    known = {**storage_types(), "torch._tensor._rebuild_from_type_v2": _utils._rebuild_from_type_v2}
    known.update({k: v for k, v in callables().items() if k.startswith("torch.")})

    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            full = file_name(module, name)
            if full in known:
                return known[full]
            if full.startswith("torch."):
                try:
                    return super().find_class("rushlight" + module[len(module.split(".")[0]) :], name)
                except (ImportError, AttributeError) as e:
                    raise AttributeError(
                        f"the file needs {full}, which rushlight does not have ({e})"
                    ) from None
            return super().find_class(module, name)

    return Unpickler


def finished(value):
    """A storage that was saved by itself, as a storage."""
    if isinstance(value, LoadedStorage):
        return value.data.untyped_storage()
    if type(value) in (dict, list) or isinstance(value, dict):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(item, (LoadedStorage, dict, list)):
                value[key] = finished(item)
    return value


def get_unsafe_globals_in_checkpoint(f):
    """The names a zip checkpoint asks for that a weights_only load would refuse."""
    known = {**plain_names(), **callables(), **user_names()}
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as opened:
            return get_unsafe_globals_in_checkpoint(opened)
    archive = ZipReader(f, getattr(f, "name", type(f).__name__))
    names = [file_name(*n.rpartition(".")[::2]) for n in globals_of(archive.read("data.pkl"))]
    return [n for n in dict.fromkeys(names) if n not in known]
