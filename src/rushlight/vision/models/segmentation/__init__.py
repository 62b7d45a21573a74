"""Models that give a class to every pixel."""

from .deeplabv3 import *
from .fcn import *
from .lraspp import *
