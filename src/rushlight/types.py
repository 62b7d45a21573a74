"""Names of types for annotations."""

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

import rushlight as rl
from rushlight import Size as Size
from rushlight import Tensor as Tensor
from rushlight import device as _device  # noqa: F401
from rushlight import dtype as _dtype  # noqa: F401
from rushlight import layout as _layout  # noqa: F401

Device: TypeAlias = Any
Number: TypeAlias = builtins.int | builtins.float | builtins.bool
_Number = (builtins.int, builtins.float, builtins.bool)
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
IntLikeType = BoolLikeType = FloatLikeType = PySymType = Any
Storage = getattr(rl, "UntypedStorage", Any)
_TensorOrTensors: TypeAlias = Any
_TensorOrOptionalTensors: TypeAlias = Any
_TensorOrTensorsOrGradEdge: TypeAlias = Any

_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_complex = builtins.complex
_bytes = builtins.bytes
_symint = builtins.int
_size: TypeAlias = Sequence[builtins.int]
_qscheme = _dispatchkey = Any

__all__ = ["Device", "FileLike", "Number", "Storage"]

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)
