"""DataParallel on one device: the interface of the many-GPU form, and the module's own call."""

import rushlight as rl
from rushlight.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]


class DataParallel(Module):
    """Wraps a module as `.module`; with no or one device it only passes calls on.

    Args:
        device_ids: devices to use; more than one is refused where there is no such device.
        output_device: where the result goes.
        dim: the dimension that would be split.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        available = rl.cuda.device_count() if rl.cuda.is_available() else 0
        if device_ids is None:
            device_ids = list(range(available))
        device_ids = [getattr(d, "index", d) for d in device_ids]
        if len(device_ids) > max(available, 1):
            raise RuntimeError(
                f"DataParallel: expected devices among the {available} available, got "
                f"device_ids={device_ids}. "
                "Leave device_ids away to run on the one there is"
            )
        self.dim = dim
        self.module = module
        self.device_ids = device_ids if available else []
        self.output_device = (
            output_device
            if output_device is not None
            else (device_ids[0] if available and device_ids else None)
        )

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def replicate(self, module, device_ids):
        return replicate(module, device_ids)

    def scatter(self, inputs, kwargs, device_ids):
        return scatter(inputs, device_ids, self.dim), scatter(kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        return parallel_apply(replicas, inputs, kwargs)

    def gather(self, outputs, output_device):
        return gather(outputs, output_device, self.dim)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """module(*inputs) on one device."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,) if inputs is not None else ()
    return module(*inputs, **(module_kwargs or {}))


def replicate(network, devices, detach=False):
    """The module once per device; on one device it is itself."""
    return [network for _ in devices]


def scatter(inputs, target_gpus, dim=0):
    """Splits tensors in any nesting along a dimension, one piece per device."""
    n = max(len(target_gpus), 1)

    def split(x):
        if isinstance(x, rl.Tensor):
            return list(x.chunk(n, dim))
        if isinstance(x, (tuple, list)) and len(x) > 0:
            return [type(x)(parts) for parts in zip(*map(split, x), strict=True)]
        if isinstance(x, dict) and len(x) > 0:
            return [
                type(x)(parts)
                for parts in zip(*(zip([k] * n, split(v), strict=True) for k, v in x.items()), strict=True)
            ]
        return [x for _ in range(n)]

    return split(inputs)


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Calls each module with its own inputs, one after the other."""
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}"
        )
    kwargs_tup = kwargs_tup if kwargs_tup is not None else ({},) * len(modules)
    out = []
    for module, given, kwargs in zip(modules, inputs, kwargs_tup, strict=True):
        out.append(module(*(given if isinstance(given, (list, tuple)) else (given,)), **kwargs))
    return out


def gather(outputs, target_device, dim=0):
    """Joins results of the pieces, in any nesting, along a dimension."""
    first = outputs[0]
    if isinstance(first, rl.Tensor):
        if all(t.dim() == 0 for t in outputs):
            return rl.stack(list(outputs))
        return rl.cat(list(outputs), dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)((k, gather([o[k] for o in outputs], target_device, dim)) for k in first)
    return type(first)(gather(parts, target_device, dim) for parts in zip(*outputs, strict=True))
