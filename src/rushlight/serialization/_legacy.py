"""Files older than PyTorch 1.6: a stream of pickles followed by raw storages; and the tar files of before
2018.
"""

from __future__ import annotations

import functools
import io
import struct
import sys

import rushlight as rl
from rushlight.serialization._allowed import SafeHooks, file_name, storage_types
from rushlight.serialization._read import run_safely, storage_id
from rushlight.serialization._source import Source
from rushlight.serialization._storage import StorageType, bytes_of, tensor_of, tensor_over_storage, typed
from rushlight.serialization._vm import Machine, UnpicklingError, globals_of, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tarfile
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from rushlight._C import Tensor, dtype
    from rushlight.serialization._read import Reader
    from rushlight.storage import TypedStorage


PROTOCOL_VERSION = 1001
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C


# So many bytes are read first for the pickles of a stream; those of most files are shorter.
_HEAD = 1 << 20


def load_stream(source: Source, reader: Reader) -> Any:
    """(object, end) of: magic number, protocol, system, object, keys of storages, then each storage's count
    and bytes.
    """
    name = source.name
    data, start, swap, dtypes, keys, pos = _pickles(source, reader)
    extents = {}
    for key in keys if isinstance(keys, list) else []:
        key = key.decode("ascii", "replace") if isinstance(key, bytes) else str(key)
        if key not in dtypes:
            raise UnpicklingError(f"{name} is damaged: it has a storage {shown(key)} that no tensor uses")
        extents[key], pos = _extent(source, pos, dtypes[key], swap)
    storages = {}

    def persistent(saved: Any) -> TypedStorage:
        if type(saved) is tuple and len(saved) > 1 and saved[0] in ("module", b"module"):
            return saved[1]  # a class with its source beside it
        kind, key, location, count, *view = storage_id(saved)
        if key not in storages:
            if key not in extents:
                raise UnpicklingError(f"{name} is truncated or damaged: storage {shown(key)} is missing")
            first, length = extents[key]
            if count * kind.dtype.itemsize != length:
                raise UnpicklingError(f"{name} is damaged: storage {shown(key)} should have {count} elements")
            storages[key] = reader.make(
                location, kind.dtype, length, lambda: _storage(source, first, length, kind, swap)
            )
        whole = storages[key]
        if view and view[0] is not None:
            return _part(whole, view[0])
        return whole

    result, _ = reader.unpickle(data, start, persistent)
    return result, pos


def _pickles(source: Source, reader: Reader) -> tuple[Any, ...]:
    """(bytes of the pickles, where the object begins, whether to swap bytes, types of storages, keys, end)"""
    length = _HEAD
    while True:
        data = source.at(0, length)
        try:
            return _outlined(data, reader, source.name)
        except Exception:
            if length >= source.size:
                raise
        length *= 16  # the end of a pickle may lie further on


def _outlined(data: bytes, reader: Reader, name: str) -> tuple[Any, ...]:
    system, start = _header(data, reader, name)
    swap = isinstance(system, dict) and system.get("little_endian", True) != (sys.byteorder == "little")
    # Tensors come before the memory they look at: find out first what is where.
    outline = _Outline()
    _, end = _OutlineMachine(outline, outline.persistent).run(data, start)
    keys, pos = _safely(data, end, name)
    return data, start, swap, outline.dtypes, keys, pos


def _header(data: bytes, reader: Reader, name: str) -> tuple[Any, int]:
    """The description of the system that wrote the file, and where the object begins."""
    try:
        magic, pos = _safely(data, 0, name)
    except UnpicklingError as e:
        if "Unsupported global" not in str(e):
            raise
        raise UnpicklingError(f"{name} is a plain pickle, not a file that torch.save wrote. {e}") from None
    if type(magic) is not int or magic != MAGIC_NUMBER:
        raise RuntimeError(
            f"Invalid magic number; corrupt file? ({name} is a plain pickle, not a file that torch.save wrote)"
        )
    protocol, pos = _safely(data, pos, name)
    if type(protocol) is not int or protocol != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {shown(protocol)}")
    return _safely(data, pos, name)


def _safely(data: bytes, pos: int, name: str) -> tuple[Any, int]:
    """(object, end) of a pickle that holds numbers and names only."""
    hooks = SafeHooks(len(data), lambda: globals_of(data, pos))
    return run_safely(hooks, data, pos, _no_storages)


def _no_storages(saved: object) -> NoReturn:
    raise UnpicklingError("a storage where none can be")


class _Nothing:
    """Whatever a pickle makes, while only its storages are looked for."""


class _Outline:
    """Hooks that make nothing and note the storages a pickle names."""

    def __init__(self) -> None:
        self.types = storage_types()
        self.dtypes: dict[str, dtype] = {}

    def find(self, module: str, name: str) -> StorageType | _Nothing:
        return self.types.get(file_name(module, name)) or _Nothing()

    def call(self, function: object, args: tuple[Any, ...]) -> _Nothing:
        return _Nothing()

    def new(self, cls: object, args: object, kwargs: object) -> _Nothing:
        return _Nothing()

    def build(self, obj: Any, state: object) -> Any:
        return obj

    def persistent(self, saved: object) -> _Nothing:
        if type(saved) is tuple and saved and saved[0] in ("module", b"module"):
            return _Nothing()
        kind, key, *_ = storage_id(saved)
        self.dtypes.setdefault(key, kind.dtype)
        return _Nothing()


class _OutlineMachine(Machine):
    """Containers stay empty: what they hold may be nothing yet."""

    def _append(self, items: list[Any]) -> None:
        pass

    def _set_items(self, items: Sequence[Any]) -> None:
        pass

    def _frozenset(self, _: object) -> None:
        self._to_mark()
        self.stack.append(_Nothing())


def _extent(source: Source, pos: int, dtype: dtype, swap: bool) -> tuple[tuple[int, int], int]:
    """((first byte, length), end) of the storage at pos: a count, then its elements."""
    (count,) = _unpack(">q" if swap else "<q", source.at(pos, 8), 0)
    pos += 8
    length, left = count * dtype.itemsize, source.size - pos
    if not 0 <= length <= left:
        raise UnpicklingError(
            f"{source.name} is truncated or damaged: a storage should have {length} bytes, {left} are left"
        )
    return (pos, length), pos + length


def _storage(source: Source, first: int, length: int, kind: StorageType, swap: bool) -> Tensor:
    """A byte tensor with its own copy of a storage."""
    target = rl.empty(length, dtype=rl.uint8)
    source.fill(target, first)
    item = kind.dtype.itemsize // (2 if kind.dtype.is_complex else 1)
    if swap and item > 1:
        rows = target.numpy().reshape(-1, item)
        rows[:] = rows[:, ::-1].copy()
    return target


def _part(whole: TypedStorage, view: tuple[int, int, int]) -> TypedStorage:
    """A storage that is a part of another one and shares its memory: (key, offset, length) in elements."""
    if type(view) is not tuple or len(view) != 3 or not all(type(n) is int for n in view[1:]):
        raise UnpicklingError("a view of a storage must have an offset and a length")
    _, offset, count = view
    if not 0 <= offset <= offset + count <= whole._size():
        raise UnpicklingError("a view of a storage begins or ends outside of it")
    if bytes_of(whole).device.type == "meta":
        return whole
    item = whole._dtype.itemsize
    data = tensor_over_storage(bytes_of(whole)).numpy()[offset * item : (offset + count) * item]
    return typed(rl.from_numpy(data), whole._dtype)


def load_tar(data: bytes, reader: Reader, name: str) -> Any:
    """A tar with three members: storages, tensors that look at them, and a pickle that names the tensors."""
    import tarfile

    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            members = {m: _member(tar, m, len(data)) for m in ("storages", "tensors", "pickle")}
    except (KeyError, tarfile.TarError, ValueError, OverflowError) as e:
        raise UnpicklingError(f"{name} is a tar archive, but not a checkpoint ({e})") from None
    storages, objects = _tar_storages(members["storages"], reader, name), {}
    raw = members["tensors"]
    count, pos = _count(raw, name)
    for _ in range(count):
        (key, storage_key, _), pos = _row(raw, pos, 3, name)
        (ndim,) = _unpack("<i", raw, pos)
        if not 0 <= ndim <= 64:
            raise UnpicklingError(f"{name} is damaged: a tensor of {ndim} dimensions")
        pos += 8
        size = _unpack(f"<{ndim}q", raw, pos)
        stride = _unpack(f"<{ndim}q", raw, pos + 8 * ndim)
        (offset,) = _unpack("<q", raw, pos + 16 * ndim)
        pos += 16 * ndim + 8
        if storage_key not in storages:
            raise UnpicklingError(f"{name} is damaged: no storage {shown(storage_key)}")
        try:
            objects[str(key)] = tensor_of(storages[storage_key], offset, size, stride)
        except ValueError as e:
            raise UnpicklingError(f"{name} is damaged: {e}") from None

    def persistent(saved: Any) -> Any:
        if type(saved) is tuple and saved:
            return saved[0]
        key = (
            saved.decode("ascii", "replace")
            if isinstance(saved, bytes)
            else str(saved)
            if type(saved) in (str, int)
            else ""
        )
        if key in objects:
            return objects[key]
        raise UnpicklingError(f"{name} is damaged: no tensor {shown(saved)}")

    return reader.unpickle(members["pickle"], 0, persistent)[0]


def _member(tar: tarfile.TarFile, name: str, most: int) -> bytes:
    member = tar.getmember(name)
    if not member.isreg() or member.issparse() or not 0 <= member.size <= most:
        raise ValueError(f"{name} is no plain file")
    source = tar.extractfile(member)
    assert source is not None  # a regular file has contents
    return source.read()


def _count(raw: bytes, name: str) -> tuple[int, int]:
    count, pos = _safely(raw, 0, name)
    if type(count) is not int or not 0 <= count <= len(raw):
        raise UnpicklingError(f"{name} is damaged: {shown(count)} is not a number of entries")
    return count, pos


def _row(raw: bytes, pos: int, length: int, name: str) -> tuple[tuple[Any, ...], int]:
    row, pos = _safely(raw, pos, name)
    if (
        type(row) is not tuple
        or len(row) != length
        or not all(type(r) in (int, str, StorageType) for r in row)
    ):
        raise UnpicklingError(f"{name} is damaged: {shown(row)} where a row of {length} values should be")
    return row, pos


def _tar_storages(raw: bytes, reader: Reader, name: str) -> dict[int, TypedStorage]:
    storages: dict[Any, TypedStorage] = {}
    source = Source(io.BytesIO(raw), name)
    count, pos = _count(raw, name)
    for _ in range(count):
        (key, location, kind), pos = _row(raw, pos, 3, name)
        if not isinstance(kind, StorageType) or type(location) is not str:
            raise UnpicklingError(f"{name} is damaged: {shown(kind)} is not a type of storage")
        (first, length), pos = _extent(source, pos, kind.dtype, sys.byteorder != "little")
        storages[key] = reader.make(
            location,
            kind.dtype,
            length,
            functools.partial(_storage, source, first, length, kind, sys.byteorder != "little"),
        )
    views, pos = _safely(raw, pos, name)
    for view in views if type(views) is list else []:
        if type(view) is not tuple or len(view) != 4 or type(view[0]) not in (int, str):
            raise UnpicklingError(f"{name} is damaged: {shown(view)} where a view of a storage should be")
        key, root, offset, size = view
        if type(root) not in (int, str) or root not in storages:
            raise UnpicklingError(f"{name} is damaged: no storage {shown(root)}")
        storages[key] = _part(storages[root], (key, offset, size))
    return storages


def _unpack(form: str, raw: bytes, pos: int) -> tuple[Any, ...]:
    if pos < 0 or pos + struct.calcsize(form) > len(raw):
        raise UnpicklingError("the archive is truncated")
    return struct.unpack_from(form, raw, pos)
