"""torch.mps: there is no Apple GPU here."""

from rushlight._compat.missing_devices import fill as _fill
from rushlight._core.unsupported import teach as _teach

_fill(globals(), "Apple GPU")
__getattr__ = _teach(__name__)
