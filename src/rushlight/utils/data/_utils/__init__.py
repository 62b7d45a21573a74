"""Private parts of the DataLoader, under the names that other packages import."""

from . import collate, fetch, worker

__all__ = ["collate", "fetch", "worker"]
