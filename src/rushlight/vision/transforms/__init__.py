"""Transforms of images: classes here, functions in `functional`, data of several kinds at once in `v2`."""

from __future__ import annotations

from .autoaugment import *
from .transforms import *

from . import functional as functional


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("v2", "autoaugment", "transforms", "_functional_tensor", "_functional_pil"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
