"""Questions about CUDA devices, of which there are none: what asks is answered, what needs one says so."""

from __future__ import annotations

from typing import Any, Literal
from rushlight._C import Tensor

import threading
import warnings
from collections import OrderedDict

from rushlight._core.unsupported import add_placeholders as _add_placeholders

_NONE = (
    "Torch not compiled with CUDA enabled\n  There is no GPU here. Ask first: device = "
    '"cuda" if torch.cuda.is_available() else "cpu"'
)

has_half = has_magma = False
default_generators = ()
_initialized = False


class CudaError(RuntimeError):
    """What CUDA's own errors are raised as."""


class DeferredCudaCallError(Exception):
    """An error in a call that waited for CUDA to start."""


AcceleratorError = CudaError


class OutOfMemoryError(RuntimeError):
    """A device has no memory left."""


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def is_initialized() -> bool:
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def is_tf32_supported() -> bool:
    return False


def get_arch_list() -> list[str]:
    return []


def get_gencode_flags() -> str:
    return ""


def _none(name):
    def needs_a_device(*args, **kwargs):
        raise AssertionError(f"{_NONE} (torch.cuda.{name}: check torch.cuda.is_available() first)")

    needs_a_device.__name__ = needs_a_device.__qualname__ = name
    return needs_a_device


for _name in [
    "init",
    "current_device",
    "set_device",
    "synchronize",
    "get_device_name",
    "get_device_capability",
    "get_device_properties",
    "current_stream",
    "default_stream",
    "set_stream",
    "current_blas_handle",
    "can_device_access_peer",
    "get_rng_state",
    "initial_seed",
    "mem_get_info",
    "get_sync_debug_mode",
    "set_sync_debug_mode",
    "utilization",
    "temperature",
    "power_draw",
    "clock_rate",
    "memory_usage",
    "get_device_index",
    "cudart",
]:
    globals()[_name] = _none(_name)


_add_placeholders(
    globals(),
    "CUDAGraph CUDAPluggableAllocator MemPool graph graph_pool_handle make_graphed_callables change_current_allocator "
    "caching_allocator_alloc caching_allocator_delete get_stream_from_external",
)


def _zero(device=None):
    return 0


memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = _zero
memory_cached = max_memory_cached = device_memory_used = _zero


def _nothing(*args, **kwargs):
    return None


empty_cache = ipc_collect = reset_peak_memory_stats = reset_max_memory_allocated = _nothing
reset_max_memory_cached = reset_accumulated_memory_stats = set_per_process_memory_fraction = _nothing
manual_seed = manual_seed_all = seed = seed_all = set_rng_state = set_rng_state_all = _lazy_init = _nothing
_lazy_call = _sleep = _nothing


def get_rng_state_all() -> list[Tensor]:
    return []


def memory_stats(device: device | str | int | None = None) -> dict[str, Any]:
    return OrderedDict()


def memory_stats_as_nested_dict(device: device | str | int | None = None) -> dict[str, Any]:
    return {}


def memory_snapshot(mempool_id: Any = None) -> Any:
    return []


def memory_summary(device: device | str | int | None = None, abbreviated: bool = False) -> str:
    return "no CUDA device: nothing is allocated on one"


def list_gpu_processes(device: device | str | int | None = None) -> str:
    return "no CUDA device"


def is_current_stream_capturing() -> bool:
    return False


class device:
    """with torch.cuda.device(index): a choice of device, without one to choose."""

    def __init__(self, device: Any) -> None:
        self.idx = getattr(device, "index", device)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> Literal[False]:
        return False


class device_of(device):
    """The device of a tensor, if it is on one."""

    def __init__(self, obj: Any) -> None:
        super().__init__(-1)


class StreamContext:
    """with torch.cuda.stream(s): does nothing for None."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> Literal[False]:
        return False


def stream(stream: Any) -> Any:
    return StreamContext(stream)


class Stream:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


ExternalStream = Stream


class Event:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("torch.cuda.Event requires CUDA support; to time code use time.perf_counter()")


class CUDAGraph:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("torch.cuda.CUDAGraph requires CUDA support")


class _TensorType(type):
    def __instancecheck__(cls, obj):
        return False

    def __call__(cls, *args, **kwargs):
        raise TypeError(f"type torch.cuda.{cls.__name__} not available. {_NONE}.")


def _not_of_storages(*args, **kwargs):
    raise RuntimeError("Not available for CUDA storage")


_STORAGE_METHODS = dict.fromkeys(
    ("from_buffer", "_new_with_weak_ptr", "_new_shared_filename"), staticmethod(_not_of_storages)
)
for _name in ["Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"]:
    for _kind in ("Tensor", "Storage"):
        _space = {"__module__": __name__, "is_cuda": True, **(_STORAGE_METHODS if _kind == "Storage" else {})}
        globals()[_name + _kind] = _TensorType(_name + _kind, (), _space)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in ("amp", "nvtx", "random", "memory", "comm"):
        return import_module(f"{__name__}.{name}")
    from rushlight._core.unsupported import unsupported_attribute

    return unsupported_attribute(__name__)(name)


_initialization_lock = threading.Lock()


def _warn_renamed(old, new):
    warnings.warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning, stacklevel=3)


def _is_in_bad_fork():
    return False
