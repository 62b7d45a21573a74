"""Comparing tensors in tests, and making them."""

from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

from rushlight._core.unsupported import teach as _teach  # noqa: E402

_missing = _teach(__name__)


def __getattr__(name: str):
    if name == "FileCheck":  # rare
        from ._file_check import FileCheck

        return FileCheck
    return _missing(name)
