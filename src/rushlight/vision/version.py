"""The version of torchvision whose names and behaviour this package has."""

from rushlight._compat.alias import TORCHVISION_VERSION

__version__ = TORCHVISION_VERSION
git_version = "rushlight"
cuda = None
