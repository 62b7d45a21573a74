"""The methods of Module that change the type or device of everything below it."""

from __future__ import annotations

import rushlight as rl
from rushlight.nn.parameter import Parameter, UninitializedTensorMixin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from rushlight.nn.modules.module import Module

    _M = TypeVar("_M", bound=Module)


Tensor = rl.Tensor


def _apply(self: _M, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> _M:
    """Replaces every parameter, gradient and buffer by fn of it, keeping the Parameter objects where
    possible."""
    if recurse:
        for module in self.children():
            module._apply(fn)
    for name, param in self._parameters.items():
        if param is None:
            continue
        with rl.no_grad():
            changed = fn(param)
        grad = param.grad
        swap = (_swaps() or _wraps(changed)) and not isinstance(param, UninitializedTensorMixin)
        if swap:
            fresh = changed if isinstance(changed, Parameter) else Parameter(changed, param.requires_grad)
            param.grad = None
            try:
                if fresh is not param:
                    rl.utils.swap_tensors(param, fresh)
            except Exception as error:
                param.grad = grad
                raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}") from error
        elif _overwrites() or (param.device.type, param.layout) != (changed.device.type, changed.layout):
            param = Parameter(changed, param.requires_grad)
            self._parameters[name] = param
        else:
            param.data = changed
        if grad is not None:
            with rl.no_grad():
                _give_grad(param, grad, fn(grad), swap)
    for name, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[name] = fn(buffer)
    return self


def to(self: _M, *args: Any, **kwargs: Any) -> _M:
    """Moves and casts parameters and buffers, in place: to(device), to(dtype), to(device, dtype) or to(other).

    Unlike `Tensor.to` it changes the module itself. Only floating point and complex tensors change their dtype.
    Make the optimizer afterwards.

    Args:
        args (any): device (device), dtype (dtype), or a tensor to take both from.
        kwargs (any): device, dtype, non_blocking, and memory_format, which is for parameters of 4 and 5 dimensions.

    Returns:
        self

    Raises:
        TypeError: the dtype is one of integers.

    Example:
        >>> nn.Linear(2, 1).to(torch.float64).weight.dtype
        torch.float64
    """
    device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(
            f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
        )

    def convert(t: rl.Tensor) -> rl.Tensor:
        kind = dtype if dtype is not None and (t.is_floating_point() or t.is_complex()) else None
        if memory_format is not None and t.dim() in (4, 5):
            return t.to(device, kind, non_blocking, memory_format=memory_format)
        return t.to(device, kind, non_blocking)

    return self._apply(convert)


def _give_grad(param: rl.Tensor, grad: rl.Tensor, changed: rl.Tensor, swap: bool) -> None:
    """Sets param.grad to the converted gradient; if parameters are swapped, to the same object."""
    requires_grad = grad.requires_grad
    if swap and changed is not grad:
        rl.utils.swap_tensors(grad, changed)
        changed = grad
    param.grad = changed.requires_grad_(requires_grad)


def _swaps() -> bool:
    from rushlight import __future__

    result: bool = __future__.get_swap_module_params_on_conversion()
    return result


def _overwrites() -> bool:
    from rushlight import __future__

    result: bool = __future__.get_overwrite_module_params_on_conversion()
    return result


def _wraps(t: rl.Tensor) -> bool:
    """Whether t is a tensor without memory of its own, whose data can't be given to another."""
    if type(t) in (rl.Tensor, Parameter):
        return False
    from rushlight.utils._python_dispatch import is_traceable_wrapper_subclass

    result: bool = is_traceable_wrapper_subclass(t)
    return result


def _parse_to(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
    tensor: rl.Tensor | None = None,
) -> Any:
    """(device, dtype, non_blocking, memory_format) of the arguments that `to` takes in their three forms."""
    rest = list(args)
    if tensor is not None:
        rest.insert(0, tensor)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
        device, dtype = other.device, other.dtype
    elif rest and isinstance(rest[0], rl.dtype):
        dtype = rest.pop(0)
    elif rest:
        if rest[0] is not None and not isinstance(rest[0], (str, int, rl.device)):
            raise TypeError(
                f"to() received an invalid combination of arguments - got ({type(rest[0]).__name__})"
            )
        device = rest.pop(0)
        if rest:
            if rest[0] is not None and not isinstance(rest[0], rl.dtype):
                raise TypeError(
                    "to() received an invalid combination of arguments: after a device comes a dtype, got "
                    f"{type(rest[0]).__name__}; write non_blocking= by its name"
                )
            dtype = rest.pop(0)
    if rest:
        non_blocking = rest.pop(0)
    if rest:
        copy = rest.pop(0)
    if rest or not isinstance(non_blocking, bool) or not isinstance(copy, bool):
        raise TypeError(
            "to() received an invalid combination of arguments: expected (device, dtype, non_blocking), "
            "(dtype, non_blocking) or (tensor, non_blocking)"
        )
    if copy:
        raise RuntimeError(
            ".to() does not accept copy argument: a module is changed in place; copy.deepcopy(m) first"
        )
    if device is not None and not isinstance(device, rl.device):
        device = rl.device(device)
    return device, dtype, non_blocking, memory_format
