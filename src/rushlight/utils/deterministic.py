"""torch.utils.deterministic: whether new memory is filled while deterministic algorithms are asked for."""

from __future__ import annotations

import sys
import types
from typing import Any

from rushlight._core import convert as _convert


class _Module(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether empty() and resize_() fill what they allocate, under use_deterministic_algorithms(True)."""
        return _convert._fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, on: Any) -> None:
        _convert.set_fill_uninitialized_memory(on)


sys.modules[__name__].__class__ = _Module
