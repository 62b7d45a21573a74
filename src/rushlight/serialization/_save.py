"""save(): a pickle of the object with its tensors' storages beside it, in PyTorch's zip format."""

import contextlib
import os
import pickle
import struct
import sys

import rushlight as rl
from rushlight import _utils
from rushlight.serialization import _options
from rushlight.serialization._location import location_tag
from rushlight.serialization._storage import LoadedStorage, bytes_of, storage_name, tensor_over_storage
from rushlight.serialization._zip import ZipWriter

DEFAULT_PROTOCOL = 2
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol=DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization=True,
    _disable_byteorder_record=False,
):
    """Saves an object to a path or a file. A path is replaced only when all has been written."""
    write = _write_zip if _use_new_zipfile_serialization else _write_legacy
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        name = os.path.splitext(os.path.basename(path))[0]
        with _replacing(path) as out:
            write(obj, out, name, pickle_module, pickle_protocol, _disable_byteorder_record)
        return
    if not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    write(obj, f, "archive", pickle_module, pickle_protocol, _disable_byteorder_record)


@contextlib.contextmanager
def _replacing(path):
    """A file to write to, which takes the place of `path` at the end, whole or not at all."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as out:  # a device or a pipe
            yield out
        return
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        with contextlib.suppress(OSError):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _write_zip(obj, f, name, pickle_module, protocol, without_byteorder):
    storages = _Storages()
    pickled = _pickle(obj, pickle_module, protocol, lambda *entry: ("storage", *storages.add(*entry)))
    folder = name if name.isascii() and name else "archive"
    archive = ZipWriter(f, _options.get_crc32_options())
    archive.add(f"{folder}/data.pkl", pickled)
    archive.add(f"{folder}/.format_version", b"1")
    archive.add(f"{folder}/.storage_alignment", b"64")
    if not without_byteorder:
        archive.add(f"{folder}/byteorder", sys.byteorder.encode())
    for key, tensor in enumerate(storages.tensors):
        archive.add(f"{folder}/data/{key}", bytes_of(tensor))
    archive.add(f"{folder}/version", b"3\n")
    archive.close()


def _write_legacy(obj, f, name, pickle_module, protocol, without_byteorder):
    storages = _Storages()

    def entry(*parts):
        return ("storage", *storages.add(*parts), None)

    pickled = _pickle(obj, pickle_module, protocol, entry)
    info = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for value in (MAGIC_NUMBER, PROTOCOL_VERSION, info):
        f.write(pickle.dumps(value, protocol))
    f.write(pickled)
    f.write(pickle.dumps([str(i) for i in range(len(storages.tensors))], protocol))
    for tensor in storages.tensors:
        data = bytes_of(tensor)
        f.write(struct.pack("<q", len(data) // tensor.element_size()))
        f.write(memoryview(data) if len(data) else b"")


class _Storages:
    """The storages met while pickling, each once, numbered."""

    def __init__(self):
        self.tensors = []  # one that looks at each storage; they also keep the memory from being used again
        self.keys = {}
        self.dtypes = {}

    def add(self, tensor, kind, count, dtype):
        """(storage type, key, location, count) of a tensor's storage"""
        storage = tensor.untyped_storage()
        identity = (storage.data_ptr(), storage.nbytes()) if storage.nbytes() else None
        key = self.keys.setdefault(identity, len(self.tensors))
        if key == len(self.tensors):
            self.tensors.append(tensor)
        if identity and self.dtypes.setdefault(identity, dtype) != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types "
                f"({self.dtypes[identity]} and {dtype}); save a clone() of one of them"
            )
        return kind, str(key), location_tag(storage), count


class _Name:
    """A global that the pickle names but this process does not have: torch.FloatStorage, torch._utils..."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self, *args):
        raise TypeError(f"{self.module}.{self.name} is only a name in a file")


class _Reference:
    """Stands for a storage inside a pickle."""

    def __init__(self, entry):
        self.entry = entry


_names = {}


def _name(module, name):
    return _names.setdefault((module, name), _Name(module, name))


def _pickle(obj, pickle_module, protocol, enter):
    import io

    out = io.BytesIO()
    if pickle_module is pickle:
        pickler = _Pickler(out, protocol)
        pickler.name = _name
    else:
        # Another module (dill, cloudpickle): its pickler writes our own names, which load() knows too.
        pickler = _foreign(pickle_module)(out, protocol=protocol)
        pickler.name = lambda module, name: getattr(_utils, name)
    pickler.enter = enter
    pickler.dump(obj)
    return out.getvalue()


class _TensorPickling:
    """How tensors, storages, types and devices are pickled, whichever pickler does the rest."""

    def persistent_id(self, obj):
        return self.enter(*obj.entry) if isinstance(obj, _Reference) else None

    def reducer_override(self, obj):
        if isinstance(obj, rl.Tensor):
            return self._tensor(obj)
        if isinstance(obj, rl.dtype):
            return _name("torch", str(obj).rsplit(".", 1)[-1]) if self.name is _name else NotImplemented
        if isinstance(obj, rl.device):
            return _name("torch", "device") if self.name is _name else rl.device, _device_args(obj)
        if isinstance(obj, rl.Size):
            return _name("torch", "Size") if self.name is _name else rl.Size, (tuple(obj),)
        if isinstance(obj, rl.layout) and self.name is _name:
            return _name("torch.serialization", "_get_layout"), (str(obj).replace("rushlight", "torch"),)
        if isinstance(obj, getattr(rl, "UntypedStorage", ())):
            return _Bare(
                _Reference((tensor_over_storage(obj), self._storage_type(None), obj.nbytes(), "bytes"))
            )
        return NotImplemented

    def _storage_type(self, name):
        module, name = ("torch.storage", "UntypedStorage") if name is None else ("torch", name)
        if self.name is _name:
            return _name(module, name)
        from rushlight.serialization._allowed import storage_types

        return storage_types()[f"{module}.{name}"]

    def _tensor(self, t):
        if isinstance(t, rl.nn.Parameter):
            from collections import OrderedDict

            attributes = {k: v for k, v in getattr(t, "__dict__", {}).items()}
            function = "_rebuild_parameter_with_state" if attributes else "_rebuild_parameter"
            args = (t.detach(), t.requires_grad, OrderedDict())
            return self.name("torch._utils", function), (*args, attributes) if attributes else args
        function, args = self._plain_tensor(t)
        if t.layout != rl.strided:
            return function, args
        attributes = getattr(t, "__dict__", None)
        if type(t) is rl.Tensor and not attributes:
            return function, args
        rebuild = _name("torch._tensor", "_rebuild_from_type_v2")
        if self.name is not _name:
            rebuild = _utils._rebuild_from_type_v2
        kind = _name("torch", "Tensor") if type(t) is rl.Tensor and self.name is _name else type(t)
        return rebuild, (function, kind, args, dict(attributes or {}))

    def _plain_tensor(self, t):
        from collections import OrderedDict

        device = str(t.device)
        if device == "meta":
            args = (t.dtype, tuple(t.size()), tuple(t.stride()), t.requires_grad)
            return self.name("torch._utils", "_rebuild_meta_tensor_no_storage"), args
        if t.layout != rl.strided:
            return self._sparse(t)
        if not t.is_leaf:
            t = t.detach()
        for resolve in ("resolve_conj", "resolve_neg"):
            t = getattr(t, resolve, lambda t=t: t)()
        count = t.untyped_storage().nbytes()
        name = storage_name(t.dtype)
        place = (t.storage_offset(), tuple(t.size()), tuple(t.stride()), t.requires_grad, OrderedDict())
        if name is None:
            stored = _Reference((t, self._storage_type(None), count, str(t.dtype)))
            return self.name("torch._utils", "_rebuild_tensor_v3"), (stored, *place, t.dtype)
        stored = _Reference((t, self._storage_type(name), count // t.element_size(), str(t.dtype)))
        return self.name("torch._utils", "_rebuild_tensor_v2"), (stored, *place)

    def _sparse(self, t):
        if t.layout == rl.sparse_coo:
            parts = (t._indices(), t._values(), t.size(), t.is_coalesced())
        elif t.layout in (rl.sparse_csr, rl.sparse_bsr):
            parts = (t.crow_indices(), t.col_indices(), t.values(), t.size())
        else:
            parts = (t.ccol_indices(), t.row_indices(), t.values(), t.size())
        return self.name("torch._utils", "_rebuild_sparse_tensor"), (t.layout, parts)


class _Bare:
    """A reduction that is the persistent object itself."""

    def __init__(self, reference):
        self.reference = reference


def _device_args(device):
    index = getattr(device, "index", None)
    return (device.type,) if index is None else (device.type, index)


class _Pickler(_TensorPickling, pickle._Pickler):
    """The pickler of the standard library in its Python form, where names can be spelled as PyTorch does."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save(self, obj, save_persistent_id=True):
        # Objects that reduce to a name or a storage have no call to write.
        if not isinstance(obj, (_Name, _Reference, str, int, float, tuple, list, dict)):
            reduced = self.reducer_override(obj)
            if isinstance(reduced, _Name):
                return super().save(reduced)
            if isinstance(reduced, _Bare):
                return super().save(reduced.reference)
        return super().save(obj, save_persistent_id)

    def _save_name(self, obj):
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[_Name] = _save_name

    def save_global(self, obj, name=None):
        module = getattr(obj, "__module__", None) or ""
        if module.split(".")[0] == "rushlight":
            name = name or getattr(obj, "__qualname__", obj.__name__)
            self.write(pickle.GLOBAL + f"torch{module[len('rushlight') :]}\n{name}\n".encode())
            self.memoize(obj)
        else:
            super().save_global(obj, name)

    def save_type(self, obj):
        if obj in (type(None), type(NotImplemented), type(...)):
            return super().save_type(obj)
        return self.save_global(obj)

    dispatch[type] = save_type
    dispatch[type(save)] = save_global


def _foreign(pickle_module):
    base = pickle_module.Pickler
    return type("_ForeignPickler", (_TensorPickling, base), {})


__all__ = ["LoadedStorage", "save"]
