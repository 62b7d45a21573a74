"""Settings of saving and loading."""

from rushlight.utils.serialization import config as config
