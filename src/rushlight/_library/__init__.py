"""torch._library: what operators of programs are made of, under the names by which packages read it."""

from rushlight._core.unsupported import submodules as _submodules

__getattr__ = _submodules(__name__)
