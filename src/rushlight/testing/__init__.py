"""Comparing tensors in tests, and making them."""

from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

_unsupported = _unsupported_attribute(__name__)


def __getattr__(name: str):
    if name == "FileCheck":  # rare
        from ._file_check import FileCheck

        return FileCheck
    return _unsupported(name)
