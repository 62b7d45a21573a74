"""Connections between the processes of a group: each pair has a socket for collectives, and one for messages.

Everything that a collective does is an exchange: some bytes to some processes, some from others, all at the same
time, so that no order of calls inside of one collective can block.
"""

from __future__ import annotations

import collections
import secrets
import selectors
import socket
import struct
import threading
import time
from typing import Any

from rushlight.distributed._stores import DistBackendError
from rushlight.distributed._tcp_store import _receive

_HEADER = struct.Struct("<qq")  # of a message: its tag, its bytes
_SIZE = struct.Struct("<q")
_CHUNK = 1 << 20


class Links:
    """The sockets of one process of a group: `rank` of `size`, which find one another by a store."""

    def __init__(self, store, rank, size, timeout):
        self.rank, self.size, self.timeout = rank, size, timeout.total_seconds()
        self._lock = threading.Lock()
        self._inbox = collections.defaultdict(collections.deque)  # (peer, tag): messages nobody asked for yet
        self._outbox: Any = None  # a queue, once something was posted
        self._data, self._mail = {}, {}
        if size > 1:
            self._connect(store)

    def _connect(self, store):
        """Connects to every process of a lower rank, and is called by those of a higher one."""
        host = _own_address(store)
        token = secrets.token_bytes(16)
        with socket.create_server((host, 0), backlog=2 * self.size) as server:
            store.set(f"address/{self.rank}", f"{host} {server.getsockname()[1]} {token.hex()}")
            for peer in range(self.rank):
                address, port, word = store.get(f"address/{peer}").decode().split()
                for kind, links in enumerate((self._data, self._mail)):
                    link = socket.create_connection((address, int(port)), timeout=self.timeout)
                    link.sendall(bytes.fromhex(word) + struct.pack("<ii", self.rank, kind))
                    links[peer] = link
            server.settimeout(self.timeout)
            while len(self._data) + len(self._mail) < 2 * (self.size - 1):
                link, _ = server.accept()
                link.settimeout(self.timeout)
                if not secrets.compare_digest(_receive(link, 16), token):
                    link.close()  # not of this group
                    continue
                peer, kind = struct.unpack("<ii", _receive(link, 8))
                (self._mail if kind else self._data)[peer] = link
        for link in (*self._data.values(), *self._mail.values()):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.setblocking(False)

    def close(self):
        if self._outbox is not None:
            self._outbox.put(None)
        for link in (*self._data.values(), *self._mail.values()):
            link.close()
        self._data, self._mail = {}, {}

    # --- collectives ---

    def exchange(self, sends, receives):
        """Sends buffers and fills others: {peer: memoryview of bytes} both. Sizes that do not match are an error."""
        with self._lock:
            out = {peer: [memoryview(_SIZE.pack(len(b))), b] for peer, b in sends.items()}
            into = {peer: [memoryview(bytearray(_SIZE.size)), b] for peer, b in receives.items()}
            self._pump(out, into)

    def _pump(self, out, into):
        end = time.monotonic() + self.timeout
        with selectors.DefaultSelector() as ready:
            for peer in {*out, *into}:
                events = selectors.EVENT_WRITE * (peer in out) | selectors.EVENT_READ * (peer in into)
                ready.register(self._data[peer], events, peer)
            while out or into:
                found = ready.select(end - time.monotonic())
                if not found:
                    raise DistBackendError(
                        f"Timed out waiting {int(self.timeout * 1000)}ms for ranks {sorted({*out, *into})}"
                    )
                for key, events in found:
                    peer = key.data
                    if events & selectors.EVENT_WRITE:
                        self._write(peer, out)
                    if events & selectors.EVENT_READ:
                        self._read(peer, into)
                    left = selectors.EVENT_WRITE * (peer in out) | selectors.EVENT_READ * (peer in into)
                    if not left:
                        ready.unregister(key.fileobj)
                    elif left != key.events:
                        ready.modify(key.fileobj, left, peer)

    def _write(self, peer, out):
        parts = out[peer]
        try:
            sent = self._data[peer].send(parts[0][:_CHUNK])
        except BlockingIOError:
            return
        except OSError as error:
            raise DistBackendError(f"Connection closed by peer: rank {peer} ({error})") from error
        parts[0] = parts[0][sent:]
        while parts and not len(parts[0]):
            parts.pop(0)
        if not parts:
            del out[peer]

    def _read(self, peer, into):
        parts = into[peer]
        try:
            count = self._data[peer].recv_into(parts[0], min(len(parts[0]), _CHUNK))
        except BlockingIOError:
            return
        except OSError as error:
            raise DistBackendError(f"Connection closed by peer: rank {peer} ({error})") from error
        if not count:
            raise DistBackendError(f"Connection closed by peer: rank {peer} has left the group")
        if len(parts) == 2 and count == len(parts[0]):
            self._check_size(peer, parts)
        parts[0] = parts[0][count:]
        while parts and not len(parts[0]):
            parts.pop(0)
        if not parts:
            del into[peer]

    def _check_size(self, peer, parts):
        (size,) = _SIZE.unpack(bytes(parts[0].obj))
        if size != len(parts[1]):
            raise RuntimeError(
                f"op.preamble.length <= op.nbytes. {size} vs {len(parts[1])}: rank {peer} sends another number of bytes "
                "than is expected here; all processes must call the same collective with tensors of one size"
            )

    # --- messages ---

    def post(self, peer, tag, data):
        """Sends a message from a thread of its own: the caller never waits. Gives an event that is set once it is sent."""
        import queue

        if self._outbox is None:
            self._outbox = queue.SimpleQueue()
            threading.Thread(target=self._send_posts, daemon=True).start()
        sent = threading.Event()
        self._outbox.put((peer, _HEADER.pack(tag, len(data)) + data, sent))
        return sent

    def _send_posts(self):
        while (item := self._outbox.get()) is not None:
            peer, data, sent = item
            view = memoryview(data)
            with selectors.DefaultSelector() as ready:
                ready.register(self._mail[peer], selectors.EVENT_WRITE)
                while len(view):
                    ready.select(self.timeout)
                    try:
                        view = view[self._mail[peer].send(view[:_CHUNK]) :]
                    except BlockingIOError:
                        continue
                    except OSError:
                        break  # the other process has left; it will not miss the message
            sent.set()

    def collect(self, peer, tag):
        """The next message of a process (or of any, where it is None) with this tag: (sender, bytes)."""
        end = time.monotonic() + self.timeout
        while True:
            for sender in self._mail if peer is None else [peer]:
                if self._inbox[sender, tag]:
                    return sender, self._inbox[sender, tag].popleft()
            links = self._mail if peer is None else {peer: self._mail[peer]}
            with selectors.DefaultSelector() as ready:
                for sender, link in links.items():
                    ready.register(link, selectors.EVENT_READ, sender)
                found = ready.select(end - time.monotonic())
            if not found:
                raise DistBackendError(
                    f"Timed out waiting {int(self.timeout * 1000)}ms for recv operation to complete"
                )
            for key, _ in found:
                self._take_message(key.data)

    def _take_message(self, sender):
        link = self._mail[sender]
        link.settimeout(self.timeout)
        try:
            tag, size = _HEADER.unpack(_receive(link, _HEADER.size))
            self._inbox[sender, tag].append(_receive(link, size))
        finally:
            link.setblocking(False)


def _own_address(store):
    """The address at which other processes reach this one: that of the interface towards the store."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    host = getattr(store, "host", None)
    if host is None:  # a file: the processes are of one machine
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((socket.gethostbyname(host), store.port or 1))
        return probe.getsockname()[0]
