"""torch.mtia: there is no MTIA device here."""

from rushlight._compat.missing_devices import fill as _fill
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

_fill(globals(), "MTIA device")
__getattr__ = _unsupported_attribute(__name__)
