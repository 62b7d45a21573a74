"""What no machine has memory for is refused before a loop of millions of steps runs into it."""

from __future__ import annotations

import operator
import os

import rushlight as rl

OBJECT_BYTES = 400  # less than any module or parameter takes as an object


def _physical_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_memory(argument: str, count: int, bytes_each: int) -> None:
    """Raises OutOfMemoryError where `count` parts of `bytes_each` bytes are more than the machine's memory."""
    need = operator.index(count) * bytes_each
    if need > _physical_bytes():
        raise rl.OutOfMemoryError(
            f"DefaultCPUAllocator: can't allocate memory: {argument}={count} needs at least {need / 1e9:,.0f} GB, "
            f"and this machine has {_physical_bytes() / 1e9:.0f} GB. Choose a smaller {argument}."
        )
