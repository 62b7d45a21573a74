"""What test suites of other packages borrow from PyTorch's own tests."""

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute

__getattr__ = _unsupported_attribute(__name__)
