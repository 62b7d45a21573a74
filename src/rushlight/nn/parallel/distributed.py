"""DistributedDataParallel: a module under `.module`, whose gradients are averaged over the processes of a group."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import rushlight as rl
from rushlight import distributed as dist
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


class DistributedDataParallel(rl.nn.Module):
    """Averages the gradients of a module over processes, each of which trains on its own part of the data.

    Every process begins with the parameters and buffers of the first, and after backward has the mean of all
    gradients, so that optimizers go in step. Give each process its samples by `DistributedSampler`. Call the
    wrapper, not `.module`, or gradients are not averaged; save `.module.state_dict()` in one process.

    Args:
        module (Module): kept as `.module`.
        device_ids (list): accepted. Default: None
        output_device (int or device): accepted. Default: None
        dim (int): accepted. Default: 0
        broadcast_buffers (bool): sends the first process's buffers before each call. Default: True
        init_sync (bool): sends the first process's parameters and buffers at the start. Default: True
        process_group (ProcessGroup): the processes. Default: None, all
        bucket_cap_mb (float): accepted; gradients of a dtype travel together. Default: None
        find_unused_parameters (bool): looks in each graph for parameters that get no gradient; without it such ones
            raise in the next call. Default: False
        check_reduction (bool): accepted. Default: False
        gradient_as_bucket_view (bool): accepted. Default: False
        static_graph (bool): accepted. Default: False
        kwargs (any): accepted.

    Raises:
        ValueError: there is no process group: call `distributed.init_process_group` first.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> model(torch.ones(3, 2)).shape
        torch.Size([3, 1])
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: rl.nn.Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if not dist.is_initialized():
            raise ValueError(
                "Default process group has not been initialized, please make sure to call init_process_group."
            )
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if any(isinstance(p, rl.nn.parameter.UninitializedParameter) for p in module.parameters()):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. "
                "Run a dummy forward pass to correctly initialize the modules"
            )
        self.module = module
        self.device_ids, self.output_device, self.dim = device_ids, output_device, dim
        self.process_group = process_group
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.reducer: Any = None
        if dist.get_world_size(process_group) > 1:
            self._join_group(init_sync)

    def _join_group(self, init_sync: bool) -> None:
        """Makes the processes begin alike, and gradients travel."""
        from rushlight.nn.parallel import _reducer

        if init_sync:
            _reducer.check_same(self.module, self.process_group)
            _reducer.sync_states([*self.module.parameters(), *self.module.buffers()], self.process_group)
        self.reducer = _reducer.Reducer(self.module, self.process_group, self.find_unused_parameters)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.reducer is None:
            return self.module(*inputs, **kwargs)
        averaged = rl.is_grad_enabled() and self.require_backward_grad_sync
        if averaged:
            self.reducer.check_finished()
        if averaged and self.broadcast_buffers:
            from rushlight.nn.parallel import _reducer

            _reducer.sync_states(list(self.module.buffers()), self.process_group)
        outputs = self.module(*inputs, **kwargs)
        if averaged:
            self.reducer.prepare_for_backward(outputs)
        elif rl.is_grad_enabled():
            self.reducer.stop()
        return outputs

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Opens a block in which gradients only accumulate in this process: for several backwards before a step.

        Call the model within the block too; the backward after the block averages all.
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """Opens a block for processes with unequal numbers of batches; only a group of one process has it.

        Args:
            divide_by_initial_world_size (bool): accepted. Default: True
            enable (bool): False makes the block do nothing. Default: True
            throw_on_early_termination (bool): accepted. Default: False

        Raises:
            NotImplementedError: the group has several processes.
        """
        if self.reducer is not None and enable:
            raise NotImplementedError(
                "DistributedDataParallel.join: processes with unequal numbers of batches are not supported; give each "
                "the same number, by DistributedSampler(dataset), say"
            )
        yield

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Sets how gradients travel, in place of the average.

        Args:
            state (any): passed to the hook.
            hook (callable): hook(state, bucket) returns a future of the flat tensor of averages.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer is not None:
            self.reducer.hook = (state, hook)

    def _set_static_graph(self) -> None:
        self.static_graph = True


__getattr__ = _unsupported_attribute(__name__)
