"""Gradients of several processes: collected while backward runs, and averaged once all are there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rushlight as rl
from rushlight import distributed as dist


class GradBucket:
    """Gradients on their way, as communication hooks get them: one flat tensor."""

    def __init__(self, buffer: rl.Tensor, parameters: list[Any]) -> None:
        self._buffer, self._parameters = buffer, parameters

    def index(self) -> int:
        return 0

    def buffer(self) -> rl.Tensor:
        return self._buffer

    def set_buffer(self, buffer: rl.Tensor) -> None:
        self._buffer = buffer

    def gradients(self) -> list[rl.Tensor]:
        return _split(self._buffer, self._parameters)

    def parameters(self) -> list[rl.Tensor]:
        return list(self._parameters)

    def is_last(self) -> bool:
        return True


def _split(flat: rl.Tensor, parameters: Iterable[rl.Tensor]) -> list[rl.Tensor]:
    parts = flat.split([p.numel() for p in parameters])
    return [part.reshape(p.shape) for part, p in zip(parts, parameters, strict=True)]


class Reducer:
    """Averages the gradients of parameters over a group, after the last of them is there."""

    def __init__(self, module: rl.nn.Module, group: Any, find_unused: bool) -> None:
        self._group, self._find_unused = group, find_unused
        self._names = {p: name for name, p in module.named_parameters() if p.requires_grad}
        self._parameters = list(self._names)
        self._missing: set[Any] = set()  # parameters whose gradients this backward has yet to give
        self._unused: set[Any] = set()
        self._before: dict[Any, Any] = {}  # gradients of unused parameters
        self._running = False
        self.hook = None
        for p in self._parameters:
            p.register_post_accumulate_grad_hook(self._ready)

    def prepare_for_backward(self, outputs: Any) -> None:
        """Before a backward that is to be averaged: which gradients it will give (all, where no outputs are given)."""
        self.check_finished()
        search = self._find_unused and (isinstance(outputs, rl.Tensor) or len(outputs))
        self._unused = self._not_reached(outputs) if search else set()
        self._missing = set(self._parameters) - self._unused
        self._running = True
        if not self._missing:
            self._finish()

    def stop(self) -> None:
        """Before a backward whose gradients only accumulate."""
        self._running = False

    def check_finished(self) -> None:
        """Fails where the last backward left gradients out, for which the other processes wait."""
        if self._running and self._missing and len(self._missing) < len(self._parameters):
            names = ", ".join(self._names[p] for p in self._missing)
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one. This error "
                "indicates that your module has parameters that were not used in producing loss. You can enable unused "
                "parameter detection by passing the keyword argument `find_unused_parameters=True` to "
                f"`torch.nn.parallel.DistributedDataParallel`. Parameters without a gradient: {names}"
            )

    def _ready(self, parameter: Any) -> None:
        if not self._running:
            return
        self._missing.discard(parameter)
        if not self._missing:
            self._finish()

    def _finish(self) -> None:
        self._running = False
        self._before = {p: p.grad for p in self._unused}
        used = rl.tensor([p not in self._unused for p in self._parameters], dtype=rl.int32)
        if self._find_unused:
            dist.all_reduce(used, group=self._group)
        kinds = dict.fromkeys(p.dtype for p in self._parameters)
        for dtype in kinds:
            self._average([p for p in self._parameters if p.dtype == dtype])
        for p, count in zip(self._parameters, used.tolist(), strict=True):
            if not count:  # no process used it
                p.grad = self._before.get(p)

    def _average(self, parameters: Any) -> None:
        """Averages the gradients of one dtype, in one message."""
        with rl.no_grad():
            grads = [rl.zeros_like(p) if p.grad is None else p.grad for p in parameters]
            flat = rl.cat([g.reshape(-1) for g in grads])
            if self.hook is None:
                dist.all_reduce(flat, group=self._group)
                flat /= dist.get_world_size(self._group)
            else:
                state, hook = self.hook
                flat = hook(state, GradBucket(flat, parameters)).wait()
                flat = flat[0] if isinstance(flat, (list, tuple)) else flat
            for p, part in zip(parameters, _split(flat, parameters), strict=True):
                if p.grad is None:
                    p.grad = part.clone()
                else:
                    p.grad.copy_(part)

    def _not_reached(self, outputs: Any) -> set[Any]:
        """The parameters that no output depends on."""
        reached: set[Any] = set()
        seen: set[Any] = set()
        stack = [t.grad_fn for t in _tensors(outputs) if t.grad_fn is not None]
        reached.update(t for t in _tensors(outputs) if t in self._names)
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if (variable := getattr(node, "variable", None)) is not None:
                reached.add(variable)
            stack += [following for following, _ in node.next_functions if following is not None]
        return set(self._parameters) - reached


def _tensors(value: Any) -> list[rl.Tensor]:
    """All tensors in nested results."""
    from rushlight.utils import _pytree

    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, rl.Tensor)]


def check_same(module: rl.nn.Module, group: Any) -> None:
    """Fails unless every process has parameters of the same shapes."""
    shapes = [(tuple(p.shape), str(p.dtype)) for p in module.parameters()]
    everyones: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everyones, shapes, group)
    for rank, other in enumerate(everyones):
        if other != shapes:
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {dist.get_rank(group)} has {len(shapes)} params, "
                f"while rank {rank} has inconsistent {len(other)} params."
            )


def sync_states(tensors: Any, group: Any) -> None:
    """Gives every process the tensors of the first one."""
    with rl.no_grad():
        for dtype in dict.fromkeys(t.dtype for t in tensors):
            some = [t for t in tensors if t.dtype == dtype]
            flat = rl.cat([t.detach().reshape(-1) for t in some])
            dist.broadcast(flat, group=group, group_src=0)
            if dist.get_rank(group) != 0:
                for t, part in zip(some, _split(flat, some), strict=True):
                    t.detach().copy_(part)
