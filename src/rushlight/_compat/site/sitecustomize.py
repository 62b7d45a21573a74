"""Python runs this at start when the folder is on PYTHONPATH (`rushlight hook` prints it). With RUSHLIGHT_AS_TORCH=1,
`import torch` then means rushlight, in this process and in those that it starts.

rushlight is imported when torch is asked for, not before: a process that never asks pays nothing.
"""

import importlib.machinery
import os
import sys


class _Waiting:
    """Stands at the front of sys.meta_path until the first question about torch, then makes way for the real finder."""

    def _finder(self, name):
        if name is None or name.partition(".")[0].lower() not in ("torch", "torchvision", "visdom"):
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        try:
            from rushlight._compat.alias import _finder, install_as_torch
        except ImportError:  # another interpreter, without rushlight: none of our business
            return None
        install_as_torch()
        return _finder

    def find_spec(self, fullname, path=None, target=None):
        finder = self._finder(fullname)
        return finder and finder.find_spec(fullname, path, target)

    def find_distributions(self, context=None):
        finder = self._finder(getattr(context, "name", None))
        return finder.find_distributions(context) if finder else iter(())


def _run_the_other():
    """The sitecustomize that this one hides, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [p for p in sys.path if os.path.abspath(p or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec and spec.loader:
        module = type(sys)("sitecustomize")
        module.__spec__, module.__file__ = spec, spec.origin
        spec.loader.exec_module(module)


if os.environ.get("RUSHLIGHT_AS_TORCH") == "1":
    sys.meta_path.insert(0, _Waiting())
_run_the_other()
