"""torch.distributed under its inner address."""

import rushlight.distributed as _dist
from rushlight.distributed import *  # noqa: F403


def _get_default_group():
    return _dist._world()


_pg_map: dict = {}  # groups by what made them: the one group is not entered
_get_global_rank = _dist.get_global_rank


TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes milliseconds to import
    from typing import Any


def __getattr__(name: str) -> "Any":
    return getattr(_dist, name)
