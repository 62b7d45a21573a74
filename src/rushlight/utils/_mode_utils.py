"""Questions about stacks of modes."""

from __future__ import annotations

from typing import Any

from rushlight.utils._python_dispatch import no_dispatch

__all__ = ["all_same_mode", "no_dispatch"]


def all_same_mode(modes: Any) -> bool:
    """Whether the modes are one and the same object."""
    return all(mode is modes[0] for mode in modes)
