"""Passes over graphs."""

from rushlight._core.unsupported import teach as _teach

__getattr__ = _teach(__name__)
