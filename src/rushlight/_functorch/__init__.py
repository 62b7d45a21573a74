"""torch._functorch: the modules behind torch.func, under the names that packages import them by."""

from rushlight._core.unsupported import submodules as _submodules

__getattr__ = _submodules(__name__)
