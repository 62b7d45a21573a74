"""Stores: tables of keys and values that processes share, and by which they find one another."""

import datetime
import os
import struct
import threading
import time


class DistError(RuntimeError):
    """An error of communication."""


class DistBackendError(DistError):
    """An error of a backend."""


class DistNetworkError(DistError):
    """An error of the network."""


class DistStoreError(DistError):
    """An error of a store."""


class DistQueueEmptyError(DistStoreError):
    """A queue of a store has nothing to give."""


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """What every store can do; the subclasses say how `_call(operation, *fields)` reaches the table.

    Example:
        >>> issubclass(torch.distributed.TCPStore, torch.distributed.Store)
        True
    """

    def __init__(self):
        self._timeout = datetime.timedelta(seconds=300)

    def _call(self, operation, *fields):
        raise NotImplementedError(
            "Store: write HashStore(), FileStore(path, world_size) or TCPStore(host, port)"
        )

    @property
    def timeout(self):
        return self._timeout

    def set_timeout(self, timeout):
        """How long `get` and `wait` wait for a key."""
        self._timeout = timeout

    def set(self, key, value):
        self._call(b"set", key.encode(), _bytes(value))

    def get(self, key):
        """The value of a key, after waiting until some process sets it."""
        self.wait([key])
        return self._call(b"get", key.encode())[0]

    def add(self, key, amount):
        """Adds to the integer under a key, and gives the sum."""
        return int(self._call(b"add", key.encode(), str(amount).encode())[0])

    def append(self, key, value):
        self._call(b"append", key.encode(), _bytes(value))

    def compare_set(self, key, expected_value, desired_value):
        """Sets a key if its value is the expected one; gives the value that is there then."""
        return self._call(b"compare_set", key.encode(), _bytes(expected_value), _bytes(desired_value))[0]

    def check(self, keys):
        """Whether every key has been set."""
        return self._call(b"check", *(key.encode() for key in keys))[0] == b"1"

    def wait(self, keys, timeout=None):
        """Returns once every key has been set, and raises DistStoreError after `timeout`."""
        end = time.monotonic() + (timeout or self._timeout).total_seconds()
        pause = 0.0005
        while not self.check(keys):
            if time.monotonic() > end:
                raise DistStoreError(f"Wait timeout: no process has set {', '.join(keys)}")
            time.sleep(pause)
            pause = min(2 * pause, 0.02)

    def delete_key(self, key):
        return self._call(b"delete", key.encode())[0] == b"1"

    def num_keys(self):
        return int(self._call(b"num_keys")[0])

    def list_keys(self):
        return [key.decode() for key in self._call(b"list_keys")]

    def multi_get(self, keys):
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self):
        """Whether `append`, `multi_get` and `multi_set` are there."""
        return True


def _change(table, operation, fields):
    """Does one operation on a table of bytes; gives the fields of the answer."""
    key = fields[0] if fields else b""
    if operation == b"set":
        table[key] = fields[1]
    elif operation == b"get":
        return [table[key]]
    elif operation == b"add":
        table[key] = str(int(table.get(key, b"0")) + int(fields[1])).encode()
        return [table[key]]
    elif operation == b"append":
        table[key] = table.get(key, b"") + fields[1]
    elif operation == b"compare_set":
        if table.get(key, b"") == fields[1]:
            table[key] = fields[2]
        return [table.get(key, fields[1])]
    elif operation == b"check":
        return [b"1" if all(name in table for name in fields) else b"0"]
    elif operation == b"delete":
        return [b"0" if table.pop(key, None) is None else b"1"]
    elif operation == b"num_keys":
        return [str(len(table)).encode()]
    elif operation == b"list_keys":
        return list(table)
    return []


class HashStore(Store):
    """A table of this process, for its threads.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> store.set("key", "value")
        >>> store.get("key")
        b'value'
    """

    def __init__(self):
        super().__init__()
        self._table, self._lock = {}, threading.Lock()

    def _call(self, operation, *fields):
        with self._lock:
            return _change(self._table, operation, fields)


def _packed(fields):
    """Fields as one message: their count, then each with its length."""
    parts = [struct.pack("<I", len(fields))]
    for field in fields:
        parts += [struct.pack("<Q", len(field)), field]
    return b"".join(parts)


def _read_fields(read):
    """The fields of a message; `read(n)` gives the next n bytes."""
    (count,) = struct.unpack("<I", read(4))
    return [read(struct.unpack("<Q", read(8))[0]) for _ in range(count)]


class FileStore(Store):
    """A table in a file that the processes of one machine can reach: every change is appended to it.

    Args:
        file_name (str): the file.
        world_size (int): how many processes there are. Default: -1, unknown

    Example:
        >>> store = torch.distributed.FileStore("store", 1)
        >>> store.set("key", "value")
        >>> store.get("key")
        b'value'
    """

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self._path, self._users = os.fspath(file_name), world_size
        self._table, self._position, self._lock = {}, 0, threading.Lock()
        open(self._path, "ab").close()

    @property
    def path(self):
        return self._path

    def _catch_up(self, file):
        """Does the changes that were appended since the last look."""
        import io

        file.seek(self._position)
        new = io.BytesIO(file.read())
        self._position += len(new.getbuffer())
        while new.tell() < len(new.getbuffer()):
            operation, *fields = _read_fields(new.read)
            _change(self._table, operation, fields)

    def _call(self, operation, *fields):
        import fcntl

        with self._lock, open(self._path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._catch_up(file)
            answer = _change(self._table, operation, fields)
            if operation in (b"set", b"add", b"append", b"compare_set", b"delete"):
                message = _packed([operation, *fields])
                file.write(message)
                self._position += len(message)
            return answer

    def _leave(self):
        """Counts this process out; the last one removes the file, so that a later group can use its name."""
        if self._users > 0 and os.path.exists(self._path) and self.add("/left", 1) % self._users == 0:
            os.remove(self._path)


class PrefixStore(Store):
    """Another store, with a prefix before every key.

    Args:
        prefix (str): what comes before keys.
        store (Store): the other one.

    Example:
        >>> inner = torch.distributed.HashStore()
        >>> torch.distributed.PrefixStore("a", inner).set("key", "value")
        >>> inner.get("a/key")
        b'value'
    """

    def __init__(self, prefix, store):
        super().__init__()
        self._prefix, self._store = prefix, store
        self._timeout = store.timeout

    @property
    def underlying_store(self):
        return self._store

    def _call(self, operation, *fields):
        names = len(fields) if operation == b"check" else 1
        prefix = self._prefix.encode() + b"/"
        return self._store._call(operation, *(prefix + f if i < names else f for i, f in enumerate(fields)))
