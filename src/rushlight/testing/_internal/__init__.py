"""What test suites of other packages borrow from PyTorch's own tests."""

from rushlight._core.unsupported import teach as _teach

__getattr__ = _teach(__name__)
