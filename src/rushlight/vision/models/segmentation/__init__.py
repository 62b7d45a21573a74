"""Models that give a class to every pixel."""

from __future__ import annotations

from .deeplabv3 import *
from .fcn import *
from .lraspp import *


TYPE_CHECKING = False
if (
    TYPE_CHECKING
):  # builders, and the enumerations of their weights, are entered while their modules are loaded
    from typing import Any

    def __getattr__(name: str) -> Any: ...
