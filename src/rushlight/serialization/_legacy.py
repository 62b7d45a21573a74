"""Files older than PyTorch 1.6: a stream of pickles followed by raw storages; and the tar files of before
2018.
"""

import io
import struct
import sys

import rushlight as rl
from rushlight.serialization._load import _storage_id, finished
from rushlight.serialization._storage import LoadedStorage, StorageType
from rushlight.serialization._vm import UnpicklingError

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C


def load_stream(data, reader, name):
    """(object, end) of: magic number, protocol, system, object, keys of storages, then each storage's count
    and bytes.
    """
    no_storages = _no_storages
    pos = 0
    header = []
    for _ in range(3):
        try:
            value, pos = reader.unpickle(data, pos, no_storages)
        except UnpicklingError as e:
            if "Unsupported global" in str(e) and not header:
                raise UnpicklingError(
                    f"{name} is a plain pickle, not a file that torch.save wrote. {e}"
                ) from None
            raise
        header.append(value)
        if header[0] != MAGIC_NUMBER:
            raise RuntimeError(
                f"Invalid magic number; corrupt file? ({name} is a plain pickle, not a file that torch.save "
                "wrote)"
            )
    magic, protocol, system = header
    if protocol != 1001:
        raise RuntimeError(f"Invalid protocol version: {protocol}")
    swap = isinstance(system, dict) and system.get("little_endian", True) != (sys.byteorder == "little")
    roots, placed = {}, {}

    def persistent(saved):
        if isinstance(saved, tuple) and saved and saved[0] in ("module", b"module"):
            return saved[1]  # a class with its source beside it
        kind, key, location, count, *view = _storage_id(saved)
        item = kind.dtype.itemsize
        if key not in placed:
            if count * item > len(data):
                raise UnpicklingError(f"storage {key} should have {count} elements, more than the file holds")
            roots[key] = (rl.empty(count * item, dtype=rl.uint8), kind.dtype)
            placed[key] = reader.place(LoadedStorage(roots[key][0], kind.dtype), location)
        stored = placed[key]
        if view and view[0] is not None:
            _, offset, _ = view[0]
            if type(offset) is not int or not 0 <= offset * item <= stored.data.numel():
                raise UnpicklingError(f"a view of storage {key} begins outside of it")
            return LoadedStorage(stored.data, stored.dtype, start=offset * item, device=stored.device)
        return stored

    result, pos = reader.unpickle(data, pos, persistent)
    keys, pos = reader.unpickle(data, pos, no_storages)
    for key in keys if isinstance(keys, list) else []:
        key = key.decode() if isinstance(key, bytes) else str(key)
        if key not in roots:
            raise UnpicklingError(f"{name} is damaged: it has a storage {key} that no tensor uses")
        pos = _fill(*roots[key], data, pos, swap, name)
    return finished(result), pos


def _no_storages(saved):
    raise UnpicklingError("a storage where none can be")


def _fill(target, dtype, data, pos, swap, name):
    """Copies one storage, a count and then its bytes; returns where it ends."""
    if pos + 8 > len(data):
        raise UnpicklingError(f"{name} is truncated: a storage is missing")
    (count,) = struct.unpack_from(">q" if swap else "<q", data, pos)
    pos += 8
    length = target.numel()
    if count * dtype.itemsize != length or pos + length > len(data):
        raise UnpicklingError(
            f"{name} is truncated or damaged: a storage should have {length} bytes, {len(data) - pos} are "
            "left"
        )
    if length:
        import numpy

        source = numpy.frombuffer(data, numpy.uint8, length, pos)
        item = dtype.itemsize // (2 if dtype.is_complex else 1)
        if swap and item > 1:
            source = source.reshape(-1, item)[:, ::-1].reshape(-1)
        target.numpy()[:] = source
    return pos + length


def load_tar(data, reader, name):
    """A tar with three members: storages, tensors that look at them, and a pickle that names the tensors."""
    import tarfile

    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            members = {m: tar.extractfile(m).read() for m in ("storages", "tensors", "pickle")}
    except (KeyError, tarfile.TarError, AttributeError) as e:
        raise UnpicklingError(f"{name} is a tar archive, but not a checkpoint ({e})") from None
    storages, objects = _tar_storages(members["storages"], reader, name), {}
    raw, pos = members["tensors"], 0
    count, pos = reader.unpickle(raw, pos, _no_storages)
    for _ in range(count):
        (key, storage_key, _), pos = reader.unpickle(raw, pos, _no_storages)
        (ndim,) = _unpack("<i", raw, pos)
        if not 0 <= ndim <= 64:
            raise UnpicklingError(f"a tensor of {ndim} dimensions")
        pos += 8
        size = _unpack(f"<{ndim}q", raw, pos)
        stride = _unpack(f"<{ndim}q", raw, pos + 8 * ndim)
        (offset,) = _unpack("<q", raw, pos + 16 * ndim)
        pos += 16 * ndim + 8
        if storage_key not in storages:
            raise UnpicklingError(f"{name} is damaged: no storage {storage_key}")
        objects[str(key)] = storages[storage_key].tensor(offset, size, stride)

    def persistent(saved):
        if isinstance(saved, tuple) and saved:
            return saved[0]
        key = saved.decode() if isinstance(saved, bytes) else str(saved)
        if key in objects:
            return objects[key]
        raise UnpicklingError(f"{name} is damaged: no tensor {key}")

    return finished(reader.unpickle(members["pickle"], 0, persistent)[0])


def _tar_storages(raw, reader, name):
    storages = {}
    count, pos = reader.unpickle(raw, 0, _no_storages)
    for _ in range(count):
        (key, location, kind), pos = reader.unpickle(raw, pos, _no_storages)
        if not isinstance(kind, StorageType):
            raise UnpicklingError(f"{name} is damaged: {kind!r} is not a type of storage")
        (length,) = _unpack("<q", raw, pos)
        if not 0 <= length * kind.dtype.itemsize <= len(raw):
            raise UnpicklingError(f"{name} is damaged: a storage of {length} elements")
        target = rl.empty(length * kind.dtype.itemsize, dtype=rl.uint8)
        pos = _fill(target, kind.dtype, raw, pos, sys.byteorder != "little", name)
        storages[key] = reader.place(LoadedStorage(target, kind.dtype), location)
    views, pos = reader.unpickle(raw, pos, _no_storages)
    for key, root, offset, _ in views:
        if root not in storages:
            raise UnpicklingError(f"{name} is damaged: no storage {root}")
        base = storages[root]
        storages[key] = LoadedStorage(
            base.data, base.dtype, start=base.start + offset * base.dtype.itemsize, device=base.device
        )
    return storages


def _unpack(form, raw, pos):
    if pos < 0 or pos + struct.calcsize(form) > len(raw):
        raise UnpicklingError("the archive is truncated")
    return struct.unpack_from(form, raw, pos)
