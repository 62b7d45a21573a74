"""torch.mtia: there is no MTIA device here."""

from rushlight._compat.missing_devices import fill as _fill
from rushlight._core.unsupported import teach as _teach

_fill(globals(), "MTIA device")
__getattr__ = _teach(__name__)
