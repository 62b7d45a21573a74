"""Fetching the samples of one batch from a dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["create_fetcher"]


def _name_sample(error: BaseException, index: object) -> None:
    """Say in the traceback which sample failed (notes need Python 3.11)."""
    if hasattr(error, "add_note"):
        error.add_note(f"while loading sample {index!r} of the dataset")


class _BaseDatasetFetcher:
    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[..., Any], drop_last: bool
    ) -> None:
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    def _sample(self, index: Any) -> Any:
        try:
            return self.dataset[index]
        except Exception as error:
            _name_sample(error, index)
            raise

    def fetch(self, index: Any) -> Any:
        if not self.auto_collation:
            data = self._sample(index)
        elif getattr(self.dataset, "__getitems__", None):
            data = self.dataset.__getitems__(index)
        else:
            data = [self._sample(i) for i in index]
        return self.collate_fn(data)


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Raises StopIteration when the stream is used up."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[..., Any], drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        data = []
        for _ in index:
            try:
                data.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not data or (self.drop_last and len(data) < len(index)):
            self.ended = True
            raise StopIteration
        return self.collate_fn(data)


def create_fetcher(
    iterable: bool, dataset: Any, auto_collation: bool, collate_fn: Callable[..., Any], drop_last: bool
) -> _IterableDatasetFetcher | _MapDatasetFetcher:
    """An object whose `fetch(index)` returns the collated batch at an index (or list of indices)."""
    kind = _IterableDatasetFetcher if iterable else _MapDatasetFetcher
    return kind(dataset, auto_collation, collate_fn, drop_last)
