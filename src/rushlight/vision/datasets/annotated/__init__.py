"""Images with more than a class: streets, faces, captions, outlines, pairs, patches."""

from .captions import *
from .faces import *
from .lsun import *
from .outlines import *
from .streets import *
