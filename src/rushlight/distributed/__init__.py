"""Collectives of a group of one: every name that training scripts use, for a single process."""

import contextlib
import datetime
import enum

import rushlight as rl
from rushlight._compose import _overridable
from rushlight._missing import teach as _teach

default_pg_timeout = datetime.timedelta(minutes=30)


class DistError(RuntimeError):
    """An error of communication."""


DistBackendError = DistNetworkError = DistStoreError = DistError


class ReduceOp(enum.Enum):
    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class Backend(str):
    """A backend's name, in lower case."""

    default_device_backend_map = {"cpu": "gloo"}
    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"

    def __new__(cls, name):
        return super().__new__(cls, name.lower())

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """Keeps the name of a backend; a group of one never asks it for anything."""
        if hasattr(cls, name.upper()):
            raise AssertionError(f"{name.upper()} c10d backend already exist")
        setattr(cls, name.upper(), name.lower())


class ProcessGroup:
    """A group of processes: this one."""

    def __init__(self, backend="gloo"):
        self._backend = backend

    def rank(self):
        return 0

    def size(self):
        return 1

    def name(self):
        return self._backend


class group:
    WORLD = None
    NON_GROUP_MEMBER = object()


GroupMember = group


class Work:
    """Work that is done already."""

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True

    def is_success(self):
        return True


def is_available():
    """Whether this package is there: it is, for groups of one process."""
    return True


def is_initialized():
    return group.WORLD is not None


def is_backend_available(backend):
    """Whether a backend can be chosen: Gloo's name stands for the group of one."""
    return str(backend).lower() == "gloo"


def is_gloo_available():
    return True


def is_nccl_available():
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def is_torchelastic_launched():
    """Whether torchrun started this process."""
    import os

    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def init_process_group(
    backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", **kwargs
):
    """Starts the group of this one process; WORLD_SIZE in the environment counts as world_size."""
    import os

    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    size = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", 1))
    if size != 1:
        raise RuntimeError(
            f"init_process_group: {size} processes were asked for, but only one is supported; start one "
            "process"
        )
    group.WORLD = ProcessGroup(backend or "gloo")


def destroy_process_group(group=None):
    globals()["group"].WORLD = None


def _world():
    if not is_initialized():
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    return group.WORLD


def get_rank(group=None):
    _world()
    return 0


def get_world_size(group=None):
    _world()
    return 1


def get_backend(group=None):
    return _world().name()


def new_group(ranks=None, timeout=None, backend=None, **kwargs):
    return ProcessGroup(backend or _world().name())


def get_process_group_ranks(group):
    return [0]


def get_group_rank(group, global_rank):
    return 0


def get_global_rank(group, group_rank):
    return 0


def _done(async_op):
    _world()
    return Work() if async_op else None


def _collective(function):
    """Decorator: classes and modes may take the function over; its address is that of PyTorch's."""
    overridable = _overridable(function)
    overridable.__module__ = "rushlight.distributed.distributed_c10d"
    return overridable


def barrier(group=None, async_op=False, device_ids=None):
    return _done(async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    _world()


@_collective
def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    return _done(async_op)


@_collective
def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    return _done(async_op)


@_collective
def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    return _done(async_op)


@_collective
def all_gather(tensor_list, tensor, group=None, async_op=False):
    with rl.no_grad():
        tensor_list[0].copy_(tensor)
    return _done(async_op)


@_collective
def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    with rl.no_grad():
        output_tensor.copy_(input_tensor.reshape(output_tensor.shape))
    return _done(async_op)


_all_gather_base = all_gather_into_tensor


@_collective
def all_gather_single(output_tensor, input_tensor, group=None, async_op=False):
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


@_collective
def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    for outputs, tensor in zip(output_tensor_lists, input_tensor_list, strict=True):
        all_gather(outputs, tensor, group)
    return _done(async_op)


@_collective
def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    return _done(async_op)


@_collective
def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    if gather_list:
        gather_list[0].copy_(tensor)
    return _done(async_op)


@_collective
def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    if scatter_list:
        tensor.copy_(scatter_list[0])
    return _done(async_op)


@_collective
def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    output.copy_(input_list[0])
    return _done(async_op)


@_collective
def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    output.copy_(input.reshape(output.shape))
    return _done(async_op)


@_collective
def reduce_scatter_single(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    return reduce_scatter_tensor(output, input, op, group, async_op)


@_collective
def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    output_tensor_list[0].copy_(input_tensor_list[0])
    return _done(async_op)


@_collective
def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    output.copy_(input)
    return _done(async_op)


def all_gather_object(object_list, obj, group=None):
    _world()
    object_list[0] = obj


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    _world()
    if object_gather_list:
        object_gather_list[0] = obj


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    _world()


def scatter_object_list(output, input, src=None, group=None, group_src=None):
    _world()
    output[0] = input[0]


def _alone(*args, **kwargs):
    raise RuntimeError("there is no other process to talk to in a group of one")


@_collective
def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    _alone()


@_collective
def recv(tensor, src=None, group=None, tag=0, group_src=None):
    _alone()


@_collective
def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    _alone()


@_collective
def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    _alone()


batch_isend_irecv = _alone


def get_node_local_rank(fallback_rank=None):
    import os

    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank.")


@contextlib.contextmanager
def _coalescing_manager(*args, **kwargs):
    yield


class _Store:
    """A table of keys and values that processes share: with one process, a dictionary."""

    def __init__(self, *args, **kwargs):
        self._values = {}

    def set(self, key, value):
        self._values[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key):
        if key not in self._values:
            raise DistStoreError(f"key {key!r} was never set, and there is no other process that could")
        return self._values[key]

    def add(self, key, amount):
        total = int(self._values.get(key, b"0")) + amount
        self._values[key] = str(total).encode()
        return total

    def wait(self, keys, timeout=None):
        for key in keys:
            self.get(key)

    def check(self, keys):
        return all(key in self._values for key in keys)

    def delete_key(self, key):
        return self._values.pop(key, None) is not None

    def num_keys(self):
        return len(self._values)

    def set_timeout(self, timeout):
        return None


Store = TCPStore = FileStore = HashStore = PrefixStore = _Store
reduce_op = ReduceOp
setattr(ReduceOp, "RedOpType", ReduceOp)  # noqa: B010
ProcessGroupGloo = ProcessGroupNCCL = ProcessGroup
send_object_list = recv_object_list = _alone


class P2POp:
    """A message to another process, for batch_isend_irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def _rank_not_in_group(group):
    return False


def supports_complex(reduceOp):
    return True


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    if name in ("DeviceMesh", "init_device_mesh"):
        from rushlight.distributed import device_mesh

        return getattr(device_mesh, name)
    return _teach(__name__)(name)
