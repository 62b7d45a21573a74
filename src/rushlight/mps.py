"""torch.mps: there is no Apple GPU here."""

from rushlight._missing import teach as _teach
from rushlight._no_device import fill as _fill

_fill(globals(), "Apple GPU")
__getattr__ = _teach(__name__)
