"""DistributedDataParallel for a group of one process: the module itself under `.module`, gradients already those of the whole."""

import contextlib

import rushlight as rl
from rushlight import distributed as dist
from rushlight._missing import teach as _teach


class DistributedDataParallel(rl.nn.Module):
    """Wraps a module for data-parallel training. With a world of one process there is nothing to average."""

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

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

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
        yield

    def register_comm_hook(self, state, hook):
        """How gradients would travel: with one process they stay."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")

    def _set_static_graph(self):
        self.static_graph = True


__getattr__ = _teach(__name__)
