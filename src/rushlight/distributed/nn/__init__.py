"""Collectives that have gradients, for a group of one."""

from rushlight._core.unsupported import add_placeholders as _add_placeholders
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
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

_add_placeholders(globals(), "RemoteModule")
__getattr__ = _unsupported_attribute(__name__)
