"""Collectives that have gradients, for a group of one."""

from rushlight._core.unsupported import stand_in as _stand_in
from rushlight._core.unsupported import teach as _teach
from rushlight.distributed.nn.functional import (
    all_gather as all_gather,
)
from rushlight.distributed.nn.functional import (
    all_reduce as all_reduce,
)
from rushlight.distributed.nn.functional import (
    broadcast as broadcast,
)
from rushlight.distributed.nn.functional import (
    gather as gather,
)
from rushlight.distributed.nn.functional import (
    reduce as reduce,
)

_stand_in(globals(), "RemoteModule")
__getattr__ = _teach(__name__)
