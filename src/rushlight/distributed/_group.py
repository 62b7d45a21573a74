"""Groups of processes, and the collectives on the bytes of tensors."""

import datetime
import enum
import pickle

import rushlight as rl
from rushlight.distributed._links import Links
from rushlight.distributed._stores import PrefixStore

default_pg_timeout = datetime.timedelta(minutes=30)


class group:
    """What the default group is asked of: group.WORLD, once there is one.

    Example:
        >>> torch.distributed.group.WORLD is None
        True
    """

    __module__ = "rushlight.distributed"
    WORLD = None
    NON_GROUP_MEMBER = object()


def _world():
    """The default group, which must be there."""
    if group.WORLD is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    return group.WORLD


class ReduceOp(enum.Enum):
    """How tensors are combined: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR or PREMUL_SUM.

    Example:
        >>> torch.distributed.ReduceOp.MAX
        <ReduceOp.MAX: 4>
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


_COMBINE = {
    ReduceOp.SUM: lambda a, b: a.add_(b),
    ReduceOp.AVG: lambda a, b: a.add_(b),
    ReduceOp.PRODUCT: lambda a, b: a.mul_(b),
    ReduceOp.MIN: lambda a, b: a.copy_(a.minimum(b)),
    ReduceOp.MAX: lambda a, b: a.copy_(a.maximum(b)),
    ReduceOp.BAND: lambda a, b: a.bitwise_and_(b),
    ReduceOp.BOR: lambda a, b: a.bitwise_or_(b),
    ReduceOp.BXOR: lambda a, b: a.bitwise_xor_(b),
}


def _bytes_of(tensor):
    """The memory of a contiguous tensor."""
    if not tensor.numel():
        return memoryview(b"")
    return memoryview(tensor.detach().reshape(-1).view(rl.uint8).numpy())


def _check_reducible(tensor, op):
    if tensor.dtype == rl.bool or tensor.dtype not in _reducible():
        raise RuntimeError("Invalid scalar type")
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and (
        tensor.is_floating_point() or tensor.is_complex()
    ):
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op not in _COMBINE:
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with Gloo")


def _reducible():
    return {
        rl.float16, rl.bfloat16, rl.float32, rl.float64, rl.int8, rl.uint8, rl.int16, rl.int32, rl.int64,
        rl.complex64, rl.complex128,
    }  # fmt: skip


class ProcessGroup:
    """Processes that talk to one another.

    Args:
        backend (str): its name. Default: 'gloo'
        store (Store): where they find one another. Default: None
        ranks (sequence of ints): their ranks in the world. Default: (0,)
        rank (int): which of them this is. Default: 0
        timeout (timedelta): of all calls. Default: None
        name (str): its own. Default: '0'

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.group.WORLD.size()
        1
        >>> dist.destroy_process_group()
    """

    def __init__(self, backend="gloo", store=None, ranks=(0,), rank=0, timeout=None, name="0"):
        self._backend, self._ranks, self._rank = backend, list(ranks), rank
        self.group_name, self.group_desc, self._store = name, "undefined", store
        self._links = Links(store, rank, len(self._ranks), timeout or default_pg_timeout)

    def rank(self):
        return self._rank

    def size(self):
        return len(self._ranks)

    def name(self):
        return self._backend

    def get_group_store(self):
        return self._store

    def shutdown(self):
        """Closes the connections."""
        self._links.close()

    abort = shutdown

    def _others(self):
        return [peer for peer in range(self.size()) if peer != self._rank]

    # --- on flat memory ---

    def _swap(self, outgoing, incoming):
        """Sends {rank: contiguous tensor} and fills {rank: contiguous tensor}; what goes to itself is copied."""
        me = self._rank
        if me in outgoing and me in incoming:
            incoming[me].copy_(outgoing[me].reshape(incoming[me].shape))
        self._links.exchange(
            {peer: _bytes_of(t) for peer, t in outgoing.items() if peer != me},
            {peer: _bytes_of(t) for peer, t in incoming.items() if peer != me},
        )

    def broadcast(self, tensor, root):
        data = tensor.detach().contiguous()
        if self._rank == root:
            self._swap(dict.fromkeys(self._others(), data), {})
            return
        self._swap({}, {root: data})
        _fill(tensor, data)

    def allgather(self, outputs, tensor):
        data = tensor.detach().contiguous()
        found = [rl.empty_like(data, memory_format=rl.contiguous_format) for _ in outputs]
        self._swap(dict.fromkeys(range(self.size()), data), dict(enumerate(found)))
        for output, part in zip(outputs, found, strict=True):
            _fill(output, part)

    def reduce_scatter(self, output, inputs, op):
        """The reduction of everyone's inputs[rank], taken in the order of ranks: the same on every machine."""
        _check_reducible(output, op)
        parts = [t.detach().contiguous() for t in inputs]
        found = [rl.empty_like(parts[self._rank]) for _ in parts]
        self._swap(dict(enumerate(parts)), dict(enumerate(found)))
        total = found[0]
        for part in found[1:]:
            _COMBINE[op](total, part)
        if op is ReduceOp.AVG:
            total = total / self.size() if total.is_floating_point() else total // self.size()
        _fill(output, total.reshape(output.shape))

    def allreduce(self, tensor, op):
        """A part of the elements is reduced by each process, then everyone gets every part."""
        _check_reducible(tensor, op)
        if self.size() == 1:
            return
        flat = tensor.detach().contiguous().reshape(-1).clone()
        bounds = [flat.numel() * i // self.size() for i in range(self.size() + 1)]
        parts = [flat[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]
        mine = rl.empty_like(parts[self._rank])
        self.reduce_scatter(mine, parts, op)
        self._swap(dict.fromkeys(self._others(), mine), {p: parts[p] for p in self._others()})
        parts[self._rank].copy_(mine)
        _fill(tensor, flat.reshape(tensor.shape))

    def reduce(self, tensor, root, op):
        """As allreduce, but only the root's tensor changes."""
        total = tensor.detach().clone()
        self.allreduce(total, op)
        if self._rank == root:
            _fill(tensor, total)

    def gather(self, outputs, tensor, root):
        data = tensor.detach().contiguous()
        if self._rank != root:
            return self._swap({root: data}, {})
        found = [rl.empty_like(data, memory_format=rl.contiguous_format) for _ in outputs]
        self._swap({root: data}, dict(enumerate(found)))
        for output, part in zip(outputs, found, strict=True):
            _fill(output, part)
        return None

    def scatter(self, output, inputs, root):
        data = rl.empty_like(output, memory_format=rl.contiguous_format)
        outgoing = {i: t.detach().contiguous() for i, t in enumerate(inputs)} if self._rank == root else {}
        self._swap(outgoing, {root: data})
        _fill(output, data)

    def alltoall(self, outputs, inputs):
        found = [rl.empty_like(t, memory_format=rl.contiguous_format) for t in outputs]
        self._swap({i: t.detach().contiguous() for i, t in enumerate(inputs)}, dict(enumerate(found)))
        for output, part in zip(outputs, found, strict=True):
            _fill(output, part)

    def barrier(self):
        """Returns once every process has come here."""
        if self.size() > 1:
            self.allreduce(rl.zeros(self.size()), ReduceOp.SUM)

    # --- objects ---

    def all_bytes(self, data):
        """Everyone's bytes, in the order of ranks; their lengths may differ."""
        length = rl.tensor([len(data)])
        lengths = [rl.zeros(1, dtype=rl.int64) for _ in range(self.size())]
        self.allgather(lengths, length)
        found = {p: memoryview(bytearray(int(lengths[p]))) for p in self._others()}
        self._links.exchange(dict.fromkeys(self._others(), memoryview(data)), found)
        return [data if p == self._rank else bytes(found[p]) for p in range(self.size())]

    def all_objects(self, value):
        """Everyone's values, in the order of ranks."""
        return [pickle.loads(data) for data in self.all_bytes(pickle.dumps(value))]


def _fill(tensor, data):
    with rl.no_grad():
        tensor.copy_(data)


def member_group(backend, store, ranks, world_rank, timeout, name):
    """The group of some processes of the world, for one of them.

    Args:
        backend (str): its name.
        store (Store): where they find one another.
        ranks (sequence of ints): their ranks in the world.
        world_rank (int): which of them this is.
        timeout (timedelta): of all calls.
        name (str): its own.

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.member_group("gloo", dist.HashStore(), (0,), 0, None, "one").size()
        1
        >>> dist.destroy_process_group()
    """
    own = PrefixStore(f"group/{name}", store) if store is not None else None
    return ProcessGroup(backend, own, ranks, list(ranks).index(world_rank), timeout, name)
