"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight as rl
from rushlight._C import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _same_device(param: Tensor, device: rl.device | None) -> rl.device:
    """The device of the first parameter, after checking that this one is there too."""
    if device is not None and param.device != device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return param.device


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Joins the values of all parameters into one vector, through which gradients flow back.

    Args:
        parameters (iterable of Tensor): of one device.

    Example:
        >>> nn.utils.parameters_to_vector([torch.zeros(2), torch.ones(1, 2)])
        tensor([0., 0., 1., 1.])
    """
    device, parts = None, []
    for param in parameters:
        device = _same_device(param, device)
        parts.append(param.view(-1))
    return rl.cat(parts)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives each parameter its part of a vector, in order; the memory is shared with the vector.

    Args:
        vec (Tensor): as long as all parameters together.
        parameters (iterable of Tensor): changed in place.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), layer.parameters())
        >>> layer.bias.detach()
        tensor([3.])
    """
    if not isinstance(vec, rl.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {rl.typename(vec)}")
    device, start = None, 0
    for param in parameters:
        device = _same_device(param, device)
        end = start + param.numel()
        param.data = vec[start:end].view_as(param).data
        start = end
