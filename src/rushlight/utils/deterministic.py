"""torch.utils.deterministic: whether new memory is filled while deterministic algorithms are asked for."""

import sys
import types

from rushlight._core import convert as _convert


class _Module(types.ModuleType):
    @property
    def fill_uninitialized_memory(self):
        """Whether empty() and resize_() fill what they allocate, under use_deterministic_algorithms(True)."""
        return _convert._fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, on):
        _convert.set_fill_uninitialized_memory(on)


sys.modules[__name__].__class__ = _Module
