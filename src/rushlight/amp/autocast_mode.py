"""autocast: which type the matrix operations of a region are to run in, kept per thread and per kind of
device.
"""

import functools
import threading
import warnings

import rushlight as rl

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DEVICES = ("cpu", "cuda")


class _State(threading.local):
    def __init__(self):
        self.enabled = dict.fromkeys(_DEVICES, False)
        self.dtypes = {}
        self.cache = True
        self.nesting = 0


_state = _State()


def is_autocast_available(device_type):
    """Whether autocast(device_type) is possible."""
    return device_type in _DEVICES


def is_autocast_enabled(device_type="cuda"):
    return _state.enabled.get(device_type, False)


def set_autocast_enabled(*args):
    """set_autocast_enabled([device_type,] enabled)"""
    device_type, enabled = args if len(args) == 2 else ("cuda", *args)
    _state.enabled[device_type] = enabled


def get_autocast_dtype(device_type):
    return _state.dtypes.get(device_type) or (rl.bfloat16 if device_type == "cpu" else rl.float16)


def set_autocast_dtype(device_type, dtype):
    _state.dtypes[device_type] = dtype


def is_autocast_cpu_enabled():
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled):
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype():
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype):
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype():
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype):
    set_autocast_dtype("cuda", dtype)


def is_autocast_cache_enabled():
    return _state.cache


def set_autocast_cache_enabled(enabled):
    _state.cache = enabled


def autocast_increment_nesting():
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting():
    _state.nesting -= 1
    return _state.nesting


def clear_autocast_cache():
    """Forgets casts of parameters; none are kept."""


class autocast:
    """A region (with block or decorator) in which matrix operations may run in a shorter type.

    On the CPU that is bfloat16; there is no CUDA device, so autocast("cuda") warns and does nothing.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        device_type = device_type.split(":")[0]
        if device_type not in _DEVICES:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = dtype or get_autocast_dtype(device_type)
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda":
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling", stacklevel=2
            )
            enabled = False
        if enabled and self.fast_dtype not in (rl.bfloat16, rl.float16, rl.float32):
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast. "
                "CPU Autocast only supports dtype of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled

    def __enter__(self):
        device = self.device
        self._before = _state.enabled[device], _state.dtypes.get(device), _state.cache
        _state.enabled[device], _state.dtypes[device] = self._enabled, self.fast_dtype
        _state.cache = self._cache_enabled
        _state.nesting += 1
        return self

    def __exit__(self, *exc):
        _state.nesting -= 1
        _state.enabled[self.device], _state.dtypes[self.device], _state.cache = self._before
        return False

    def __call__(self, func):
        @functools.wraps(func)
        def inside(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return inside


def _enter_autocast(*args):
    mode = autocast(*args)
    mode.__enter__()
    return mode


def _exit_autocast(mode):
    mode.__exit__(None, None, None)


def _cast(value, device_type, dtype):
    if isinstance(value, rl.Tensor):
        wanted = value.is_floating_point() and value.device.type == device_type and value.dtype != rl.float64
        return value.to(dtype) if wanted else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_cast(v, device_type, dtype) for v in value)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """For the forward of an autograd.Function: casts its inputs inside autocast regions, and leaves the
    region.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        args[0]._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        args[0]._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type):
    """For the backward of an autograd.Function: runs it in the autocast state its forward had."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated
