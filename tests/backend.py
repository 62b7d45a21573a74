"""Which tensor library the pure-Python parts are tested on.

By default rushlight itself. With RUSHLIGHT_TEST_BACKEND=torch a stand-in package named `rushlight` is
installed whose submodules are ours and whose every other attribute is torch's: the oracle then plays the
core, and what fails is ours alone.
"""

import importlib
import os
import sys
import types

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SRC = os.path.join(ROOT, "src")
ON_TORCH = os.environ.get("RUSHLIGHT_TEST_BACKEND") == "torch"
# Packages whose __init__ belongs to the core: attributes come from torch, submodules from src/.
_SHELLS = ("rushlight", "rushlight.autograd", "rushlight.utils", "rushlight.nn")


def _shell(name):
    module = types.ModuleType(name)
    module.__path__ = [os.path.join(SRC, *name.split("."))]
    twin = "torch" + name[len("rushlight") :]

    def fallback(attribute):
        ours = os.path.join(module.__path__[0], attribute)
        if os.path.exists(ours + ".py") or os.path.exists(os.path.join(ours, "__init__.py")):
            return importlib.import_module(f"{name}.{attribute}")
        return getattr(importlib.import_module(twin), attribute)

    module.__getattr__ = fallback
    module.__dir__ = lambda: dir(importlib.import_module(twin))
    return module


def install():
    if ON_TORCH and "rushlight" not in sys.modules:
        for name in _SHELLS:
            module = sys.modules[name] = _shell(name)
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, module)


install()
