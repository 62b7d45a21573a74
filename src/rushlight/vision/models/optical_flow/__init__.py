"""Models of the motion between two images: RAFT."""

from __future__ import annotations

from .raft import *


TYPE_CHECKING = False
if (
    TYPE_CHECKING
):  # builders, and the enumerations of their weights, are entered while their modules are loaded
    from typing import Any

    def __getattr__(name: str) -> Any: ...
