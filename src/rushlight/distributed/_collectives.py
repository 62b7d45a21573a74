"""The collectives on tensors, by PyTorch's names and arguments."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight.distributed._calls import (
    _collective,
    _done,
    _group,
    _need_alike,
    _need_tensor,
    _need_tensors,
    _root,
)
from rushlight.distributed._group import ReduceOp


@_collective
def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Returns once every process of the group has called it.

    Args:
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False
        device_ids (list of ints): accepted. Default: None

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.barrier()
        >>> dist.destroy_process_group()
    """
    if (own := _group(group, "barrier")) is None:
        return None
    own.barrier()
    return _done(async_op)


@_collective
def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """A barrier that fails where a process does not come.

    Args:
        group (ProcessGroup): which. Default: None, the world
        timeout (timedelta): how long to wait. Default: None, that of the group
        wait_all_ranks (bool): names all that did not come, not the first. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.monitored_barrier()
        >>> dist.destroy_process_group()
    """
    if (own := _group(group, "monitored_barrier")) is not None:
        own.barrier()


@_collective
def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Every process' tensor becomes the reduction (the sum, say) of all.

    Args:
        tensor (Tensor): what this process gives, and written to.
        op (ReduceOp): how they are combined. Default: ReduceOp.SUM
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> dist.all_reduce(x)
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    _need_tensor(tensor, "tensor")
    if (own := _group(group, "all_reduce")) is None:
        return None
    own.allreduce(tensor, op)
    return _done(async_op, tensor)


@_collective
def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """all_reduce of every tensor of a list.

    Args:
        tensors (list of Tensors): what this process gives, and written to.
        op (ReduceOp): how they are combined. Default: ReduceOp.SUM
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> dist.all_reduce_coalesced([x])
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    for tensor in tensors:
        all_reduce(tensor, op, group)
    return _done(async_op, *tensors)


@_collective
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """The tensor of process dst becomes the reduction of all.

    Args:
        tensor (Tensor): what this process gives, and on dst written to.
        dst (int): its rank in the world. Default: None
        op (ReduceOp): how they are combined. Default: ReduceOp.SUM
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False
        group_dst (int): its rank in the group, instead. Default: None

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> dist.reduce(x, 0)
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    _need_tensor(tensor, "tensor")
    if (own := _group(group, "reduce")) is None:
        return None
    own.reduce(tensor, _root(own, dst, group_dst, "reduce"), op)
    return _done(async_op, tensor)


@_collective
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Every process' tensor becomes that of process src.

    Args:
        tensor (Tensor): what src gives, and the others receive.
        src (int): its rank in the world. Default: None
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False
        group_src (int): its rank in the group, instead. Default: None

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> dist.broadcast(x, 0)
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    _need_tensor(tensor, "tensor")
    if (own := _group(group, "broadcast")) is None:
        return None
    own.broadcast(tensor, _root(own, src, group_src, "broadcast"))
    return _done(async_op, tensor)


@_collective
def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Any:
    """tensor_list becomes the tensors of all processes.

    Args:
        tensor_list (list of Tensors): one for each process, written to.
        tensor (Tensor): what this process gives.
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = [torch.zeros(2)]
        >>> dist.all_gather(x, torch.ones(2))
        >>> x
        [tensor([1., 1.])]
        >>> dist.destroy_process_group()
    """
    _need_tensors(tensor_list, "tensor_list")
    _need_tensor(tensor, "tensor")
    if (own := _group(group, "all_gather")) is None:
        return None
    _need_alike("allgather", tensor_list, tensor, own.size())
    own.allgather(tensor_list, tensor)
    return _done(async_op, *tensor_list)


@_collective
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """output_tensor becomes the tensors of all processes, one after another.

    Args:
        output_tensor (Tensor): written to.
        input_tensor (Tensor): what this process gives.
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.zeros(2)
        >>> dist.all_gather_into_tensor(x, torch.ones(2))
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    _need_tensor(output_tensor, "output_tensor")
    _need_tensor(input_tensor, "input_tensor")
    if (own := _group(group, "all_gather_into_tensor")) is None:
        return None
    parts = _parts("allgather", output_tensor, input_tensor, own.size())
    own.allgather(parts, input_tensor)
    return _done(async_op, output_tensor)


def _parts(what: Any, whole: Any, part: Any, count: Any) -> Any:
    """A tensor as `count` views of the shape of another."""
    if whole.numel() != part.numel() * count:
        raise RuntimeError(
            f"ProcessGroupGloo::{what}: invalid tensor size at index 0 (expected ({part.numel() * count}), "
            f"got ({whole.numel()}))"
        )
    return list(whole.detach().view(count, *part.shape).unbind(0))


_all_gather_base = all_gather_into_tensor


@_collective
def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Any:
    """all_gather_into_tensor by its later name.

    Args:
        output_tensor (Tensor): written to.
        input_tensor (Tensor): what this process gives.
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.zeros(2)
        >>> dist.all_gather_single(x, torch.ones(2))
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


@_collective
def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Any:
    """all_gather of every tensor of a list.

    Args:
        output_tensor_lists (list of lists of Tensors): for each process, a tensor for each of the list.
        input_tensor_list (list of Tensors): what this process gives.
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = [[torch.zeros(2)]]
        >>> dist.all_gather_coalesced(x, [torch.ones(2)])
        >>> x
        [[tensor([1., 1.])]]
        >>> dist.destroy_process_group()
    """
    for outputs, tensor in zip(output_tensor_lists, input_tensor_list, strict=True):
        all_gather(outputs, tensor, group)
    return _done(async_op)


@_collective
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """On process dst, gather_list becomes the tensors of all.

    Args:
        tensor (Tensor): what this process gives.
        gather_list (list of Tensors): on dst, written to. Default: None
        dst (int): its rank in the world. Default: None
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False
        group_dst (int): its rank in the group, instead. Default: None

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = [torch.zeros(2)]
        >>> dist.gather(torch.ones(2), x, 0)
        >>> x
        [tensor([1., 1.])]
        >>> dist.destroy_process_group()
    """
    _need_tensor(tensor, "tensor")
    if (own := _group(group, "gather")) is None:
        return None
    root = _root(own, 0 if dst is None and group_dst is None else dst, group_dst, "gather")
    if own.rank() == root:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _need_alike("gather", gather_list, tensor, own.size())
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    own.gather(gather_list, tensor, root)
    return _done(async_op)


@_collective
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Every process' tensor becomes its own of process src's scatter_list.

    Args:
        tensor (Tensor): written to.
        scatter_list (list of Tensors): on src, one for each process. Default: None
        src (int): its rank in the world. Default: None
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False
        group_src (int): its rank in the group, instead. Default: None

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.zeros(2)
        >>> dist.scatter(x, [torch.ones(2)], 0)
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    _need_tensor(tensor, "tensor")
    if (own := _group(group, "scatter")) is None:
        return None
    root = _root(own, 0 if src is None and group_src is None else src, group_src, "scatter")
    if own.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _need_alike("scatter", scatter_list, tensor, own.size())
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    own.scatter(tensor, scatter_list or [], root)
    return _done(async_op, tensor)


@_collective
def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """output becomes the reduction of every process' input_list[rank].

    Args:
        output (Tensor): written to.
        input_list (list of Tensors): one for each process.
        op (ReduceOp): how they are combined. Default: ReduceOp.SUM
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.zeros(2)
        >>> dist.reduce_scatter(x, [torch.ones(2)])
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    _need_tensor(output, "output")
    _need_tensors(input_list, "input_list")
    if (own := _group(group, "reduce_scatter")) is None:
        return None
    _need_alike("reduce_scatter", input_list, output, own.size())
    own.reduce_scatter(output, input_list, op)
    return _done(async_op, output)


@_collective
def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """reduce_scatter of the equal parts of one tensor.

    Args:
        output (Tensor): written to.
        input (Tensor): what this process gives.
        op (ReduceOp): how they are combined. Default: ReduceOp.SUM
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.zeros(2)
        >>> dist.reduce_scatter_tensor(x, torch.ones(2))
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    _need_tensor(output, "output")
    _need_tensor(input, "input")
    if (own := _group(group, "reduce_scatter_tensor")) is None:
        return None
    own.reduce_scatter(output, _parts("reduce_scatter", input.contiguous(), output, own.size()), op)
    return _done(async_op, output)


_reduce_scatter_base = reduce_scatter_tensor


@_collective
def reduce_scatter_single(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """reduce_scatter_tensor by its later name.

    Args:
        output (Tensor): written to.
        input (Tensor): what this process gives.
        op (ReduceOp): how they are combined. Default: ReduceOp.SUM
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.zeros(2)
        >>> dist.reduce_scatter_single(x, torch.ones(2))
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return reduce_scatter_tensor(output, input, op, group, async_op)


@_collective
def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Each process sends input_tensor_list[i] to process i, and gets output_tensor_list[i] from it.

    Args:
        output_tensor_list (list of Tensors): written to.
        input_tensor_list (list of Tensors): one for each process.
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = [torch.zeros(2)]
        >>> dist.all_to_all(x, [torch.ones(2)])
        >>> x
        [tensor([1., 1.])]
        >>> dist.destroy_process_group()
    """
    _need_tensors(output_tensor_list, "output_tensor_list")
    _need_tensors(input_tensor_list, "input_tensor_list")
    if (own := _group(group, "all_to_all")) is None:
        return None
    own.alltoall(output_tensor_list, input_tensor_list)
    return _done(async_op, *output_tensor_list)


@_collective
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """all_to_all of the parts of one tensor along dimension 0.

    Args:
        output (Tensor): written to.
        input (Tensor): what this process gives.
        output_split_sizes (list of ints): of its parts. Default: None, equal ones
        input_split_sizes (list of ints): of its parts. Default: None, equal ones
        group (ProcessGroup): which. Default: None, the world
        async_op (bool): whether to return a Work instead of waiting. Default: False

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> x = torch.zeros(2)
        >>> dist.all_to_all_single(x, torch.ones(2))
        >>> x
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    if (own := _group(group, "all_to_all_single")) is None:
        return None
    target = output.detach()
    parts = [
        t.split(_sizes(t, s, own.size()), 0)
        for t, s in ((target, output_split_sizes), (input, input_split_sizes))
    ]
    own.alltoall(*map(list, parts))
    return _done(async_op, output)


def _sizes(tensor: Tensor, sizes: Any, count: Any) -> Any:
    if sizes:
        if sum(sizes) != tensor.size(0) or len(sizes) != count:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        return list(sizes)
    if tensor.size(0) % count:
        raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
    return [tensor.size(0) // count] * count
