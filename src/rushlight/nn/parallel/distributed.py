"""DistributedDataParallel: a module under `.module`, whose gradients are averaged over the processes of a group."""

import contextlib

import rushlight as rl
from rushlight import distributed as dist
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


class DistributedDataParallel(rl.nn.Module):
    """Wraps a module for data-parallel training: every process starts with the parameters of the first, and after
    backward has the mean of all gradients. In a group of one process there is nothing to average."""

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=True,
        init_sync=True,
        process_group=None,
        bucket_cap_mb=None,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        **kwargs,
    ):
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
        self.reducer = None
        if dist.get_world_size(process_group) > 1:
            self._join_group(init_sync)

    def _join_group(self, init_sync):
        """Makes the processes begin alike, and gradients travel."""
        from rushlight.nn.parallel import _reducer

        if init_sync:
            _reducer.check_same(self.module, self.process_group)
            _reducer.sync_states([*self.module.parameters(), *self.module.buffers()], self.process_group)
        self.reducer = _reducer.Reducer(self.module, self.process_group, self.find_unused_parameters)

    def forward(self, *inputs, **kwargs):
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
    def no_sync(self):
        """A block in which gradients only accumulate in this process."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """A block for processes with unequal numbers of batches."""
        if self.reducer is not None and enable:
            raise NotImplementedError(
                "DistributedDataParallel.join: processes with unequal numbers of batches are not supported; give each "
                "the same number, by DistributedSampler(dataset), say"
            )
        yield

    def register_comm_hook(self, state, hook):
        """How gradients travel: hook(state, bucket) gives a future of the flat tensor of averages."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer is not None:
            self.reducer.hook = (state, hook)

    def _set_static_graph(self):
        self.static_graph = True


__getattr__ = _unsupported_attribute(__name__)
