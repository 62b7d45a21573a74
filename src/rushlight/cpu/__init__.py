"""torch.cpu: the device that is always here, with the questions that are asked of the others."""

import contextlib

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute


def is_available():
    return True


def is_initialized():
    return True


def device_count():
    return 1


def current_device():
    return "cpu"


def set_device(device):
    """There is one CPU."""


def synchronize(device=None):
    """Nothing runs behind the program's back."""


class Stream:
    """A queue of work: on a CPU work is done when it is asked for.

    Args:
        priority (int): accepted. Default: -1

    Example:
        >>> torch.Stream().synchronize()
    """

    def __init__(self, priority=-1):
        self.priority = priority

    def wait_stream(self, stream):
        return None

    def synchronize(self):
        return None

    def record_event(self):
        return Event()

    def wait_event(self, event):
        return None


class Event:
    """A point in a queue of work: on a CPU already passed.

    Example:
        >>> torch.Event().query()
        True
    """

    def query(self):
        return True

    def record(self, stream=None):
        return None

    def synchronize(self):
        return None

    def wait(self, stream=None):
        return None


_stream = Stream()


def current_stream(device=None):
    return _stream


@contextlib.contextmanager
def stream(stream):
    yield stream


def _is_avx512_supported():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        return "avx512f" in f.read()


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    if name == "amp":
        import importlib

        return importlib.import_module("rushlight.cpu.amp")
    return _unsupported_attribute(__name__)(name)
