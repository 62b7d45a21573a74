"""The modes of recording, under the name of their module in PyTorch."""

import threading

from rushlight._core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]

_local = threading.local()


class set_multithreading_enabled:
    """Says whether backward may use several threads of its own: at once, and as a context until its end.

    Backward runs in the thread that calls it, and its ops share the threads of the pool: the setting is kept,
    and changes nothing.

    Args:
        mode (bool): the setting.

    Example:
        >>> with torch.autograd.set_multithreading_enabled(False):
        ...     print(torch.autograd.grad_mode.is_multithreading_enabled())
        False
    """

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self.before = is_multithreading_enabled()
        _local.multithreading = self.mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        _local.multithreading = self.before

    def clone(self) -> "set_multithreading_enabled":
        return set_multithreading_enabled(self.mode)


def is_multithreading_enabled() -> bool:
    """What set_multithreading_enabled said last in this thread."""
    return getattr(_local, "multithreading", True)
