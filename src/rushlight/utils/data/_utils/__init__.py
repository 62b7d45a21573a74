"""Private parts of the DataLoader, under the names that other packages import."""

from . import collate, fetch, worker

__all__ = ["collate", "fetch", "worker"]

MP_STATUS_CHECK_INTERVAL = worker.PARENT_CHECK_SECONDS
python_exit_status = False
