"""torch._custom_op: what torch._custom_ops is made of."""

from rushlight._core.unsupported import submodules as _submodules

__getattr__ = _submodules(__name__)
