"""How the processes of a group find one another."""

import os

from rushlight.distributed._stores import FileStore, HashStore
from rushlight.distributed._tcp_store import TCPStore


def meet(store, init_method, rank, world_size, timeout):
    """(store, rank, number of processes) from what init_process_group was given."""
    if store is not None:
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        store.set_timeout(timeout)
        return store, rank, world_size
    method = init_method or "env://"
    scheme, _, rest = method.partition("://")
    if scheme not in ("env", "tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {scheme}://")
    rest, given = _options(rest)
    rank = int(given.get("rank", rank))
    world_size = int(given.get("world_size", world_size))
    if scheme == "env":
        world_size = _number("WORLD_SIZE", world_size, 1)
        rank = 0 if world_size == 1 else _number("RANK", rank, -1)
    if world_size == 1:
        return HashStore(), 0, 1
    if rank < 0 or world_size < 0:
        raise ValueError(
            f"Error initializing torch.distributed using {scheme}:// rendezvous: rank and world_size must be given"
        )
    if rank >= world_size:
        raise ValueError(f"rank {rank} is not below world_size {world_size}")
    if scheme == "file":
        return FileStore(rest, world_size), rank, world_size
    host, port = (rest.rpartition(":")[0], rest.rpartition(":")[2]) if scheme == "tcp" else _master()
    return TCPStore(host.strip("[]"), int(port), world_size, rank == 0, timeout), rank, world_size


def _options(rest):
    """What stands before and after the question mark of a URL."""
    from urllib.parse import parse_qsl

    path, _, query = rest.partition("?")
    return path, dict(parse_qsl(query))


def _number(name, given, default):
    """A number that is given as an argument or in the environment, or its default if that is not negative."""
    if given >= 0:
        return given
    if name in os.environ:
        return int(os.environ[name])
    if default >= 0:
        return default
    raise ValueError(
        "Error initializing torch.distributed using env:// rendezvous: "
        f"environment variable {name} expected, but not set"
    )


def _master():
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if name not in os.environ:
            raise ValueError(
                "Error initializing torch.distributed using env:// rendezvous: "
                f"environment variable {name} expected, but not set"
            )
    return os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]
