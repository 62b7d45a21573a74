"""PyTorchFileReader and PyTorchFileWriter: the records of a checkpoint's archive, one by one, for programs that stream weights."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO, Any

import rushlight as rl
from rushlight._C import Tensor, dtype
from rushlight.serialization import _options
from rushlight.serialization._replace import replacing
from rushlight.serialization._storage import bytes_of, tensor_over_storage
from rushlight.serialization._zip import ZipReader, ZipWriter
from rushlight.storage import TypedStorage


class PyTorchFileReader:
    """The records of the archive at a path or in a file that can seek."""

    def __init__(self, file: IO[bytes] | str | os.PathLike[str]) -> None:
        self._own = None
        if isinstance(file, (str, os.PathLike)):
            self._own = open(file, "rb")  # noqa: SIM115  (closed by __del__)
            self._archive = ZipReader(self._own, os.fspath(file))
        else:
            self._archive = ZipReader(file, type(file).__name__)

    def __del__(self) -> None:
        own = getattr(self, "_own", None)
        if own is not None:
            own.close()

    def get_all_records(self) -> list[str]:
        return list(self._archive.entries)

    def has_record(self, name: str) -> bool:
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        return self._archive.read(name)

    def get_record_size(self, name: str) -> int:
        return self._archive.length(name)

    def get_record_offset(self, name: str) -> int:
        """Where the bytes of a record begin in the file."""
        offset = self._archive.offset(name)
        if offset is None:
            raise RuntimeError(f"record {name} is compressed, so it has no offset of its own in the file")
        return offset

    def get_record_header_offset(self, name: str) -> int:
        return self._archive._info(name).header_offset

    def get_storage_from_record(self, name: str, numel: int, dtype: dtype) -> Tensor:
        """An empty tensor over a new storage with the bytes of a record."""
        data = rl.empty(self._archive.length(name), dtype=rl.uint8)
        self._archive.read_into(name, data)
        kind = dtype if isinstance(dtype, rl.dtype) else rl.uint8
        return rl.empty(0, dtype=kind).set_(data.untyped_storage(), 0, (0,), (1,))

    def serialization_id(self) -> str:
        entry = ".data/serialization_id"
        return self._archive.read(entry, most=1024).decode() if entry in self._archive else ""


class PyTorchFileWriter:
    """Writes an archive record by record; a path has the file after write_end_of_file(), and not before."""

    def __init__(
        self,
        file: IO[bytes] | str | os.PathLike[str],
        compute_crc32: bool = True,
        storage_alignment: int | None = None,
    ) -> None:
        self._names: set[str] = set()
        self._version = 3
        self._open: contextlib.ExitStack | None = contextlib.ExitStack()
        self._folder = "archive"
        if isinstance(file, (str, os.PathLike)):
            self._folder = os.path.splitext(os.path.basename(os.fspath(file)))[0] or "archive"
            file = self._open.enter_context(replacing(file))
        alignment = _options.config.save.storage_alignment if storage_alignment is None else storage_alignment
        self._writer = ZipWriter(file, compute_crc32, alignment)

    def archive_name(self) -> str:
        return self._folder

    def get_all_written_records(self) -> set[str]:
        return set(self._names)

    def set_min_version(self, version: int) -> None:
        self._version = max(self._version, version)

    def write_record(self, name: str, data: Any, size: int) -> None:
        """The first `size` bytes of text, bytes or a storage."""
        if name in self._names:
            raise RuntimeError(f"record {name} is written already")
        if isinstance(data, str):
            data = data.encode()
        if isinstance(data, (TypedStorage, rl.UntypedStorage)):
            data = tensor_over_storage(bytes_of(data))
        elif not isinstance(data, bytes):
            raise TypeError(f"a record must be text, bytes or a storage, not a {type(data).__name__}")
        if not 0 <= size <= len(data):
            raise ValueError(f"a record of {size} bytes cannot be made of {len(data)}")
        self._writer.add(f"{self._folder}/{name}", data[:size])
        self._names.add(name)

    def write_record_metadata(self, name: str, size: int) -> None:
        """A record of `size` bytes whose contents are to be written later (PyTorch fills them with the digit 0 too)."""
        if size < 0:
            raise ValueError(f"a record cannot have {size} bytes")
        if name in self._names:
            raise RuntimeError(f"record {name} is written already")
        self._writer.add(f"{self._folder}/{name}", rl.full((size,), ord("0"), dtype=rl.uint8), checksum=False)
        self._names.add(name)

    def write_end_of_file(self) -> None:
        for name, text in (("version", f"{self._version}\n"), ("byteorder", sys.byteorder)):
            if name not in self._names:
                self.write_record(name, text, len(text))
        self._writer.close()
        if self._open is not None:
            self._open.close()
        self._open = None

    def __del__(self) -> None:
        opened = getattr(self, "_open", None)
        if opened is not None:
            with contextlib.suppress(
                Exception
            ):  # what is thrown into replacing(), which leaves the path as it was
                opened.__exit__(RuntimeError, RuntimeError("not finished"), None)
