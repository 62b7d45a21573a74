"""A store that processes reach by TCP."""

import socket
import threading
import time

from rushlight.distributed._stores import DistNetworkError, HashStore, Store, _packed, _read_fields


def _receive(connection, count):
    """Exactly `count` bytes of a socket."""
    found = bytearray()
    while len(found) < count:
        part = connection.recv(min(count - len(found), 1 << 20))
        if not part:
            raise DistNetworkError("Connection closed by peer")
        found += part
    return bytes(found)


class TCPStore(Store):
    """A table in one process, the master, that the others reach by TCP.

    Args:
        host_name (str): of the master.
        port (int): 0 takes a free one. Default: 29500
        world_size (int): how many processes there are. Default: None
        is_master (bool): whether this process is the master. Default: False
        timeout (timedelta): of all calls. Default: None
        wait_for_workers (bool): waits until all are there. Default: True

    Example:
        >>> store = torch.distributed.TCPStore("127.0.0.1", 0, 1, True)
        >>> store.set("key", "value")
        >>> store.get("key")
        b'value'
    """

    def __init__(
        self,
        host_name,
        port=29500,
        world_size=None,
        is_master=False,
        timeout=None,
        wait_for_workers=True,
        **_,
    ):
        super().__init__()
        if timeout is not None:
            self._timeout = timeout
        self.host, self._lock = host_name, threading.Lock()
        self._server = None
        if is_master:
            self._server = socket.create_server((host_name, port), family=_family(host_name, port))
            port = self._server.getsockname()[1]
            threading.Thread(target=self._serve, args=(self._server, HashStore()), daemon=True).start()
        self.port = port
        self._connection = self._connect()
        if world_size and wait_for_workers:
            self._wait_for(world_size)

    def _wait_for(self, world_size):
        """Returns once as many processes as the group has are connected."""
        if self.add("/workers", 1) == world_size:
            self.set("/complete", "1")
        self.wait(["/complete"])

    def _connect(self):
        end = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                connection = socket.create_connection((self.host, self.port), timeout=5)
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except OSError as error:
                if time.monotonic() > end:
                    raise DistNetworkError(
                        f"The client socket has timed out while trying to connect to ({self.host}, {self.port})"
                    ) from error
                time.sleep(0.05)

    def _serve(self, server, table):
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return  # the store was closed
            threading.Thread(target=self._answer, args=(connection, table), daemon=True).start()

    def _answer(self, connection, table):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            try:
                while True:
                    operation, *fields = _read_fields(lambda count: _receive(connection, count))
                    connection.sendall(_packed(table._call(operation, *fields)))
            except (DistNetworkError, OSError):
                return  # that process has left

    def _call(self, operation, *fields):
        try:
            with self._lock:
                self._connection.sendall(_packed([operation, *fields]))
                return _read_fields(lambda count: _receive(self._connection, count))
        except OSError as error:
            raise DistNetworkError(
                f"the store at ({self.host}, {self.port}) does not answer: {error}"
            ) from error


def _family(host, port):
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
