<<<<<<< HEAD
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
=======
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import backend  # noqa: E402, F401  (installs the stand-in package before any test imports rushlight)
>>>>>>> text
