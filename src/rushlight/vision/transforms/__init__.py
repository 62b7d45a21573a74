"""Transforms of pictures: classes here, functions in `functional`, data of several kinds at once in `v2`."""

from .autoaugment import *
from .transforms import *

from . import functional


def __getattr__(name):
    if name in ("v2", "autoaugment", "transforms", "_functional_tensor", "_functional_pil"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    from rushlight._missing import no_name

    raise no_name(__name__, name)
