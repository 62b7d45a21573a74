"""Collectives on objects, and messages from one process to another."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, cast

import rushlight as rl
from rushlight.distributed._calls import Work, _collective, _group, _need_tensor, _root
from rushlight.distributed._group import _bytes_of


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """object_list becomes the objects of all processes, by pickle.

    Args:
        object_list (list): one for each process, written to.
        obj (object): what this process gives.
        group (ProcessGroup): which. Default: None, the world

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = [None]
        >>> dist.all_gather_object(x, "a")
        >>> x
        ['a']
        >>> dist.destroy_process_group()
    """
    if (own := _group(group, "all_gather_object")) is not None:
        object_list[:] = own.all_objects(obj)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """On process dst, object_gather_list becomes the objects of all.

    Args:
        obj (object): what this process gives.
        object_gather_list (list): on dst, written to. Default: None
        dst (int): its rank in the world. Default: None
        group (ProcessGroup): which. Default: None, the world
        group_dst (int): its rank in the group, instead. Default: None

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = [None]
        >>> dist.gather_object("a", x, 0)
        >>> x
        ['a']
        >>> dist.destroy_process_group()
    """
    if (own := _group(group, "gather_object")) is None:
        return
    root = _root(own, 0 if dst is None and group_dst is None else dst, group_dst, "gather")
    if own.rank() == root and not object_gather_list:
        raise ValueError("Argument object_gather_list must be specified on dst rank")
    found = own.all_bytes(pickle.dumps(obj))
    if own.rank() == root:
        cast(list[Any], object_gather_list)[:] = [pickle.loads(data) for data in found]


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: rl.device | None = None,
    group_src: int | None = None,
) -> None:
    """Every process' object_list becomes that of process src, by pickle.

    Args:
        object_list (list): what src gives, and the others receive.
        src (int): its rank in the world. Default: None
        group (ProcessGroup): which. Default: None, the world
        device (device): accepted. Default: None
        group_src (int): its rank in the group, instead. Default: None

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = ["a"]
        >>> dist.broadcast_object_list(x, 0)
        >>> x
        ['a']
        >>> dist.destroy_process_group()
    """
    if (own := _group(group, "broadcast_object_list")) is None:
        return
    root = _root(own, 0 if src is None and group_src is None else src, group_src, "broadcast")
    found = own.all_bytes(pickle.dumps(list(object_list)) if own.rank() == root else b"")
    if own.rank() != root:
        object_list[:] = pickle.loads(found[root])


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """The first of scatter_object_output_list becomes this process' own of process src's objects.

    Args:
        scatter_object_output_list (list): written to.
        scatter_object_input_list (list): on src, one for each process. Default: None
        src (int): its rank in the world. Default: None
        group (ProcessGroup): which. Default: None, the world
        group_src (int): its rank in the group, instead. Default: None

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = [None]
        >>> dist.scatter_object_list(x, ["a"], 0)
        >>> x
        ['a']
        >>> dist.destroy_process_group()
    """
    if (own := _group(group, "scatter_object_list")) is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = _root(own, 0 if src is None and group_src is None else src, group_src, "scatter")
    found = own.all_bytes(pickle.dumps(scatter_object_input_list) if own.rank() == root else b"")
    scatter_object_output_list[0] = pickle.loads(found[root])[own.rank()]


# --- messages ---


def _peer(own: Any, rank: int | None, group_rank: Any, what: Any) -> Any:
    peer = _root(own, rank, group_rank, what)
    if peer == own.rank():
        raise ValueError(
            f"Invalid {what} rank: {what} rank should not be the same as the rank of the current process."
        )
    return peer


@_collective
def isend(
    tensor: rl.Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Any:
    """Sends a tensor to process dst, without waiting.

    Args:
        tensor (Tensor): what is sent.
        dst (int): its rank in the world. Default: None
        group (ProcessGroup): which. Default: None, the world
        tag (int): tells messages apart. Default: 0
        group_dst (int): its rank in the group, instead. Default: None

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> store = dist.HashStore()
        >>> def run(rank):  # two threads as the processes of a group
        ...     group = dist.ProcessGroup("gloo", store, (0, 1), rank)
        ...     x = torch.full((2,), float(rank))
        ...     dist.irecv(x, group=group, group_src=0).wait() if rank else dist.isend(x, group=group, group_dst=1).wait()
        ...     group.shutdown()
        ...     return x
        >>> with ThreadPoolExecutor() as pool:
        ...     list(pool.map(run, (0, 1)))
        [tensor([0., 0.]), tensor([0., 0.])]
        >>> dist.destroy_process_group()
    """
    _need_tensor(tensor, "tensor")
    if (own := _group(group, "isend")) is None:
        return None
    sent = own._links.post(
        _peer(own, dst, group_dst, "destination"), tag, bytes(_bytes_of(tensor.detach().contiguous()))
    )
    return Work(lambda: sent.wait() and None)


@_collective
def irecv(
    tensor: rl.Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Any:
    """Fills a tensor by the next message of process src, once wait() is called.

    Args:
        tensor (Tensor): written to.
        src (int): its rank in the world. Default: None, any
        group (ProcessGroup): which. Default: None, the world
        tag (int): that of the message. Default: 0
        group_src (int): its rank in the group, instead. Default: None

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> store = dist.HashStore()
        >>> def run(rank):  # two threads as the processes of a group
        ...     group = dist.ProcessGroup("gloo", store, (0, 1), rank)
        ...     x = torch.full((2,), float(rank))
        ...     dist.irecv(x, group=group, group_src=0).wait() if rank else dist.isend(x, group=group, group_dst=1).wait()
        ...     group.shutdown()
        ...     return x
        >>> with ThreadPoolExecutor() as pool:
        ...     list(pool.map(run, (0, 1)))
        [tensor([0., 0.]), tensor([0., 0.])]
        >>> dist.destroy_process_group()
    """
    _need_tensor(tensor, "tensor")
    if (own := _group(group, "irecv")) is None:
        return None
    anyone = src is None and group_src is None
    peer = None if anyone else _peer(own, src, group_src, "source")
    return Work(lambda: _receive_tensor(own, tensor, peer, tag))


def _receive_tensor(own: Any, tensor: rl.Tensor, peer: int | None, tag: int) -> Any:
    sender, data = own._links.collect(peer, tag)
    size = tensor.numel() * tensor.element_size()
    if len(data) != size:
        raise RuntimeError(
            f"op.preamble.length <= op.nbytes. {len(data)} vs {size}: the tensor sent is of another size"
        )
    if data:
        found = rl.frombuffer(bytearray(data), dtype=tensor.dtype)
        with rl.no_grad():
            tensor.copy_(found.reshape(tensor.shape))
    return own._ranks[sender]


@_collective
def send(
    tensor: rl.Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Sends a tensor to process dst.

    Args:
        tensor (Tensor): what is sent.
        dst (int): its rank in the world. Default: None
        group (ProcessGroup): which. Default: None, the world
        tag (int): tells messages apart. Default: 0
        group_dst (int): its rank in the group, instead. Default: None

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> store = dist.HashStore()
        >>> def run(rank):  # two threads as the processes of a group
        ...     group = dist.ProcessGroup("gloo", store, (0, 1), rank)
        ...     x = torch.full((2,), float(rank))
        ...     dist.recv(x, group=group, group_src=0) if rank else dist.send(x, group=group, group_dst=1)
        ...     group.shutdown()
        ...     return x
        >>> with ThreadPoolExecutor() as pool:
        ...     list(pool.map(run, (0, 1)))
        [tensor([0., 0.]), tensor([0., 0.])]
        >>> dist.destroy_process_group()
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


@_collective
def recv(
    tensor: rl.Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Any:
    """Fills a tensor by the next message of process src, and gives the sender's rank.

    Args:
        tensor (Tensor): written to.
        src (int): its rank in the world. Default: None, any
        group (ProcessGroup): which. Default: None, the world
        tag (int): that of the message. Default: 0
        group_src (int): its rank in the group, instead. Default: None

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> store = dist.HashStore()
        >>> def run(rank):  # two threads as the processes of a group
        ...     group = dist.ProcessGroup("gloo", store, (0, 1), rank)
        ...     x = torch.full((2,), float(rank))
        ...     dist.recv(x, group=group, group_src=0) if rank else dist.send(x, group=group, group_dst=1)
        ...     group.shutdown()
        ...     return x
        >>> with ThreadPoolExecutor() as pool:
        ...     list(pool.map(run, (0, 1)))
        [tensor([0., 0.]), tensor([0., 0.])]
        >>> dist.destroy_process_group()
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: rl.device | None = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Sends objects to process dst, by pickle.

    Args:
        object_list (list): what is sent.
        dst (int): its rank in the world. Default: None
        group (ProcessGroup): which. Default: None, the world
        device (device): accepted. Default: None
        group_dst (int): its rank in the group, instead. Default: None
        use_batch (bool): accepted. Default: False

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> store = dist.HashStore()
        >>> def run(rank):  # two threads as the processes of a group
        ...     group = dist.ProcessGroup("gloo", store, (0, 1), rank)
        ...     x = [rank]
        ...     dist.recv_object_list(x, group=group, group_src=0) if rank else dist.send_object_list(x, group=group, group_dst=1)
        ...     group.shutdown()
        ...     return x
        >>> with ThreadPoolExecutor() as pool:
        ...     list(pool.map(run, (0, 1)))
        [[0], [0]]
        >>> dist.destroy_process_group()
    """
    if (own := _group(group, "send_object_list")) is not None:
        own._links.post(_peer(own, dst, group_dst, "destination"), -1, pickle.dumps(list(object_list))).wait()


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: rl.device | None = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> Any:
    """object_list becomes the objects that process src sends; gives the sender's rank.

    Args:
        object_list (list): written to.
        src (int): its rank in the world. Default: None, any
        group (ProcessGroup): which. Default: None, the world
        device (device): accepted. Default: None
        group_src (int): its rank in the group, instead. Default: None
        use_batch (bool): accepted. Default: False

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> store = dist.HashStore()
        >>> def run(rank):  # two threads as the processes of a group
        ...     group = dist.ProcessGroup("gloo", store, (0, 1), rank)
        ...     x = [rank]
        ...     dist.recv_object_list(x, group=group, group_src=0) if rank else dist.send_object_list(x, group=group, group_dst=1)
        ...     group.shutdown()
        ...     return x
        >>> with ThreadPoolExecutor() as pool:
        ...     list(pool.map(run, (0, 1)))
        [[0], [0]]
        >>> dist.destroy_process_group()
    """
    if (own := _group(group, "recv_object_list")) is None:
        return -1
    anyone = src is None and group_src is None
    sender, data = own._links.collect(None if anyone else _peer(own, src, group_src, "source"), -1)
    object_list[:] = pickle.loads(data)
    return own._ranks[sender]


class P2POp:
    """A message to or from another process, for batch_isend_irecv.

    Args:
        op (callable): isend or irecv.
        tensor (Tensor): what is sent, or written to.
        peer (int): the rank of the other in the world. Default: None
        group (ProcessGroup): which. Default: None, the world
        tag (int): tells messages apart. Default: 0
        group_peer (int): its rank in the group, instead. Default: None

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> store = dist.HashStore()
        >>> def run(rank):  # two threads as the processes of a group
        ...     group = dist.ProcessGroup("gloo", store, (0, 1), rank)
        ...     x = torch.full((2,), float(rank))
        ...     y = torch.zeros(2)
        ...     ops = dist.P2POp(dist.isend, x, None, group, 0, 1 - rank), dist.P2POp(dist.irecv, y, None, group, 0, 1 - rank)
        ...     for work in dist.batch_isend_irecv(list(ops)):
        ...         work.wait()
        ...     group.shutdown()
        ...     return y
        >>> with ThreadPoolExecutor() as pool:
        ...     list(pool.map(run, (0, 1)))
        [tensor([1., 1.]), tensor([0., 0.])]
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        op: Callable,
        tensor: rl.Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: Any) -> Any:
    """Starts messages; gives a Work for each.

    Args:
        p2p_op_list (list of P2POps): the messages.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> store = dist.HashStore()
        >>> def run(rank):  # two threads as the processes of a group
        ...     group = dist.ProcessGroup("gloo", store, (0, 1), rank)
        ...     x = torch.full((2,), float(rank))
        ...     y = torch.zeros(2)
        ...     ops = dist.P2POp(dist.isend, x, None, group, 0, 1 - rank), dist.P2POp(dist.irecv, y, None, group, 0, 1 - rank)
        ...     for work in dist.batch_isend_irecv(list(ops)):
        ...         work.wait()
        ...     group.shutdown()
        ...     return y
        >>> with ThreadPoolExecutor() as pool:
        ...     list(pool.map(run, (0, 1)))
        [tensor([1., 1.]), tensor([0., 0.])]
        >>> dist.destroy_process_group()
    """
    works = []
    for p in p2p_op_list:
        name = "group_dst" if p.op is isend else "group_src"
        works.append(p.op(p.tensor, p.peer, p.group, p.tag, **{name: p.group_peer}))
    return works
