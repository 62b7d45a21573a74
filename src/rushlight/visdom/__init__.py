"""visdom's calls without a server: windows are logged to files, and a page in the browser shows them.

vis = rushlight.visdom.Visdom()      # http://localhost:8097 shows what is logged
vis.line(X=[step], Y=[loss], win="loss", update="append")
"""

from ._client import Visdom
from ._values import BadData

__version__ = "0.2.4"  # of the visdom whose calls these are

__all__ = ["BadData", "Visdom"]

Visdom.__module__ = BadData.__module__ = __name__
