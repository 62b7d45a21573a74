"""Comparing tensors in tests, and making them."""

from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

from rushlight._missing import teach as _teach  # noqa: E402

__getattr__ = _teach(__name__)
