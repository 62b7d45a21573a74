"""`config.load.mmap = True` and the like; see rushlight.serialization._options."""

from rushlight.serialization._options import config as _config

load = _config.load
save = _config.save
