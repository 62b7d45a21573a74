"""Parallel models. On one device DataParallel is the module itself; across processes see distributed.py."""

from importlib import import_module

from .data_parallel import DataParallel, data_parallel, gather, parallel_apply, replicate, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    if name in ("DistributedDataParallel", "distributed"):
        module = import_module("rushlight.nn.parallel.distributed")
        return module if name == "distributed" else module.DistributedDataParallel
    from rushlight._core.unsupported import no_name

    raise no_name(__name__, name)
