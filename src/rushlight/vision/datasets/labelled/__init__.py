"""Images with a class each, in files and folders as their authors publish them."""

from .nature import *
from .objects import *
from .scenes import *
from .symbols import *
from .tables import *
