"""DataParallel on one device: the interface of the many-GPU form, and the module's own call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]


class DataParallel(Module):
    """Wraps a module as `.module` and passes calls on: on one device there is nothing to split.

    For programs written for several GPUs. Keys of its state_dict begin with 'module.'; save `model.module` instead.
    For several processes see `nn.parallel.DistributedDataParallel`.

    Args:
        module (Module): what is wrapped.
        device_ids (list of int): devices to use; more than there are raise. Default: None, all
        output_device (int or device): where the result would be gathered. Default: None, the first
        dim (int): the dimension that would be split. Default: 0

    Example:
        >>> nn.DataParallel(nn.Linear(2, 1))(torch.ones(3, 2)).shape
        torch.Size([3, 1])
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int | rl.device] | None = None,
        output_device: int | rl.device | None = None,
        dim: int = 0,
    ) -> None:
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

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)

    def replicate(self, module: Module, device_ids: Sequence[int | rl.device]) -> list[Module]:
        """Returns a list with the module for each device; see `nn.parallel.replicate`.

        Args:
            module (Module): what is repeated.
            device_ids (list): one entry for each copy.
        """
        return replicate(module, device_ids)

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[int | rl.device]
    ) -> Any:
        """Splits arguments along `dim`, a part for each device; see `nn.parallel.scatter`.

        Args:
            inputs (tuple): positional arguments.
            kwargs (dict): keyword arguments.
            device_ids (list): one entry for each part.

        Returns:
            (parts of inputs, parts of kwargs)
        """
        return scatter(inputs, device_ids, self.dim), scatter(kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas: Any, inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """Calls each module with its own inputs; see `nn.parallel.parallel_apply`.

        Args:
            replicas (list of Module): what is called.
            inputs (list): the positional arguments of each.
            kwargs (tuple of dict): the keyword arguments of each.
        """
        return parallel_apply(replicas, inputs, kwargs)

    def gather(self, outputs: Any, output_device: int | rl.device) -> Any:
        """Joins results along `dim`; see `nn.parallel.gather`.

        Args:
            outputs (list): a result for each part.
            output_device (int or device): accepted.
        """
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[int | rl.device] | None = None,
    output_device: int | rl.device | None = None,
    dim: int = 0,
    module_kwargs: Any | None = None,
) -> Any:
    """Calls a module as `nn.DataParallel` does: module(*inputs) on one device.

    Args:
        module (Module): what is called.
        inputs (tuple or Tensor): positional arguments.
        device_ids (list of int): accepted. Default: None
        output_device (int or device): accepted. Default: None
        dim (int): accepted. Default: 0
        module_kwargs (dict): keyword arguments. Default: None

    Example:
        >>> nn.parallel.data_parallel(nn.ReLU(), torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,) if inputs is not None else ()
    return module(*inputs, **(module_kwargs or {}))


def replicate(network: Module, devices: Sequence[int | rl.device], detach: bool = False) -> list[Module]:
    """Returns a list with a module for each device: the module itself, as there is one kind of memory.

    Args:
        network (Module): what is repeated.
        devices (list): one entry for each copy.
        detach (bool): accepted. Default: False

    Example:
        >>> len(nn.parallel.replicate(nn.ReLU(), [0, 1]))
        2
    """
    return [network for _ in devices]


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """Splits tensors in any nesting along a dimension, a part for each device.

    Args:
        inputs (any): tensors, tuples, lists and dictionaries; other objects are repeated.
        target_gpus (list): one entry for each part.
        dim (int): the dimension that is split. Default: 0

    Returns:
        A list of parts.

    Example:
        >>> nn.parallel.scatter((torch.arange(4), "name"), [0, 1])
        [(tensor([0, 1]), 'name'), (tensor([2, 3]), 'name')]
    """
    n = max(len(target_gpus), 1)

    def split(x: Any) -> Any:
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


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[int | rl.device | None] | None = None,
) -> list[Any]:
    """Calls each module with its own inputs, one after the other.

    Args:
        modules (list of Module): what is called.
        inputs (list): the positional arguments of each; what is no tuple or list is the only one.
        kwargs_tup (tuple of dict): the keyword arguments of each. Default: None
        devices (list): accepted. Default: None

    Returns:
        A list of results.

    Example:
        >>> nn.parallel.parallel_apply([nn.ReLU(), nn.Tanh()], [torch.tensor(-1.0), torch.tensor(0.0)])
        [tensor(0.), tensor(0.)]
    """
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}"
        )
    kwargs_tup = kwargs_tup if kwargs_tup is not None else ({},) * len(modules)
    out = []
    for module, given, kwargs in zip(modules, inputs, kwargs_tup, strict=True):
        out.append(module(*(given if isinstance(given, (list, tuple)) else (given,)), **kwargs))
    return out


def gather(outputs: Any, target_device: int | rl.device, dim: int = 0) -> Any:
    """Joins the results of the parts, in any nesting, along a dimension: the inverse of `scatter`.

    Args:
        outputs (list): a result for each part; 0-dim tensors are stacked.
        target_device (int or device): accepted.
        dim (int): the dimension along which they are joined. Default: 0

    Example:
        >>> nn.parallel.gather([torch.zeros(1), torch.ones(2)], "cpu")
        tensor([0., 1., 1.])
    """
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
