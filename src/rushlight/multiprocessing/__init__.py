"""Python's multiprocessing, whose queues and pipes share tensors instead of copying them."""

import multiprocessing
from multiprocessing import *  # noqa: F403

from .reductions import init_reductions as init_reductions
from .spawn import (
    ProcessContext as ProcessContext,
    ProcessExitedException as ProcessExitedException,
    ProcessRaisedException as ProcessRaisedException,
    SpawnContext as SpawnContext,
    spawn as spawn,
    start_processes as start_processes,
)

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

init_reductions()


def get_all_sharing_strategies():
    """The ways in which tensors can be shared between processes: by file descriptor only.

    Example:
        >>> torch.multiprocessing.get_all_sharing_strategies()
        {'file_descriptor'}
    """
    return {"file_descriptor"}


def get_sharing_strategy():
    """The way in which tensors are shared between processes: by file descriptor.

    Example:
        >>> torch.multiprocessing.get_sharing_strategy()
        'file_descriptor'
    """
    return "file_descriptor"


def set_sharing_strategy(new_strategy):
    """Accepts a way of sharing tensors; descriptors are always used.

    Args:
        new_strategy (str): "file_descriptor" or "file_system".

    Example:
        >>> torch.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    if new_strategy not in ("file_descriptor", "file_system"):
        raise AssertionError(f"unknown sharing strategy {new_strategy!r}")


from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
