"""autocast: regions in which matrix products run in a short type and delicate functions in float32.

Which op does what is part of its registration (kCastLow, kCastFull, kCastWidest); this module says when, per thread and
per kind of device. Only the CPU's state reaches the core: there is no other device to compute on.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any, Literal, Self, TypeVar
from typing import cast as cast_to

import rushlight as rl
from rushlight import _C
from rushlight._core.autocast import cast

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

# The type of a region that names none, by kind of device; regions for devices that are not here change nothing.
_SHORT = {
    **dict.fromkeys(("cuda", "xpu", "mps", "mtia", "ipu", "privateuseone"), rl.float16),
    **dict.fromkeys(("cpu", "hpu", "xla", "maia"), rl.bfloat16),
}
_SUPPORTED = (rl.bfloat16, rl.float16)
clear_autocast_cache = _C.ops["clear_autocast_cache"]


class _State(threading.local):
    def __init__(self) -> None:
        self.enabled = dict.fromkeys(_SHORT, False)
        self.dtype = dict(_SHORT)
        self.cache = True
        self.nesting = 0

    def get(self, device_type: str) -> Any:
        return self.enabled[device_type], self.dtype[device_type], self.cache

    def set(self, device_type: str, enabled: bool, dtype: Any, cache: Any) -> None:
        self.enabled[device_type], self.dtype[device_type], self.cache = enabled, dtype, cache
        on = self.enabled["cpu"] and self.dtype["cpu"] in _SUPPORTED
        _C.ops["_set_autocast"](on, self.dtype["cpu"], cache)


_state = _State()


def _known(device_type: str) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    device_type = device_type.split(":")[0]
    if device_type not in _SHORT:
        raise RuntimeError(
            f"unsupported autocast device_type '{device_type}': expected one of {', '.join(_SHORT)}"
        )
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Tells whether autocast knows a kind of device.

    Args:
        device_type (str): "cpu", "cuda" ...

    Example:
        >>> torch.amp.is_autocast_available("cpu")
        True
    """
    return device_type in _SHORT


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether calls are inside a region of autocast for that kind of device.

    Args:
        device_type (str): 'cpu' or another. Default: 'cuda'

    Example:
        >>> with torch.autocast("cpu"):
        ...     torch.is_autocast_enabled("cpu")
        True
    """
    return _state.enabled[_known(device_type)]


def set_autocast_enabled(*args: Any) -> None:
    """Opens or closes a region of autocast; torch.autocast is the usual way.

    Args:
        args (str, bool): the kind of device, 'cuda' without it, and whether it is on.

    Example:
        >>> torch.set_autocast_enabled("cpu", False)
    """
    device_type, enabled = args if len(args) == 2 else ("cuda", *args)
    _, dtype, cache = _state.get(_known(device_type))
    _state.set(device_type, enabled, dtype, cache)


def get_autocast_dtype(device_type: str) -> rl.dtype:
    """The low-precision type of the regions of that kind of device.

    Args:
        device_type (str): 'cpu' or another.

    Example:
        >>> torch.get_autocast_dtype("cpu")
        torch.bfloat16
    """
    return _state.dtype[_known(device_type)]


def set_autocast_dtype(device_type: str, dtype: rl.dtype) -> None:
    """Sets the low-precision type of the regions of that kind of device.

    Args:
        device_type (str): 'cpu' or another.
        dtype (dtype): torch.bfloat16 or torch.float16.

    Example:
        >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    enabled, _, cache = _state.get(_known(device_type))
    _state.set(device_type, enabled, dtype, cache)


def is_autocast_cpu_enabled() -> bool:
    """is_autocast_enabled("cpu").

    Example:
        >>> torch.is_autocast_cpu_enabled()
        False
    """
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """set_autocast_enabled("cpu", enabled).

    Args:
        enabled (bool): whether it is on.

    Example:
        >>> torch.set_autocast_cpu_enabled(False)
    """
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> rl.dtype:
    """get_autocast_dtype("cpu").

    Example:
        >>> torch.get_autocast_cpu_dtype()
        torch.bfloat16
    """
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: rl.dtype) -> None:
    """set_autocast_dtype("cpu", dtype).

    Args:
        dtype (dtype): torch.bfloat16 or torch.float16.

    Example:
        >>> torch.set_autocast_cpu_dtype(torch.bfloat16)
    """
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> rl.dtype:
    """get_autocast_dtype("cuda").

    Example:
        >>> torch.get_autocast_gpu_dtype()
        torch.float16
    """
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: rl.dtype) -> None:
    """set_autocast_dtype("cuda", dtype).

    Args:
        dtype (dtype): torch.bfloat16 or torch.float16.

    Example:
        >>> torch.set_autocast_gpu_dtype(torch.get_autocast_gpu_dtype())
    """
    set_autocast_dtype("cuda", dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether a region of autocast casts a weight once and keeps the result.

    Example:
        >>> torch.is_autocast_cache_enabled()
        True
    """
    return _state.cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Sets whether a region casts a weight once and keeps the result.

    Args:
        enabled (bool): whether it does.

    Example:
        >>> torch.set_autocast_cache_enabled(True)
    """
    on, dtype, _ = _state.get("cpu")
    _state.set("cpu", on, dtype, enabled)


def autocast_increment_nesting() -> int:
    """Counts a region that opens, and returns how many are open.

    Example:
        >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
        (1, 0)
    """
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting() -> int:
    """Counts a region that closes, and returns how many are open; with none the cache of casts is emptied.

    Example:
        >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
        (1, 0)
    """
    _state.nesting -= 1
    return _state.nesting


class autocast:
    """A region in which ops choose their type: products and convolutions run in bfloat16 or float16, others in float32.

    A context and a decorator. Weights stay float32, and so do their gradients; backward runs outside of the
    region, each op in the type of its forward.

    Args:
        device_type (str): "cpu". Any other kind does nothing, as there is no such device ("cuda" warns).
        dtype (dtype): the type of reduced precision: bfloat16 or float16; None means bfloat16 on the CPU.
            Default: None
        enabled (bool): False switches an outer region off. Default: True
        cache_enabled (bool): a weight that is used several times is cast once; None means as before. Default:
            None

    Example:
        >>> layer = nn.Linear(2, 2)
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     y = layer(torch.ones(1, 2))
        ...     z = y.exp()
        >>> y.dtype, layer.weight.dtype
        (torch.bfloat16, torch.float32)
    """

    def __init__(
        self,
        device_type: str,
        dtype: rl.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device = _known(device_type)
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        self._cache_enabled = _state.cache if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._possible()
        self._outer: list[Any] = []

    def _possible(self) -> bool:
        if self.device == "cuda":
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling", stacklevel=4
            )
            return False
        if self.fast_dtype not in _SUPPORTED:
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast: expected bfloat16 or "
                f"float16, got {self.fast_dtype}",
                stacklevel=4,
            )
            return False
        return True

    def __enter__(self) -> Self:
        self._outer.append(_state.get(self.device))
        _state.set(self.device, self._enabled, self.fast_dtype, self._cache_enabled)
        autocast_increment_nesting()
        return self

    def __exit__(self, *exc: Any) -> Literal[False]:
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        _state.set(self.device, *self._outer.pop())
        return False

    def __call__(self, func: _F) -> _F:
        @functools.wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return cast_to(_F, inside)


def _enter_autocast(*args: Any) -> Any:
    mode = autocast(*args)
    mode.__enter__()
    return mode


def _exit_autocast(mode: Any) -> None:
    mode.__exit__(None, None, None)


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: rl.dtype | None = None
) -> Callable[..., Any]:
    """Decorator for the forward of an autograd.Function that is called inside autocast.

    With cast_inputs, a call inside a region gets its float tensors in that type and runs outside of the region.
    custom_bwd lets backward see the same state.

    Args:
        fwd (callable): the forward; None gives the decorator. Default: None
        device_type (str): "cpu" ...
        cast_inputs (dtype): the type that float tensors are cast to. Default: None

    Example:
        >>> class Product(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        ...     def forward(ctx, a, b):
        ...         ctx.save_for_backward(a, b)
        ...         return a @ b
        ...     @staticmethod
        ...     @torch.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         a, b = ctx.saved_tensors
        ...         return grad @ b.t(), a.t() @ grad
        >>> with torch.autocast("cpu"):
        ...     y = Product.apply(torch.ones(2, 2, dtype=torch.bfloat16), torch.ones(2, 2, requires_grad=True))
        >>> y.dtype
        torch.float32
    """
    _known(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        inside = is_autocast_enabled(device_type)
        leaves = inside and cast_inputs is not None
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = inside and not leaves
        if not leaves:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *cast(args, cast_inputs, device_type), **cast(kwargs, cast_inputs, device_type))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorator for the backward of an autograd.Function: runs it in the autocast state that its forward had.

    See amp.custom_fwd, which belongs to it.

    Args:
        bwd (callable): the backward; None gives the decorator. Default: None
        device_type (str): "cpu" ...

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.amp.custom_fwd(device_type="cpu")
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @torch.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return 2 * grad
        >>> x = torch.ones(2, requires_grad=True)
        >>> Double.apply(x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """
    _known(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return backward


def _cast(value: Any, device_type: str, dtype: rl.dtype) -> Any:
    """The float tensors in a nest of containers, in that type."""
    return cast(value, dtype, device_type)
