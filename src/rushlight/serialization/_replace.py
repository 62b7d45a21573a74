"""Files that are replaced whole: a process killed while it writes leaves the old file or the new one. A machine that
loses its power may lose the last file too, unless `utils.serialization.config.save.sync` makes saves wait for the disk.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import threading

from rushlight import _C
from rushlight.serialization import _options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any


_LARGE = 8 << 20
_begin_writeback = _C.ops["_begin_writeback"]


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` when the block ends without an error."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a directory")
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as out:  # a device or a pipe
            yield out
        return
    temporary = os.path.join(folder, f".{os.urandom(8).hex()}.tmp")
    _forget_pages(path)
    try:
        with _new_file(folder, temporary) as out:
            try:
                yield out
                out.flush()
            finally:
                out.raw.end()  # type: ignore[attr-defined]  # an _Output under a buffer, see _new_file
            if _options.config.save.sync:
                os.fsync(out.fileno())
            with contextlib.suppress(OSError):
                os.fchmod(out.fileno(), os.stat(path).st_mode & 0o7777)
            _give_name(out, temporary)
        old = _held(path)
        os.replace(temporary, path)
        if old is not None:
            threading.Thread(target=os.close, args=(old,), daemon=True).start()
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if _options.config.save.sync:
        _sync_folder(folder)


def _held(path: str) -> int | None:
    """A descriptor of a large file that is about to be replaced: the system gives its memory and blocks back when the
    last reference goes, which takes longer than writing the new file, and so waits in a thread of its own.
    """
    with contextlib.suppress(OSError):
        if os.stat(path).st_size >= _LARGE:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return None


def _forget_pages(path: str) -> None:
    """Lets the system drop its copy in memory of a large file that is about to be replaced, as far as it is on the
    disk: the new file takes those pages, instead of memory that was not used for long, which may have to be fetched
    from elsewhere first (in a virtual machine from its host, at a fifth of the speed).
    """
    old = _held(path)
    if old is not None:
        with contextlib.suppress(AttributeError, OSError):
            os.posix_fadvise(old, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(old)


class _Output(io.FileIO):
    """A file whose large writes go to the disk while later ones are still being made.

    A rename over an existing file sends the new one to its disk (on ext4 and others, lest a loss of power leaves
    neither), which for a large file takes as long as writing it took. Files that replace none begin early too: the
    sooner they are on the disk, the sooner their memory can be taken by the one that replaces them.
    """

    ranges: queue.SimpleQueue[tuple[int, int] | None] | None = (
        None  # written, and not yet begun by the thread
    )

    def write(self, data: Any) -> int:
        piece = memoryview(data).cast("B")[:_LARGE]
        done = super().write(piece)
        if len(piece) == _LARGE:
            if self.ranges is None:
                self.ranges = queue.SimpleQueue()
                # A descriptor of its own, which stays valid when the file is closed before the thread is done.
                arguments = (os.dup(self.fileno()), self.ranges)
                threading.Thread(target=_write_back, args=arguments, daemon=True).start()
            self.ranges.put((self.tell() - done, done))
        return done

    def end(self) -> None:
        """No write follows."""
        if self.ranges is not None:
            self.ranges.put(None)


def _write_back(fd: int, ranges: queue.SimpleQueue[tuple[int, int] | None]) -> None:
    try:
        while (part := ranges.get()) is not None:
            _begin_writeback(fd, *part)
    finally:
        os.close(fd)


def _sync_folder(folder: str) -> None:
    with contextlib.suppress(OSError):  # the new name must reach the disk too
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _new_file(folder: str, temporary: str) -> IO[bytes]:
    """A file without a name where the system has such, so that a killed process leaves nothing behind."""
    if os.path.exists("/proc/self/fd"):
        with contextlib.suppress(AttributeError, OSError):
            return io.BufferedRandom(_Output(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), "r+"))
    try:
        return io.BufferedRandom(_Output(temporary, "x+"))
    except PermissionError as e:
        raise PermissionError(
            e.errno,
            "saving writes a new file beside the old one and then replaces it, so the folder must be writable",
            folder,
        ) from None


def _give_name(out: IO[bytes], temporary: str) -> None:
    if not os.path.exists(temporary):
        # A descriptor is given, though the path is absolute, because then Python follows the link in /proc.
        os.link(f"/proc/self/fd/{out.fileno()}", temporary, src_dir_fd=out.fileno())
