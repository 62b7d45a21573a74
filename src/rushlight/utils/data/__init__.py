"""Datasets, samplers and the DataLoader."""

from __future__ import annotations


from ._utils.collate import default_collate, default_convert
from ._utils.worker import get_worker_info
from .dataloader import DataLoader, _DatasetKind
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

_PIPES = ("DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe")


def __getattr__(name: str) -> Any:
    if name in _PIPES:  # few programs need them
        import importlib

        importlib.import_module("rushlight.utils.data.datapipes")
        return getattr(importlib.import_module("rushlight.utils.data.datapipes.datapipe"), name)
    return _unsupported_attribute(__name__)(name)
