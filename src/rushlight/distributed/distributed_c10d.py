"""torch.distributed under its inner address."""

import rushlight.distributed as _dist
from rushlight.distributed import *  # noqa: F403


def _get_default_group():
    return _dist._world()


_get_global_rank = _dist.get_global_rank


def __getattr__(name):
    return getattr(_dist, name)
