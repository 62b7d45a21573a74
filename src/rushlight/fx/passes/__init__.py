"""Passes over graphs."""

from rushlight._missing import teach as _teach

__getattr__ = _teach(__name__)
