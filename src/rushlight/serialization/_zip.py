"""Zip archives as PyTorch writes them: entries stored as they are, each beginning at a multiple of 64
bytes.
"""

import struct
import zipfile
import zlib

_LIMIT = 0xFFFFFFFF
ALIGNMENT = 64


class ZipWriter:
    """Writes entries one after the other to anything with write()."""

    def __init__(self, f, checksums=True):
        self.f, self.checksums = f, checksums
        self.at, self.entries = 0, []

    def _write(self, data):
        self.f.write(data)
        self.at += len(data)

    def add(self, name, data):
        """One entry; data is bytes or a flat array of bytes."""
        raw = name.encode()
        data = memoryview(data).cast("B") if len(data) else b""
        size, start = len(data), self.at
        crc = zlib.crc32(data) if self.checksums else 0
        big = size >= _LIMIT
        extra = struct.pack("<HHQQ", 1, 16, size, size) if big else b""
        padding = -(start + 30 + len(raw) + len(extra) + 4) % ALIGNMENT
        extra += struct.pack("<2sH", b"FB", padding) + bytes(padding)
        shown = _LIMIT if big else size
        fields = (45 if big else 20, 0, 0, 0, 0x21, crc, shown, shown, len(raw), len(extra))
        self._write(struct.pack("<4s5H3I2H", b"PK\3\4", *fields) + raw + extra)
        self.f.write(data)
        self.at += size
        self.entries.append((raw, crc, size, start))

    def close(self):
        """Writes the directory of the archive."""
        start = self.at
        for raw, crc, size, offset in self.entries:
            large = [v for v in (size, size, offset) if size >= _LIMIT or v >= _LIMIT]
            big = bool(large)
            extra = struct.pack("<HHQQQ", 1, 24, size, size, offset) if big else b""
            shown, place = (_LIMIT, _LIMIT) if big else (size, offset)
            fields = (
                45,
                45 if big else 20,
                0,
                0,
                0,
                0x21,
                crc,
                shown,
                shown,
                len(raw),
                len(extra),
                0,
                0,
                0,
                0,
                place,
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
    """The entries of a checkpoint, without the folder that they all lie in."""

    def __init__(self, f, name):
        self.f, self.name = f, name
        try:
            archive = zipfile.ZipFile(f)
            infos = archive.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as e:
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: failed finding central directory of {name} "
                f"({e}). The file is truncated or damaged, as after a download that broke off or a full "
                "disk: "
                "get it again"
            ) from None
        self.archive = archive
        self.folder = infos[0].filename.split("/")[0] + "/" if infos else ""
        self.entries = {
            i.filename[len(self.folder) :]: i for i in infos if i.filename.startswith(self.folder)
        }
        f.seek(0, 2)
        self.size = f.tell()

    def __contains__(self, entry):
        return entry in self.entries

    def _info(self, entry):
        info = self.entries.get(entry)
        if info is None:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {entry} in {self.name}: "
                "the zip archive is not a checkpoint, or it is damaged"
            )
        if info.flag_bits & 1:
            raise RuntimeError(f"{self.name} is encrypted, which checkpoints never are")
        return info

    def length(self, entry):
        return self._info(entry).file_size

    def place(self, entry):
        """The position of a stored entry's first byte in the file; None when it is compressed."""
        info = self._info(entry)
        if info.compress_type != zipfile.ZIP_STORED:
            return None
        self.f.seek(info.header_offset)
        head = self.f.read(30)
        if len(head) < 30 or head[:4] != b"PK\3\4":
            raise RuntimeError(f"{self.name} is damaged: entry {entry} has no header")
        name_length, extra_length = struct.unpack_from("<2H", head, 26)
        at = info.header_offset + 30 + name_length + extra_length
        if at + info.file_size > self.size:
            raise RuntimeError(f"{self.name} is damaged: entry {entry} reaches beyond the end of the file")
        return at

    def read_into(self, entry, buffer):
        """Reads a whole entry into a writable buffer of its length, and checks its sum."""
        info, at = self._info(entry), self.place(entry)
        view = memoryview(buffer).cast("B") if len(buffer) else memoryview(b"")
        if at is None:
            data = self._inflate(entry, info)
            view[:] = data
        else:
            self.f.seek(at)
            done = 0
            while done < len(view):
                if hasattr(self.f, "readinto"):
                    got = self.f.readinto(view[done:])
                else:
                    piece = self.f.read(len(view) - done)
                    view[done : done + len(piece)] = piece
                    got = len(piece)
                if not got:
                    raise RuntimeError(f"{self.name} is damaged: entry {entry} ends too early")
                done += got
        # A sum of zero means that the writer left sums out.
        if info.CRC and zlib.crc32(view) != info.CRC:
            raise RuntimeError(
                f"{self.name} is damaged: the bytes of entry {entry} do not match their checksum; get the "
                "file again"
            )

    def _inflate(self, entry, info):
        try:
            data = self.archive.read(info)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as e:
            raise RuntimeError(f"{self.name} is damaged: entry {entry}: {e}") from None
        if len(data) != info.file_size:
            raise RuntimeError(f"{self.name} is damaged: entry {entry} has another length than it says")
        return data

    def read(self, entry):
        buffer = bytearray(self.length(entry) if self.place(entry) is not None else self._bounded(entry))
        self.read_into(entry, buffer)
        return bytes(buffer)

    def _bounded(self, entry):
        """The length of a compressed entry, refused when no compression could have made it so small."""
        info = self._info(entry)
        if info.file_size > 1100 * max(info.compress_size, 1):
            raise RuntimeError(f"{self.name} is damaged: entry {entry} says an impossible length")
        return info.file_size
