"""What the collectives share: the handle of a call, the group that it means, checks of its arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import rushlight as rl
from rushlight._core.compose import _overridable
from rushlight.distributed._group import ProcessGroup, _world


class Work:
    """What an asynchronous call gives. Collectives are done when they return; a message may still be under way.

    Args:
        finish (callable): ends what is under way. Default: None
        source (int): the rank that a message came from. Default: None
        result (object): of the call. Default: None

    Example:
        >>> dist = torch.distributed
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> work = dist.all_reduce(torch.ones(1), async_op=True)
        >>> work.wait()
        True
        >>> dist.destroy_process_group()
    """

    def __init__(self, finish: Any = None, source: Any = None, result: Any = None) -> None:
        self._finish, self._source, self._result = finish, source, result

    def wait(self, timeout: Any = None) -> bool:
        """Returns once the work is done."""
        if self._finish is not None:
            finish, self._finish = self._finish, None
            self._source = finish()
        return True

    def is_completed(self) -> bool:
        return self._finish is None

    def is_success(self) -> bool:
        return self._finish is None

    def exception(self) -> None:
        return None

    def source_rank(self) -> Any:
        return self._source

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> Any:
        return self._result

    def get_future(self) -> Any:
        """The tensors as a future, which has them already."""
        self.wait()
        future = rl.futures.Future()
        future.set_result(self._result)
        return future


_F = TypeVar("_F", bound=Callable[..., Any])


def _collective(function: _F) -> _F:
    """Decorator: classes and modes may take the function over; its address is that of PyTorch's."""
    overridable = _overridable(function)
    overridable.__module__ = "rushlight.distributed.distributed_c10d"
    return overridable


def _group(group: Any, name: Any) -> ProcessGroup | None:
    """The group that a call means, or None where this process is not of it."""
    world = _world()
    if group is None:
        return world
    if isinstance(group, ProcessGroup):
        return group
    warnings.warn(
        f"Running {name} on global rank {world.rank()} which does not belong to the given group.",
        stacklevel=4,
    )
    return None


def _done(async_op: bool, *tensors: Any) -> Work | None:
    return Work(result=list(tensors)) if async_op else None


def _need_tensor(value: Any, name: Any) -> None:
    if not isinstance(value, rl.Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def _need_tensors(values: Any, name: Any) -> None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(t, rl.Tensor) for t in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} with elements of type {[type(t) for t in values]}."
        )


def _need_alike(what: Any, outputs: Any, tensor: rl.Tensor, count: Any) -> None:
    """Checks a list of results: one tensor a process, each like the tensor given."""
    if len(outputs) != count:
        raise RuntimeError(
            f"ProcessGroupGloo::{what}: invalid output tensor list at index 0 (expected length {count}, got {len(outputs)})"
        )
    for i, output in enumerate(outputs):
        if output.shape != tensor.shape:
            raise RuntimeError(
                f"ProcessGroupGloo::{what}: invalid tensor size at index {i} "
                f"(expected ({', '.join(map(str, tensor.shape))}), got ({', '.join(map(str, output.shape))}))"
            )
        if output.dtype != tensor.dtype:
            raise RuntimeError(
                f"ProcessGroupGloo::{what}: invalid tensor type at index {i} (expected {tensor.dtype}, got {output.dtype})"
            )


def _root(group: Any, rank: int | None, group_rank: Any, what: str = "global_rank") -> Any:
    """The number of a process inside of its group, from its number there or in the world."""
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if rank is None and group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    found: Any
    if group_rank is not None:
        found = group_rank
    elif group is _world():
        found = rank
    elif rank in group._ranks:
        found = group._ranks.index(rank)
    else:
        raise ValueError(f"Global rank {rank} is not part of group {group.group_name}")
    if not 0 <= found < group.size():
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid root rank: {found}")
    return found
