"""Zip archives as PyTorch writes them: entries stored as they are, each beginning at a multiple of 64
bytes.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib

import rushlight as rl
from rushlight import _C
from rushlight.serialization import _options
from rushlight.serialization._source import is_plain_file
from rushlight.serialization._vm import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

    from rushlight._C import Tensor


# What a compressed archive may grow to: this much, and so many times its size.
_INFLATED_BYTES = 64 << 20
_INFLATED_RATIO = 100
_crc32, _read_file = _C.ops["_crc32"], _C.ops["_read_file"]
_LIMIT = 0xFFFFFFFF
# From this many bytes on, all threads read and sum.
_LARGE = 1 << 18


class ZipWriter:
    """Writes entries one after the other to anything with write()."""

    def __init__(self, f: IO[bytes], checksums: bool = True, alignment: int = 64) -> None:
        self.f, self.checksums, self.alignment = f, checksums, alignment
        self.at = 0
        self.entries: list[tuple[bytes, int, int, int]] = []  # (name, sum, length, start)

    def _write(self, data: Any) -> None:
        self.f.write(data)
        self.at += len(data)

    def add(self, name: str, data: Tensor | bytes, checksum: bool = True) -> None:
        """One entry; data is bytes or a tensor of bytes."""
        raw = name.encode()
        tensor = None if isinstance(data, bytes) else data
        contents: bytes | memoryview
        contents = data if isinstance(data, bytes) else memoryview(data._memory()) if len(data) else b""
        size, start = len(contents), self.at
        crc = 0
        if self.checksums and checksum:
            crc = _crc32(tensor) if tensor is not None and size >= _LARGE else zlib.crc32(contents)
        big = size >= _LIMIT
        extra = struct.pack("<HHQQ", 1, 16, size, size) if big else b""
        padding = -(start + 30 + len(raw) + len(extra) + 4) % self.alignment
        extra += struct.pack("<2sH", b"FB", padding) + bytes(padding)
        length = _LIMIT if big else size
        fields = (45 if big else 20, 0, 0, 0, 0x21, crc, length, length, len(raw), len(extra))
        self._write(struct.pack("<4s5H3I2H", b"PK\3\4", *fields) + raw + extra)
        self.f.write(contents)
        self.at += size
        self.entries.append((raw, crc, size, start))

    def close(self) -> None:
        """Writes the directory of the archive."""
        start = self.at
        for raw, crc, size, offset in self.entries:
            big = max(size, offset) >= _LIMIT
            extra = struct.pack("<HHQQQ", 1, 24, size, size, offset) if big else b""
            length, where = (_LIMIT, _LIMIT) if big else (size, offset)
            fields = (
                45,
                45 if big else 20,
                0,
                0,
                0,
                0x21,
                crc,
                length,
                length,
                len(raw),
                len(extra),
                0,
                0,
                0,
                0,
                where,
            )
            self._write(struct.pack("<4s6H3I5H2I", b"PK\1\2", *fields) + raw + extra)
        length, count = self.at - start, len(self.entries)
        if start >= _LIMIT or length >= _LIMIT or count >= 0xFFFF:
            end = self.at
            fields = (44, 45, 45, 0, 0, count, count, length, start)
            self._write(struct.pack("<4sQ2H2I4Q", b"PK\6\6", *fields))
            self._write(struct.pack("<4sIQI", b"PK\6\7", 0, end, 1))
        short = min(count, 0xFFFF)
        self._write(
            struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, short, short, min(length, _LIMIT), min(start, _LIMIT), 0)
        )


class ZipReader:
    """The entries of a checkpoint, without the folder that they all lie in. What is read altogether is limited by
    the size of the file.
    """

    def __init__(self, f: IO[bytes], name: str) -> None:
        self.f, self.name = f, name
        self.descriptor = f.fileno() if is_plain_file(f) else None
        try:
            self.archive = zipfile.ZipFile(f)
            infos = self.archive.infolist()
        except Exception as e:  # zipfile has many ways to fail on damaged directories
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: failed finding central directory of {name} "
                f"({e}). The file is truncated or damaged, as after a download that broke off or a full disk: "
                "get it again"
            ) from None
        self.is_npz = bool(infos) and all(i.filename.endswith(".npy") for i in infos)
        folder = infos[0].filename.split("/")[0] + "/" if infos and not self.is_npz else ""
        self.entries = {i.filename[len(folder) :]: i for i in infos if i.filename.startswith(folder)}
        f.seek(0, 2)
        self.size = f.tell()
        self.counted: set[str] = set()  # entries, each counted once:
        self.in_file = self.in_memory = 0  # in bytes

    def check_begins_at(self, start: int) -> None:
        """Refuses several archives one after the other: only the last one could be found."""
        first = min((i.header_offset for i in self.entries.values()), default=0)
        if start <= first - 22 < self.size:
            self.f.seek(first - 22)  # the length of the end of an archive
            if self.f.read(4) == b"PK\5\6":
                raise RuntimeError(
                    f"{self.name} holds more than one archive, as when save() is called twice with one file: save a "
                    "list, or use _use_new_zipfile_serialization=False, whose streams can follow one another"
                )

    def __contains__(self, entry: str) -> bool:
        return entry in self.entries

    def _damaged(self, what: str) -> RuntimeError:
        return RuntimeError(f"{self.name} is damaged: {what}")

    def _info(self, entry: str) -> zipfile.ZipInfo:
        info = self.entries.get(entry)
        if info is None:
            what = "the zip archive is not a checkpoint, or it is damaged"
            if ".data/extern_modules" in self.entries:
                what = (
                    "it is a torch.package archive, which carries Python code; open it with PyTorch's "
                    "package.PackageImporter and save the state_dict()"
                )
            elif entry == "data.pkl" and self.entries:
                what += f" (its first entry is {shown(next(iter(self.entries)))})"
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {shown(entry)} in {self.name}: {what}"
            )
        if info.flag_bits & 1:
            raise RuntimeError(f"{self.name} is encrypted, which checkpoints never are")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise RuntimeError(f"{self.name} is compressed by another method than deflate: unpack it first")
        return info

    def length(self, entry: str) -> int:
        """How many bytes an entry has in memory; refused when the file cannot hold so many."""
        info = self._info(entry)
        if entry not in self.counted:
            stored = info.compress_type == zipfile.ZIP_STORED
            self.counted.add(entry)
            self.in_file += info.file_size if stored else info.compress_size
            self.in_memory += info.file_size
            if self.in_file > self.size:
                raise self._damaged(f"entry {shown(entry)} and those before it are larger than the file")
            if self.in_memory > _INFLATED_BYTES + _INFLATED_RATIO * self.size:
                raise RuntimeError(
                    f"{self.name} would grow from {self.size} to {self.in_memory} bytes or more when it is "
                    "decompressed, as a zip bomb does; if you trust it, unpack it and pack it without compression"
                )
        return info.file_size

    def offset(self, entry: str) -> int | None:
        """The position of a stored entry's first byte in the file; None when it is compressed."""
        info = self._info(entry)
        if info.compress_type != zipfile.ZIP_STORED:
            return None
        if not 0 <= info.header_offset < self.size:
            raise self._damaged(f"entry {shown(entry)} begins outside of the file")
        if self.descriptor is None:
            self.f.seek(info.header_offset)
            head = self.f.read(30)
        else:
            head = os.pread(self.descriptor, 30, info.header_offset)
        if len(head) < 30 or head[:4] != b"PK\3\4":
            raise self._damaged(f"entry {shown(entry)} has no header")
        name_length, extra_length = struct.unpack_from("<2H", head, 26)
        at = info.header_offset + 30 + name_length + extra_length
        if at + info.file_size > self.size:
            raise self._damaged(f"entry {shown(entry)} reaches beyond the end of the file")
        return int(at)

    def read_into(self, entry: str, tensor: Tensor) -> None:
        """Reads a whole entry into a tensor of bytes of its length, and checks its sum."""
        info, at = self._info(entry), self.offset(entry)
        sums = bool(info.CRC) and _options.get_crc32_options()  # zero means that the writer left sums out
        if at is not None and self.descriptor is not None:
            try:
                found = _read_file(tensor, self.descriptor, at, sums)
            except RuntimeError as e:
                raise self._damaged(f"entry {shown(entry)}: {e}") from None
        else:
            view = memoryview(tensor._memory()) if len(tensor) else memoryview(b"")
            if at is None:
                self._inflate(view, entry, info)
            elif type(self.f) is io.BytesIO and len(tensor):  # by all threads, new pages included
                tensor.copy_(rl.frombuffer(self.f.getbuffer(), dtype=rl.uint8)[at : at + len(tensor)])
            else:
                self.f.seek(at)
                self._fill(view, self.f, entry)
            found = zlib.crc32(view) if len(view) < _LARGE or not sums else _crc32(tensor)
        if sums and found != info.CRC:
            raise self._damaged(
                f"the bytes of entry {shown(entry)} do not match their checksum; get the file again (or, if it was "
                "changed on purpose, as by a shared mapping, serialization.set_crc32_options(False) reads it)"
            )

    def _fill(self, view: memoryview, source: Any, entry: str) -> None:
        done = 0
        while done < len(view):
            if hasattr(source, "readinto"):
                got = source.readinto(view[done:])
            else:
                piece = source.read(len(view) - done)
                view[done : done + len(piece)] = piece
                got = len(piece)
            if not got:
                raise self._damaged(f"entry {shown(entry)} ends too early")
            done += got

    def _inflate(self, view: memoryview, entry: str, info: zipfile.ZipInfo) -> None:
        try:
            with self.archive.open(info) as source:
                self._fill(view, source, entry)
        except Exception as e:
            raise self._damaged(f"entry {shown(entry)}: {e}") from None

    def read(self, entry: str, most: int | None = None) -> bytes:
        """The bytes of an entry, of at most `most` bytes."""
        length = self.length(entry)
        if most is not None and length > most:
            raise self._damaged(f"entry {shown(entry)} has {length} bytes")
        tensor = rl.empty(length, dtype=rl.uint8)
        self.read_into(entry, tensor)
        found: bytes = tensor.numpy().tobytes()
        return found
