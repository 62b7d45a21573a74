"""Groups of processes on CPUs: collectives over TCP, for one machine or several.

A group of one needs no address and does no communication.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight.distributed._group import (
    ProcessGroup as ProcessGroup,
    ReduceOp as ReduceOp,
    _world,
    default_pg_timeout as default_pg_timeout,
    group as group,
    member_group as member_group,
)
from rushlight.distributed._stores import (
    DistBackendError as DistBackendError,
    DistError as DistError,
    DistNetworkError as DistNetworkError,
    DistQueueEmptyError as DistQueueEmptyError,
    DistStoreError as DistStoreError,
    FileStore as FileStore,
    HashStore as HashStore,
    PrefixStore as PrefixStore,
    Store as Store,
)
from rushlight.distributed._tcp_store import TCPStore as TCPStore


class Backend(str):
    """A backend's name, in lower case.

    Args:
        name (str): in any case.

    Example:
        >>> torch.distributed.Backend("GLOO")
        'gloo'
    """

    default_device_backend_map = {"cpu": "gloo"}
    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"

    def __new__(cls, name: str) -> Any:
        return super().__new__(cls, name.lower())

    @classmethod
    def register_backend(
        cls, name: Any, func: Any, extended_api: bool = False, devices: str | list[str] | None = None
    ) -> None:
        """Keeps the name of a backend; a group of one never asks it for anything."""
        if hasattr(cls, name.upper()):
            raise AssertionError(f"{name.upper()} c10d backend already exist")
        setattr(cls, name.upper(), name.lower())


GroupMember = group


def is_available() -> bool:
    """Whether this package is there: it is.

    Example:
        >>> torch.distributed.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Whether this process is in a default group.

    Example:
        >>> torch.distributed.is_initialized()
        False
    """
    return group.WORLD is not None


def is_backend_available(backend: str) -> bool:
    """Whether a backend can be chosen.

    Args:
        backend (str): its name.

    Example:
        >>> torch.distributed.is_backend_available("gloo"), torch.distributed.is_backend_available("nccl")
        (True, False)
    """
    return str(backend).lower() == "gloo"


def is_gloo_available() -> bool:
    """Whether Gloo's collectives are there.

    Example:
        >>> torch.distributed.is_gloo_available()
        True
    """
    return True


def is_nccl_available() -> bool:
    """Whether the other backends (NCCL, MPI, UCC, XCCL) are there: they are not.

    Example:
        >>> torch.distributed.is_nccl_available()
        False
    """
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process.

    Example:
        >>> torch.distributed.is_torchelastic_launched()
        False
    """
    import os

    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    **kwargs: Any,
) -> None:
    """Joins this process to the default group.

    Args:
        backend (str): "gloo", or None for it. Default: None
        init_method (str): how processes find one another without a store: "env://" (MASTER_ADDR, MASTER_PORT, RANK and
            WORLD_SIZE), "tcp://host:port" or "file:///path". Default: None, "env://"
        timeout (timedelta): of all calls. Default: None, 30 minutes
        world_size (int): how many processes there are. Default: -1, asked of the environment
        rank (int): which of them this is. Default: -1, asked of the environment
        store (Store): where they find one another. Default: None
        group_name (str): accepted. Default: ''
        kwargs: accepted.

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_world_size()
        1
        >>> dist.destroy_process_group()
    """
    from rushlight.distributed import _rendezvous

    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    name = Backend(backend or "gloo")
    _check_backend(name)
    timeout = timeout or default_pg_timeout
    store, rank, size = _rendezvous.meet(store, init_method, rank, world_size, timeout)
    group.WORLD = member_group(name, store, range(size), rank, timeout, f"world/{_count()}")


def _check_backend(name: Any) -> None:
    """A backend that is here: Gloo's name stands for TCP on CPUs, and a registered one for a group of its own."""
    parts = [part.rpartition(":")[2] for part in name.split(",")]
    known = {value for key, value in vars(Backend).items() if key.isupper() and isinstance(value, str)}
    if not any(part in known and part != "undefined" for part in parts):
        raise AssertionError(f"Unknown backend type {name}")


_made = 0  # groups, so that each has keys of its own in the store


def _count() -> int:
    global _made
    _made += 1
    return _made


def destroy_process_group(group: Any = None) -> None:
    """Closes the connections of a group.

    Args:
        group (ProcessGroup): which. Default: None, all of them

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.is_initialized()
        True
        >>> dist.destroy_process_group()
    """
    space = globals()["group"]
    world = space.WORLD
    if world is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is world:
        for each in (*_groups, world):
            each.shutdown()
        _groups.clear()
        _leave_store(world.get_group_store())
        space.WORLD = None
    elif group in _groups:
        group.shutdown()
        _groups.remove(group)


def _leave_store(store: Any) -> None:
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    if isinstance(store, FileStore):
        store._leave()


_groups: list = []  # those of new_group


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process' rank in a group, or -1 where it is not of it.

    Args:
        group (ProcessGroup): which. Default: None, the world

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_rank()
        0
        >>> dist.destroy_process_group()
    """
    world = _world()
    if group is None:
        return world.rank()
    return group.rank() if isinstance(group, ProcessGroup) else -1


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes a group has, or -1 where this process is not of it.

    Args:
        group (ProcessGroup): which. Default: None, the world

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_world_size()
        1
        >>> dist.destroy_process_group()
    """
    world = _world()
    if group is None:
        return world.size()
    return group.size() if isinstance(group, ProcessGroup) else -1


def get_backend(group: Any = None) -> str:
    """The name of a group's backend.

    Args:
        group (ProcessGroup): which. Default: None, the world

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_backend()
        'gloo'
        >>> dist.destroy_process_group()
    """
    return (group or _world()).name()


def new_group(ranks: Any = None, timeout: Any = None, backend: str | None = None, **kwargs: Any) -> Any:
    """A group of some processes. Every process of the world calls it, in the same order.

    Args:
        ranks (sequence of ints): of the processes. Default: None, all
        timeout (timedelta): of all calls. Default: None
        backend (str): its name. Default: None
        kwargs: accepted.

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_rank(dist.new_group([0]))
        0
        >>> dist.destroy_process_group()
    """
    world = _world()
    ranks = sorted(world._ranks if ranks is None else ranks)
    if len(set(ranks)) < len(ranks):
        raise ValueError("the new group's rank should be unique")
    if not set(ranks) <= set(world._ranks):
        raise ValueError("the new group's rank should be within the world_size set by init_process_group")
    name = str(_count())
    if world.rank() not in ranks:
        return group.NON_GROUP_MEMBER
    made = member_group(
        backend or world.name(),
        world.get_group_store(),
        ranks,
        world.rank(),
        timeout or default_pg_timeout,
        name,
    )
    _groups.append(made)
    return made


def get_process_group_ranks(group: Any) -> list[int]:
    """The ranks in the world of a group's processes.

    Args:
        group (ProcessGroup): which; None is the world.

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_process_group_ranks(None)
        [0]
        >>> dist.destroy_process_group()
    """
    return list((group or _world())._ranks)


def get_group_rank(group: Any, global_rank: int) -> int:
    """A process' rank in a group, from that in the world.

    Args:
        group (ProcessGroup): which.
        global_rank (int): in the world.

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_group_rank(dist.group.WORLD, 0)
        0
        >>> dist.destroy_process_group()
    """
    own = group or _world()
    if own is _world():
        return global_rank
    if global_rank not in own._ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {own.group_name}")
    return own._ranks.index(global_rank)


def get_global_rank(group: Any, group_rank: int) -> int:
    """A process' rank in the world, from that in a group.

    Args:
        group (ProcessGroup): which.
        group_rank (int): in it.

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_global_rank(dist.group.WORLD, 0)
        0
        >>> dist.destroy_process_group()
    """
    own = group or _world()
    if own is _world():
        return group_rank
    if not 0 <= group_rank < own.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {own.group_name}")
    return own._ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process' rank on its machine, as the environment variable LOCAL_RANK says.

    Args:
        fallback_rank (int): where there is none. Default: None, which raises

    Example:
        >>> torch.distributed.get_node_local_rank(0)
        0
    """
    import os

    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank.")


@contextlib.contextmanager
def _coalescing_manager(*args: Any, **kwargs: Any) -> Iterator[None]:
    yield


reduce_op = ReduceOp
setattr(ReduceOp, "RedOpType", ReduceOp)  # noqa: B010
ProcessGroupGloo = ProcessGroupNCCL = ProcessGroup


def _rank_not_in_group(group: Any) -> bool:
    return group is not None and not isinstance(group, ProcessGroup)


def supports_complex(reduceOp: Any) -> bool:
    """Whether a reduction has a meaning for complex tensors: largest, smallest and products of bits have none.

    Args:
        reduceOp (ReduceOp): which.

    Example:
        >>> torch.distributed.supports_complex(torch.distributed.ReduceOp.SUM)
        True
    """
    return True


from rushlight.distributed._calls import Work as Work  # noqa: E402  these need the groups above
from rushlight.distributed._collectives import (  # noqa: E402
    _all_gather_base,
    _reduce_scatter_base,
    all_gather as all_gather,
    all_gather_coalesced as all_gather_coalesced,
    all_gather_into_tensor as all_gather_into_tensor,
    all_gather_single as all_gather_single,
    all_reduce as all_reduce,
    all_reduce_coalesced as all_reduce_coalesced,
    all_to_all as all_to_all,
    all_to_all_single as all_to_all_single,
    barrier as barrier,
    broadcast as broadcast,
    gather as gather,
    monitored_barrier as monitored_barrier,
    reduce as reduce,
    reduce_scatter as reduce_scatter,
    reduce_scatter_single as reduce_scatter_single,
    reduce_scatter_tensor as reduce_scatter_tensor,
    scatter as scatter,
)
from rushlight.distributed._messages import (  # noqa: E402
    P2POp as P2POp,
    all_gather_object as all_gather_object,
    batch_isend_irecv as batch_isend_irecv,
    broadcast_object_list as broadcast_object_list,
    gather_object as gather_object,
    irecv as irecv,
    isend as isend,
    recv as recv,
    recv_object_list as recv_object_list,
    scatter_object_list as scatter_object_list,
    send as send,
    send_object_list as send_object_list,
)


def __getattr__(name: str) -> Any:
    if name in ("DeviceMesh", "init_device_mesh"):
        from rushlight.distributed import device_mesh

        return getattr(device_mesh, name)
    return _unsupported_attribute(__name__)(name)
