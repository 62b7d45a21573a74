"""torch.mtia: there is no MTIA device here."""

from rushlight._missing import teach as _teach
from rushlight._no_device import fill as _fill

_fill(globals(), "MTIA device")
__getattr__ = _teach(__name__)
