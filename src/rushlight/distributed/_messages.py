"""Collectives on objects, and messages from one process to another."""

from __future__ import annotations

import pickle
from typing import Any

import rushlight as rl
from rushlight.distributed._calls import Work, _collective, _group, _need_tensor, _root
from rushlight.distributed._group import _bytes_of


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """object_list becomes the objects of all processes, by pickle."""
    if (own := _group(group, "all_gather_object")) is not None:
        object_list[:] = own.all_objects(obj)


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """On process dst, object_gather_list becomes the objects of all."""
    if (own := _group(group, "gather_object")) is None:
        return
    root = _root(own, 0 if dst is None and group_dst is None else dst, group_dst, "gather")
    if own.rank() == root and not object_gather_list:
        raise ValueError("Argument object_gather_list must be specified on dst rank")
    found = own.all_bytes(pickle.dumps(obj))
    if own.rank() == root:
        object_gather_list[:] = [pickle.loads(data) for data in found]


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Every process' object_list becomes that of process src."""
    if (own := _group(group, "broadcast_object_list")) is None:
        return
    root = _root(own, 0 if src is None and group_src is None else src, group_src, "broadcast")
    found = own.all_bytes(pickle.dumps(list(object_list)) if own.rank() == root else b"")
    if own.rank() != root:
        object_list[:] = pickle.loads(found[root])


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
):
    """The first of scatter_object_output_list becomes this process' own of process src's objects."""
    if (own := _group(group, "scatter_object_list")) is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = _root(own, 0 if src is None and group_src is None else src, group_src, "scatter")
    found = own.all_bytes(pickle.dumps(scatter_object_input_list) if own.rank() == root else b"")
    scatter_object_output_list[0] = pickle.loads(found[root])[own.rank()]


# --- messages ---


def _peer(own, rank, group_rank, what):
    peer = _root(own, rank, group_rank, what)
    if peer == own.rank():
        raise ValueError(
            f"Invalid {what} rank: {what} rank should not be the same as the rank of the current process."
        )
    return peer


@_collective
def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Sends a tensor to process dst, without waiting."""
    _need_tensor(tensor, "tensor")
    if (own := _group(group, "isend")) is None:
        return None
    sent = own._links.post(
        _peer(own, dst, group_dst, "destination"), tag, bytes(_bytes_of(tensor.detach().contiguous()))
    )
    return Work(lambda: sent.wait() and None)


@_collective
def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Fills a tensor by the next message of process src (or of any), once wait() is called."""
    _need_tensor(tensor, "tensor")
    if (own := _group(group, "irecv")) is None:
        return None
    anyone = src is None and group_src is None
    peer = None if anyone else _peer(own, src, group_src, "source")
    return Work(lambda: _receive_tensor(own, tensor, peer, tag))


def _receive_tensor(own, tensor, peer, tag):
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
def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Sends a tensor to process dst."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


@_collective
def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Fills a tensor by the next message of process src (or of any), and gives the sender's rank."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Sends objects to process dst, by pickle."""
    if (own := _group(group, "send_object_list")) is not None:
        own._links.post(_peer(own, dst, group_dst, "destination"), -1, pickle.dumps(list(object_list))).wait()


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """object_list becomes the objects that process src (or any) sends; gives the sender's rank."""
    if (own := _group(group, "recv_object_list")) is None:
        return -1
    anyone = src is None and group_src is None
    sender, data = own._links.collect(None if anyone else _peer(own, src, group_src, "source"), -1)
    object_list[:] = pickle.loads(data)
    return own._ranks[sender]


class P2POp:
    """A message to or from another process, for batch_isend_irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list):
    """Starts messages; gives a Work for each."""
    works = []
    for p in p2p_op_list:
        name = "group_dst" if p.op is isend else "group_src"
        works.append(p.op(p.tensor, p.peer, p.group, p.tag, **{name: p.group_peer}))
    return works
