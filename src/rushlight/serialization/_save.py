"""save(): a pickle of the object with its tensors' storages beside it, in PyTorch's zip format."""

from __future__ import annotations

import os
import pickle
import struct
import sys
from types import ModuleType
from typing import IO, Any

from rushlight._C import Tensor, dtype
from rushlight.serialization import _options
from rushlight.serialization._legacy import MAGIC_NUMBER, PROTOCOL_VERSION
from rushlight.serialization._location import location_tag
from rushlight.serialization._pickler import pickled
from rushlight.serialization._replace import replacing
from rushlight.serialization._storage import tensor_over_storage
from rushlight.serialization._zip import ZipWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.serialization._compact import _Trimmed


DEFAULT_PROTOCOL = 2


def save(
    obj: object,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
    *,
    compact_views: bool = False,
) -> None:
    """Saves an object to a path or a file; PyTorch's torch.load reads it, too.

    A path is replaced only when all has been written. A tensor is saved with its whole storage, however small a
    part of it it looks at.

    Args:
        obj (object): tensors, containers, modules: what pickle can write.
        f (str, path or file): where to.
        pickle_module (module): accepted. Default: pickle
        pickle_protocol (int): of the pickle inside. Default: 2
        compact_views (bool or int): leaves out the parts of storages that no saved tensor looks at, with a
            warning; a number does so where more bytes than that are saved. Default: False

    Example:
        >>> torch.save({"w": torch.ones(2)}, "state.pt")
        >>> torch.load("state.pt")["w"]
        tensor([1., 1.])
    """
    if pickle_protocol == 0:
        raise ValueError(
            "save: pickle protocol 0 has no way to refer to storages; use 2 (the default) or more"
        )
    storages = _Storages()
    if compact_views is not False:
        from rushlight.serialization._compact import plan

        storages.plan = plan(
            obj, pickle_module, pickle_protocol, 0 if compact_views is True else int(compact_views)
        )
    write = _write_zip if _use_new_zipfile_serialization else _write_legacy
    options = (storages, pickle_module, pickle_protocol, _disable_byteorder_record)
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        name = os.path.splitext(os.path.basename(path))[0]
        with replacing(path) as out:
            write(obj, out, name, *options)
        return
    if not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    write(obj, f, "archive", *options)
    if hasattr(f, "flush"):  # who opens the file by its name next finds all of it
        f.flush()


def _write_zip(
    obj: Any,
    f: IO[bytes],
    name: str,
    storages: _Storages,
    pickle_module: ModuleType,
    protocol: int,
    without_byteorder: bool,
) -> None:
    data = pickled(obj, pickle_module, protocol, storages.enter)
    folder = name if isinstance(name, str) and name.isascii() and name else "archive"
    alignment = _options.config.save.storage_alignment
    archive = ZipWriter(f, _options.get_crc32_options(), alignment)
    archive.add(f"{folder}/data.pkl", data)
    archive.add(f"{folder}/.format_version", b"1")
    archive.add(f"{folder}/.storage_alignment", str(alignment).encode())
    if not without_byteorder:
        archive.add(f"{folder}/byteorder", sys.byteorder.encode())
    for key, (tensor, _) in enumerate(storages.found):
        archive.add(f"{folder}/data/{key}", _contents(tensor), checksum=not _options.skips_data())
    archive.add(f"{folder}/version", b"3\n")
    archive.close()


def _write_legacy(
    obj: Any,
    f: IO[bytes],
    name: str,
    storages: _Storages,
    pickle_module: ModuleType,
    protocol: int,
    without_byteorder: bool,
) -> None:
    def enter(tensor: Tensor, kind: str | None, bare: bool) -> tuple[tuple[Any, ...], int, tuple[int, ...]]:
        identity, offset, stride = storages.enter(tensor, kind, bare)
        return (*identity, None), offset, stride  # None: not a view

    data = pickled(
        obj,
        pickle_module,
        protocol,
        enter,
    )
    info = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for value in (MAGIC_NUMBER, PROTOCOL_VERSION, info):
        f.write(pickle.dumps(value, protocol))
    f.write(data)
    f.write(pickle.dumps([str(i) for i in range(len(storages.found))], protocol))
    for tensor, item in storages.found:
        contents = _contents(tensor)
        f.write(struct.pack("<q", len(contents) // item))
        f.write(memoryview(contents._memory()) if len(contents) else b"")


def _contents(tensor: Tensor) -> Tensor:
    """The whole storage of a tensor as a tensor of bytes."""
    contents = tensor_over_storage(tensor.untyped_storage())
    if tensor.device.type != "meta":
        contents = contents.cpu()
    return contents.new_zeros(len(contents)) if _options.skips_data() else contents


class _Storages:
    """The storages met while pickling, each once, numbered."""

    def __init__(self) -> None:
        # (a tensor that looks at the storage and keeps it alive, bytes of an element)
        self.found: list[tuple[Tensor, int]] = []
        self.keys: dict[tuple[int, int], tuple[int, dtype]] = {}  # (number, element type)
        self.plan: dict[tuple[int, int], _Trimmed] = {}  # identity: what to write instead; see _compact.py

    def enter(
        self, tensor: Tensor, kind: str | None, bare: bool
    ) -> tuple[tuple[str, str, int], int, tuple[int, ...]]:
        """((key, location, count), offset, strides) of a tensor's storage and of the tensor in it"""
        whole = tensor.untyped_storage()
        identity = identity_of(tensor)
        offset, stride = tensor.storage_offset(), tensor.stride()
        keeper = tensor
        if identity in self.plan:
            keeper, offset, stride = self.plan[identity].locate(tensor)
        item = 1 if kind is None else tensor.element_size()
        key = self.keys.setdefault(identity, (len(self.found), tensor.dtype))
        if key[0] == len(self.found):
            self.found.append((keeper, item))
        if key[1] != tensor.dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types "
                f"({key[1]} and {tensor.dtype}); save a clone() of one of them"
            )
        count = keeper.untyped_storage().nbytes() // item
        return (str(key[0]), location_tag(whole), count), offset, stride


def identity_of(tensor: Any) -> Any:
    """The same for tensors that share their storage; storages without memory are each their own."""
    storage = tensor.untyped_storage()
    return (storage.data_ptr(), storage.nbytes()) if storage.nbytes() else (id(tensor), 0)
