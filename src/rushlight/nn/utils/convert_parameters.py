"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight as rl
from rushlight._C import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _same_device(param, device):
    """The device of the first parameter, after checking that this one is there too."""
    if device is not None and param.device != device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return param.device


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The values of all parameters, one after the other."""
    device, parts = None, []
    for param in parameters:
        device = _same_device(param, device)
        parts.append(param.view(-1))
    return rl.cat(parts)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives each parameter its piece of a vector; the memory is shared."""
    if not isinstance(vec, rl.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {rl.typename(vec)}")
    device, start = None, 0
    for param in parameters:
        device = _same_device(param, device)
        end = start + param.numel()
        param.data = vec[start:end].view_as(param).data
        start = end
