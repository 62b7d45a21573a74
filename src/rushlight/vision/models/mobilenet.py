"""MobileNets."""

from .mobilenetv2 import *
from .mobilenetv2 import __all__ as _two
from .mobilenetv3 import *
from .mobilenetv3 import __all__ as _three

__all__ = _two + _three
