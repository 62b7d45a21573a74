"""torch._subclasses: tensors that have a shape, a type and a device, and no memory."""

# ruff: noqa: F401
from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute
from rushlight._subclasses.fake_tensor import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from rushlight._subclasses.fake_utils import CrossRefFakeMode

__all__ = [
    "CrossRefFakeMode",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
]
__getattr__ = _unsupported_attribute(__name__)
