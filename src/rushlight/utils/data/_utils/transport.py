"""How batches travel from a worker process to the loader.

A message is a short pickle on a Unix socket. The bytes of tensors and arrays stay out of the pickle
(protocol 5 buffers) and go into an anonymous memory file whose descriptor rides along with the message; the
loader maps it and the tensors live in that mapping: one copy in the worker, none in the loader. Nothing has a
name, so nothing is left behind by a process that is killed, and /dev/shm with its small limit in containers
is not involved.
"""

import mmap
import os
import pickle
import socket
import struct
from io import BytesIO

import rushlight as rl

_HEADER = struct.Struct("=QQ")  # bytes of the pickle on the socket, bytes in the memory file (0: no file)
_ALIGN = 64
# Below this many bytes the pickle carries everything: a mapping costs some system calls and page faults.
_IN_BAND = 16 * 1024


def _tensor_from_buffer(buffer, dtype, shape):
    if not len(memoryview(buffer)):
        return rl.empty(shape, dtype=getattr(rl, dtype))
    return rl.frombuffer(buffer, dtype=getattr(rl, dtype)).reshape(shape)


def _grad_tensor(data, requires_grad):
    return data.requires_grad_(requires_grad)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value):
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
        dtype = str(value.dtype).rpartition(".")[2]
        return _tensor_from_buffer, (buffer, dtype, tuple(value.shape))


def _dump(value, buffers):
    out = BytesIO()
    _Pickler(out, 5, buffer_callback=None if buffers is None else buffers.append).dump(value)
    return out.getbuffer()


def _anonymous_file(size):
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


def _aligned(offset):
    return -(-offset // _ALIGN) * _ALIGN


def send(sock, value):
    """Send one value. Pickling errors are raised before anything is sent."""
    buffers = []
    pickled = _dump(value, buffers)
    raw = [buffer.raw() for buffer in buffers]
    if len(pickled) + sum(map(len, raw)) < _IN_BAND:
        body = _dump(value, None) if raw else pickled
        sock.sendall(_HEADER.pack(len(body), 0))
        sock.sendall(body)
        return
    # the file holds the pickle, then the buffers; the socket carries where each begins and ends
    spans, end = [], 0
    for part in (pickled, *raw):
        start = _aligned(end)
        end = start + len(part)
        spans.append((start, end))
    fd = _anonymous_file(end)
    try:
        with mmap.mmap(fd, end) as shared, memoryview(shared) as view:
            for part, (start, stop) in zip((pickled, *raw), spans, strict=True):
                view[start:stop] = part
        body = pickle.dumps(spans)
        socket.send_fds(sock, [_HEADER.pack(len(body), end)], [fd])
        sock.sendall(body)
    finally:
        os.close(fd)


def _receive_exactly(sock, size, fds):
    parts = []
    while size:
        if fds is None:
            chunk = sock.recv(min(size, 1 << 20))
        else:
            chunk, received, _, _ = socket.recv_fds(sock, size, 1)
            fds += received
        if not chunk:
            raise EOFError
        parts.append(chunk)
        size -= len(chunk)
    return b"".join(parts)


def receive(sock):
    """Receive one value; EOFError if the other side is gone."""
    fds = []
    try:
        size, shared_size = _HEADER.unpack(_receive_exactly(sock, _HEADER.size, fds))
        body = _receive_exactly(sock, size, None)
        if not shared_size:
            return pickle.loads(body)
        shared = memoryview(mmap.mmap(fds[0], shared_size))
    except ConnectionError:
        raise EOFError from None
    finally:
        for fd in fds:
            os.close(fd)
    spans = pickle.loads(body)
    pickled, *buffers = (shared[start:stop] for start, stop in spans)
    return pickle.loads(pickled, buffers=buffers)
