"""The core's functions of nn.functional, under their own names."""

from rushlight.nn import _core

__all__ = [*_core._shown]
globals().update(_core._shown)
