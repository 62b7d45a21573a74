"""The bytes of a file from where it stands, read piece by piece: into tensors without a copy in between."""

from __future__ import annotations

import io

import rushlight as rl
from rushlight import _C
from rushlight.serialization._vm import UnpicklingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

    from rushlight._C import Tensor


_read_file = _C.ops["_read_file"]


def is_plain_file(f: IO[bytes]) -> bool:
    """Whether the positions in f are those of its descriptor (those of a GzipFile, which has one too, are not)."""
    return type(f) is io.FileIO or (type(f) is io.BufferedReader and type(f.raw) is io.FileIO)


class Source:
    """A seekable file; positions count from where it stood."""

    def __init__(self, f: IO[bytes], name: str) -> None:
        self.f, self.name, self.start = f, name, f.tell()
        self.descriptor = f.fileno() if is_plain_file(f) else None
        f.seek(0, 2)
        self.size = f.tell() - self.start
        f.seek(self.start)

    def at(self, pos: int, length: int) -> bytes:
        """Up to `length` bytes; fewer at the end of the file."""
        self.f.seek(self.start + pos)
        pieces = []
        while length > 0 and (piece := self.f.read(length)):
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)

    def fill(self, tensor: Tensor, pos: int) -> None:
        """Reads len(tensor) bytes into a tensor of bytes."""
        if not len(tensor):
            return
        if self.descriptor is not None:
            try:
                _read_file(tensor, self.descriptor, self.start + pos, False)
            except RuntimeError as e:
                raise UnpicklingError(f"{self.name} is truncated or damaged: {e}") from None
        elif type(self.f) is io.BytesIO:  # by all threads, new pages included
            first = self.start + pos
            tensor.copy_(rl.frombuffer(self.f.getbuffer(), dtype=rl.uint8)[first : first + len(tensor)])
        else:
            data = self.at(pos, len(tensor))
            if len(data) < len(tensor):
                raise UnpicklingError(f"{self.name} is truncated")
            memoryview(tensor._memory())[:] = data
