"""How batches travel from a worker process to the loader.

A message is a short pickle on a Unix socket. The bytes of tensors and arrays stay out of the pickle
(protocol 5 buffers) and go into an anonymous memory file whose descriptor rides along with the message; the
loader maps it and the tensors live in that mapping: one copy in the worker, none in the loader. Large batches
are stacked in such a file from the beginning (`shared_empty`), which saves the worker's copy too. Nothing has a
name, so nothing is left behind by a process that is killed, and /dev/shm with its small limit in containers
is not involved.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import struct
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import rushlight as rl
from rushlight._C import Tensor, dtype

_HEADER = struct.Struct("=QQ")  # bytes of the pickle on the socket, bytes in the memory file (0: no file)
_ALIGN = 64
# Below this many bytes the pickle carries everything: a mapping costs some system calls and page faults.
_IN_BAND = 16 * 1024
_MOST_SEGMENTS = 32  # descriptors in one message; the system allows some 250

_segments: dict[int, int] = {}  # address: descriptor, of tensors from shared_empty() that were not sent yet


def shared_empty(shape: Sequence[int], dtype: dtype) -> Tensor | None:
    """A tensor in a memory file of its own, for the next message; None when there are enough of them."""
    count = 1
    for n in shape:
        count *= n
    if len(_segments) >= _MOST_SEGMENTS or not count:
        return None
    fd = _anonymous_file(count * dtype.itemsize)
    try:
        tensor = rl.frombuffer(mmap.mmap(fd, count * dtype.itemsize), dtype=dtype).reshape(shape)
    except BaseException:
        os.close(fd)
        raise
    _segments[tensor.data_ptr()] = fd
    return tensor


def forget_segments() -> None:
    """Closes the files of shared_empty(); the tensors keep their mappings."""
    while _segments:
        os.close(_segments.popitem()[1])


def _tensor_from_buffer(buffer: Any, dtype: str, shape: tuple[int, ...]) -> Tensor:
    if not len(memoryview(buffer)):
        return rl.empty(shape, dtype=getattr(rl, dtype))
    return rl.frombuffer(buffer, dtype=getattr(rl, dtype)).reshape(shape)


def _grad_tensor(data: Tensor, requires_grad: bool) -> Tensor:
    return data.requires_grad_(requires_grad)


class _Pickler(pickle.Pickler):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.own_files: dict[int, int] = {}  # id of a buffer: descriptor of the file that it already is

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not rl.Tensor or value.device.type != "cpu" or value.layout != rl.strided:
            return NotImplemented
        if value.requires_grad:
            if not value.is_leaf:
                raise RuntimeError(
                    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does "
                    "not support crossing process boundaries. If you just want to transfer the data, call "
                    "detach() on the tensor before serializing (e.g., putting it on the queue)."
                )
            return _grad_tensor, (value.detach(), True)
        flat = value.contiguous().reshape(-1)
        buffer = pickle.PickleBuffer(flat.view(rl.uint8).numpy()) if flat.numel() else b""
        fd = _segments.get(value.data_ptr()) if flat.numel() else None
        if fd is not None and os.fstat(fd).st_size == flat.numel() * flat.element_size():
            self.own_files[id(buffer)] = fd
        dtype = str(value.dtype).rpartition(".")[2]
        return _tensor_from_buffer, (buffer, dtype, tuple(value.shape))


def _dump(value: object, buffers: list[pickle.PickleBuffer] | None) -> tuple[memoryview, dict[int, int]]:
    """(pickle, {id of a buffer: descriptor})"""
    out = BytesIO()
    pickler = _Pickler(out, 5, buffer_callback=None if buffers is None else buffers.append)
    pickler.dump(value)
    return out.getbuffer(), pickler.own_files


def _anonymous_file(size: int) -> int:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("rushlight-batch", os.MFD_CLOEXEC)
    else:
        import tempfile

        fd, path = tempfile.mkstemp(prefix="rushlight-batch")
        os.unlink(path)
    try:
        os.ftruncate(fd, size)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGN) * _ALIGN


def send(sock: socket.socket, value: object) -> None:
    """Send one value. Pickling errors are raised before anything is sent."""
    buffers: list[pickle.PickleBuffer] = []
    pickled, own_files = _dump(value, buffers)
    raw = [buffer.raw() for buffer in buffers]
    if len(pickled) + sum(map(len, raw)) < _IN_BAND:
        body = _dump(value, None)[0] if raw else pickled
        sock.sendall(_HEADER.pack(len(body), 0))
        sock.sendall(body)
        return
    # One file holds the pickle, then the buffers that are not files already; the socket carries the number of the file
    # where each is, and where it begins and ends.
    parts = [(pickled, None), *zip(raw, map(own_files.get, map(id, buffers)), strict=True)]
    files: dict[int, int] = {}
    ranges: list[tuple[int, int, int]] = []  # (file, start, end)
    end = 0
    for part, own in parts:
        if own is not None:
            ranges.append((files.setdefault(own, len(files) + 1), 0, len(part)))
            continue
        start = _aligned(end)
        end = start + len(part)
        ranges.append((0, start, end))
    fd = _anonymous_file(end)
    try:
        with mmap.mmap(fd, end) as shared, memoryview(shared) as view:
            for (part, _), (file, start, stop) in zip(parts, ranges, strict=True):
                if file == 0:
                    view[start:stop] = part
        body = pickle.dumps(ranges)
        socket.send_fds(sock, [_HEADER.pack(len(body), end)], [fd, *files])
        sock.sendall(body)
    finally:
        os.close(fd)


def _receive_exactly(sock: socket.socket, size: int, fds: list[int] | None) -> bytes:
    parts = []
    while size:
        if fds is None:
            chunk = sock.recv(min(size, 1 << 20))
        else:
            chunk, received, _, _ = socket.recv_fds(sock, size, 1 + _MOST_SEGMENTS)
            fds += received
        if not chunk:
            raise EOFError
        parts.append(chunk)
        size -= len(chunk)
    return b"".join(parts)


def receive(sock: socket.socket) -> Any:
    """Receive one value; EOFError if the other side is gone."""
    fds: list[int] = []
    try:
        size, shared_size = _HEADER.unpack(_receive_exactly(sock, _HEADER.size, fds))
        body = _receive_exactly(sock, size, None)
        if not shared_size:
            return pickle.loads(body)
        ranges = pickle.loads(body)
        lengths = {0: shared_size, **{file: stop for file, _, stop in ranges if file}}
        shared = {file: memoryview(mmap.mmap(fds[file], length)) for file, length in lengths.items()}
    except ConnectionError:
        raise EOFError from None
    finally:
        for fd in fds:
            os.close(fd)
    pickled, *buffers = (shared[file][start:stop] for file, start, stop in ranges)
    return pickle.loads(pickled, buffers=buffers)
