"""torch.accelerator: there is none, and what asks is told so."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "is_available",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def is_available():
    return False


def device_count():
    return 0


def current_accelerator(check_available=False):
    """The device of the accelerator; None, as on any machine with only a CPU."""
    return


def _needs(name):
    def needs_an_accelerator(*args, **kwargs):
        raise RuntimeError(
            f"torch.accelerator.{name}: there is no accelerator, tensors are on the CPU; "
            "check torch.accelerator.is_available() first"
        )

    needs_an_accelerator.__name__ = needs_an_accelerator.__qualname__ = name
    return needs_an_accelerator


current_device_index = current_device_idx = _needs("current_device_index")
set_device_index = set_device_idx = _needs("set_device_index")
current_stream, set_stream = _needs("current_stream"), _needs("set_stream")
device_index = _needs("device_index")


def synchronize(device=None):
    """Nothing runs behind the program's back."""


def empty_cache():
    """No accelerator's memory is kept."""


def _zero(*args, **kwargs):
    return 0


memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = _zero
reset_peak_memory_stats = reset_accumulated_memory_stats = synchronize


def memory_stats(device=None):
    return {}


__getattr__ = _unsupported_attribute(__name__)
